package import FaultModel
package import Notation

extension Condition {
  /// Writes the condition as an object with the keys of a profile file.
  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      for key in ConditionKey.allCases {
        switch key {
        case .payload:
          write(key, of: tests, to: &writer) { if case .payload(let pointer) = $0 { pointer } else { nil } }
        case .header: write(key, of: tests, to: &writer) { if case .header(let name) = $0 { name } else { nil } }
        case .providerToken:
          write(key, of: tests, to: &writer) { subject in
            ProviderTokenKey.allCases.first { $0.subject == subject }?.rawValue
          }
        case .query: if let query { writer.member(key.rawValue, query) }
        case .not:
          guard !exceptions.isEmpty else { continue }
          writer.arrayMember(key.rawValue) { writer in
            for exception in exceptions { exception.write(to: &writer) }
          }
        default:
          guard let test = tests.first(where: { $0.subject == key.subject && !$0.isOfQuery }) else { continue }
          writer.name(key.rawValue)
          test.write(to: &writer)
        }
      }
    }
  }

  /// Writes the tests that belong into a nested map, under the names that `name` returns.
  private func write(
    _ key: ConditionKey, of tests: [Test], to writer: inout JSONWriter, name: (Subject) -> String?
  ) {
    let named = tests.filter { !$0.isOfQuery }.compactMap { test in name(test.subject).map { (name: $0, test: test) } }
    guard !named.isEmpty else { return }
    writer.objectMember(key.rawValue) { writer in
      for entry in named {
        writer.name(entry.name)
        entry.test.write(to: &writer)
      }
    }
  }
}

extension Condition.Test {
  /// Whether the test comes from a query, whose text is written instead.
  fileprivate var isOfQuery: Bool { if case .query = match { true } else { false } }

  /// Writes the required value.
  fileprivate func write(to writer: inout JSONWriter) {
    switch match {
    case .query: writer.null()
    case .equals(let text): write(text, to: &writer)
    case .prefix(let text): writer.object { $0.member(MatchKey.prefix.rawValue, text) }
    case .glob(let pattern): writer.object { $0.member(MatchKey.glob.rawValue, pattern.text) }
    case .oneOf(let texts):
      writer.object { writer in
        writer.arrayMember(MatchKey.oneOf.rawValue) { writer in
          for text in texts.sorted() { write(text, to: &writer) }
        }
      }
    case .within(let blocks):
      if blocks.count == 1, let block = blocks.first {
        writer.string(block.text)
      } else {
        writer.object { writer in
          writer.arrayMember(MatchKey.oneOf.rawValue) { writer in
            for block in blocks { writer.string(block.text) }
          }
        }
      }
    case .present(let isPresent): writer.object { $0.member(MatchKey.present.rawValue, isPresent) }
    case .between(let above, let below):
      writer.object { writer in
        if let above { write(above, as: .above, to: &writer) }
        if let below { write(below, as: .below, to: &writer) }
      }
    }
  }

  private func write(_ text: String, to writer: inout JSONWriter) {
    if subject.wholeRange != nil, let number = Int(text) { writer.integer(number) } else { writer.string(text) }
  }

  private func write(_ bound: Double, as key: MatchKey, to writer: inout JSONWriter) {
    if subject.isDuration, bound.magnitude < 1e12 {
      writer.member(key.rawValue, Duration.milliseconds(Int64(bound * 1000)))
    } else {
      writer.numberMember(key.rawValue, bound)
    }
  }
}

extension Trigger {
  /// Writes the trigger as an object with the keys of a profile file, without those that have their default value.
  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      switch probability {
      case .fixed(let number)?: writer.numberMember(TriggerKey.probability.rawValue, number)
      case .ramp(let from, let to, let over)?:
        writer.objectMember(TriggerKey.probability.rawValue) { writer in
          writer.objectMember(ProbabilityKey.ramp.rawValue) { writer in
            writer.numberMember(RampKey.from.rawValue, from)
            writer.numberMember(RampKey.to.rawValue, to)
            writer.member(RampKey.over.rawValue, over)
          }
        }
      case nil: break
      }
      if drawKey != .attempt { writer.member(TriggerKey.drawPer.rawValue, drawKey.rawValue) }
      let counts: [(TriggerKey, Int?)] = [(.first, first), (.after, after), (.every, every), (.times, times)]
      for (key, count) in counts {
        if let count { writer.member(key.rawValue, count) }
      }
      if countKey != .rule { writer.member(TriggerKey.timesPer.rawValue, countKey.rawValue) }
      if let overLimit { overLimit.write(to: &writer) }
      if let window { window.write(to: &writer) }
      if let afterStreams { writer.member(TriggerKey.afterStreams.rawValue, afterStreams) }
      if let maxActive { writer.member(TriggerKey.maxActive.rawValue, maxActive) }
    }
  }
}

extension Trigger.Rate {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.objectMember(TriggerKey.overLimit.rawValue) { writer in
      writer.numberMember(RateKey.limit.rawValue, limit)
      writer.member(RateKey.per.rawValue, per)
      writer.numberMember(RateKey.burst.rawValue, burst)
      writer.member(RateKey.key.rawValue, key.rawValue)
    }
  }
}

extension Trigger.Window {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.objectMember(TriggerKey.window.rawValue) { writer in
      if after > .zero || length == nil && every == nil { writer.member(WindowKey.after.rawValue, after) }
      if let length { writer.member(WindowKey.length.rawValue, length) }
      if let every { writer.member(WindowKey.every.rawValue, every) }
    }
  }
}
