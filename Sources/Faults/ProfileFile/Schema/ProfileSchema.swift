package import APNSMockFaultModel
internal import APNSMockRules
package import APNSMockNotation

extension Profile {
  /// The schema of a profile. `extends`, `params` and `rules` are parsed by `ProfileBuilder`, because they depend on
  /// several files; values that are present override those of the base profiles.
  static let schema: MapSchema<Profile> = MapSchema(
    "profile", Profile(name: ""),
    .custom(
      "name", \.name, .name, default: "the file name without its extension", "The name of the profile.",
      // The name of a base profile does not apply to the profile that extends it.
      parse: { parser, node, _ in parser.parseName(node) != nil },
      write: { $1.member("name", $0.name) }),
    .defaulted("summary", \.summary, .text, "A description in one sentence."),
    .custom(
      extendsKey, \.self, .either(.name, .list(.name)),
      "The base profiles. Their rules follow the profile's own ones; a rule, setting or parameter of the profile replaces the one with the same name.",
      parse: { _, _, _ in true }, write: { _, _ in }),
    .optional("seed", \.seed, .seed, default: "that of the server", "The seed of all draws."),
    .custom(
      "params", \.parameters, .named(.either(.scalar, .map(ParameterDeclaration.Fields.schema.description))),
      "The parameters. A value `\"${name}\"` below is replaced by the parameter's value. A single value overrides the default of a base profile's parameter.",
      parse: { _, _, _ in true },
      write: { profile, writer in
        writer.objectMember("params") { writer in
          for parameter in profile.parameters {
            writer.name(parameter.name)
            parameter.write(to: &writer)
          }
        }
      }),
    .custom(
      "apns", \.settings, .settings, "Settings of APNs' checks while the profile is active.",
      parse: { $0.parseSettings($1, into: &$2.settings) },
      write: { profile, writer in
        writer.objectMember("apns") { writer in
          for (setting, value) in profile.settings.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            writer.member(setting.rawValue, value)
          }
        }
      }),
    .custom(
      "limits", \.limits, .map(Limits.schema.description), "Limits on all rules together.",
      parse: { parser, node, profile in
        Limits.schema.parseKeys(node, parser)?.parse(into: &profile.limits) ?? false
      },
      write: { profile, writer in
        writer.objectMember("limits") { Limits.schema.writeMembers(of: profile.limits, to: &$0) }
      }),
    .optional(
      "stop", \.stopAfter,
      .map(
        MapSchema(
          "stop", Duration.zero,
          .required("after", \.self, .positiveDuration, "The time from activation until `healthy` becomes active."))),
      default: "never", "When the profile is deactivated."),
    .defaulted(
      "push_key", \.pushIdentity, .word,
      "What makes two attempts the same push: its content, or the `apns-id` that the client sent."),
    .custom(
      "rules", \.rules, .list(.map(RuleValues.inProfiles)),
      "The rules, evaluated from top to bottom.", parse: { _, _, _ in true },
      write: { profile, writer in
        writer.arrayMember("rules") { writer in
          for rule in profile.rules { rule.write(to: &writer) }
        }
      }))

  static let extendsKey = "extends"

  /// Writes the profile as an object with the keys of a profile file. Parameters have an additional member `value`;
  /// in the rules, references to them are replaced by their values.
  package func write(to writer: inout JSONWriter) {
    writer.object { Self.schema.writeMembers(of: self, to: &$0) }
  }
}

extension Profile.Limits {
  fileprivate static let schema: MapSchema<Profile.Limits> = MapSchema(
    "limits", Profile.Limits(),
    .defaulted(
      "max_active", \.maxActive, .integer(1...1_000_000),
      "The maximum number of pushes that are delayed at the same time; APNs' response to further ones is sent at once."),
    .defaulted(
      "max_hold", \.maxDelay, .positiveDuration, "The maximum time for which a push or connection is delayed."))
}

extension SchemaParser {
  /// Parses `apns`. Returns false after recording an error.
  fileprivate func parseSettings(_ node: SchemaNode, into settings: inout [APNSSetting: String]) -> Bool {
    guard let entries = parseEntries(node) else { return false }
    var isValid = true
    for entry in entries {
      guard let setting = APNSSetting(rawValue: entry.key) else {
        failUnknown(entry, in: node, among: APNSSetting.allCases.map(\.rawValue))
        isValid = false
        continue
      }
      let value = node.member(entry)
      guard let scalar = parseScalar(value, as: .any) else {
        isValid = false
        continue
      }
      do throws(InvalidSettingValue) {
        var checked = APNSSettings()
        try checked.set(setting, to: scalar.text)
        settings[setting] = scalar.text
      } catch {
        fail(value, scalar, "cannot be \"\(scalar.text.shortened)\"", hint: "expected \(error.allowed)")
        isValid = false
      }
    }
    return isValid
  }
}

// MARK: - Parameters

extension ParameterDeclaration.Fields {
  static var schema: MapSchema<Self> {
    MapSchema(
      "parameter", Self(),
      .optional(
        ParameterKey.type.rawValue, \.kind, .word, default: "that of the base profile", "The type of the value."),
      .optional(
        ParameterKey.defaultValue.rawValue, \.defaultValue, .literal, default: "that of the base profile",
        "The value unless another one is given."),
      .optional(
        ParameterKey.min.rawValue, \.minimum, .literal, "The minimum of an `int`, `probability` or `duration`."),
      .optional(
        ParameterKey.max.rawValue, \.maximum, .literal, "The maximum of an `int`, `probability` or `duration`."),
      .optional(ParameterKey.help.rawValue, \.help, .text, "A short description."))
  }
}

/// The keys of a parameter; `value` is only written.
private enum ParameterKey: String {
  case type
  case defaultValue = "default"
  case value, min, max, help
}

extension Profile.Parameter {
  /// Writes the parameter as an object: `type`, `default`, `value`, `min`, `max`, `help`.
  package func write(to writer: inout JSONWriter) {
    writer.object(writeMembers)
  }

  fileprivate func writeMembers(to writer: inout JSONWriter) {
    writer.member(ParameterKey.type.rawValue, kind.rawValue)
    write(defaultValue, as: ParameterKey.defaultValue.rawValue, to: &writer)
    write(value, as: ParameterKey.value.rawValue, to: &writer)
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
      writer.verbatim(Array(text.utf8))
    case .bool, .duration, .string: writer.member(name, text)
    }
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
