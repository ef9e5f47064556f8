package import FaultModel
internal import APNSRules
package import Notation

extension Profile {
  /// Writes the profile as an object with the keys of a profile file. Parameters have an additional member `value`;
  /// in the rules, references to them are replaced by their values.
  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(ProfileKey.name.rawValue, name)
      writer.member(ProfileKey.summary.rawValue, summary)
      if let seed { writer.member(ProfileKey.seed.rawValue, seed) }
      writer.objectMember(ProfileKey.params.rawValue) { writer in
        for parameter in parameters {
          writer.name(parameter.name)
          parameter.write(to: &writer)
        }
      }
      writer.objectMember(ProfileKey.apns.rawValue) { writer in
        for (setting, value) in settings.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
          writer.member(setting.rawValue, value)
        }
      }
      writer.objectMember(ProfileKey.limits.rawValue) { writer in
        writer.member(LimitsKey.maxActive.rawValue, limits.maxActive)
        writer.member(LimitsKey.maxHold.rawValue, limits.maxHold)
      }
      if let stopAfter {
        writer.objectMember(ProfileKey.stop.rawValue) { $0.member(StopKey.after.rawValue, stopAfter) }
      }
      writer.member(ProfileKey.pushKey.rawValue, pushIdentity.rawValue)
      writer.arrayMember(ProfileKey.rules.rawValue) { writer in
        for rule in rules { rule.write(to: &writer) }
      }
    }
  }
}

extension Profile.Parameter {
  /// Writes the parameter as an object: `type`, `default`, `value`, `min`, `max`, `help`.
  package func write(to writer: inout JSONWriter) {
    writer.object(writeMembers)
  }

  /// Writes the members of the parameter's object.
  func writeMembers(to writer: inout JSONWriter) {
    writer.member(ParameterKey.type.rawValue, kind.rawValue)
    write(defaultValue, as: ParameterKey.defaultValue.rawValue, to: &writer)
    write(value, as: "value", to: &writer)
    if let minimum { write(minimum, as: ParameterKey.min.rawValue, to: &writer) }
    if let maximum { write(maximum, as: ParameterKey.max.rawValue, to: &writer) }
    writer.member(ParameterKey.help.rawValue, help)
  }

  /// Writes a member with the parameter's name and value.
  package func writeValue(to writer: inout JSONWriter) { write(value, as: name, to: &writer) }

  private func write(_ text: String, as name: String, to writer: inout JSONWriter) {
    switch kind {
    case .bool where (try? Value.flag(text)) != nil: writer.member(name, (try? Value.flag(text)) == true)
    case .int, .probability:
      guard WrittenNumber.value(text) != nil else { return writer.member(name, text) }
      writer.name(name)
      var text = text
      text.withUTF8 { writer.verbatim(UnsafeRawBufferPointer($0)) }
    case .bool, .duration, .string: writer.member(name, text)
    }
  }
}

extension Rule {
  /// Writes the rule as an object with the keys of a profile file, without those that have their default value.
  package func write(to writer: inout JSONWriter) {
    write(to: &writer) { _ in }
  }

  /// Writes the rule as an object, with additional members at its end.
  package func write(to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void) {
    writer.object { writer in
      writer.member(RuleKey.name.rawValue, name)
      writer.member(RuleKey.at.rawValue, injectionPoint.rawValue)
      if condition != Condition() {
        writer.name(RuleKey.when.rawValue)
        condition.write(to: &writer)
      }
      if trigger != Trigger() {
        writer.name(RuleKey.trigger.rawValue)
        trigger.write(to: &writer)
      }
      writer.name(RuleKey.action.rawValue)
      action.write(to: &writer)
      if let continues {
        writer.member(RuleKey.then.rawValue, (continues ? Continuation.continueEvaluation : .stop).rawValue)
      }
      if stage != .afterValidation { writer.member(RuleKey.stage.rawValue, stage.rawValue) }
      members(&writer)
    }
  }
}

extension JSONWriter {
  /// Writes a member with a duration.
  mutating func member(_ name: String, _ duration: Duration) { member(name, DurationFormat.text(duration)) }

  /// Writes a member with a number, without a fraction if it is whole.
  mutating func numberMember(_ name: String, _ value: Double) {
    if let whole = Int64(exactly: value) { member(name, whole) } else { member(name, Optional(value)) }
  }
}

extension [Profile.Parameter] {
  /// Writes the parameters as the elements of an array.
  package func write(to writer: inout JSONWriter) {
    for parameter in self {
      writer.object { writer in
        writer.member("name", parameter.name)
        parameter.writeMembers(to: &writer)
      }
    }
  }
}
