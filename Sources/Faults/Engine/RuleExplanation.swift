package import APNSMockFaultModel
internal import APNSMockRules
package import APNSMockNotation

/// What happened to the traffic that a rule was evaluated for: why it fired, or why it did not.
package struct RuleExplanation: Sendable, Equatable {
  /// A value that failed a test.
  package struct Seen: Sendable, Equatable {
    /// The value, truncated; device tokens are abbreviated. Nil for an absent value.
    package let value: String?
    /// The number of occurrences.
    package let count: Int
    /// How the value differs from the required one, if only by case or white space; otherwise nil.
    package let hint: String?
  }

  /// The results of one test of the condition.
  package struct Test: Sendable, Equatable {
    /// The subject, in the terms of a profile file.
    package let name: String
    /// The required value, as text.
    package let wanted: String
    /// The number of times all earlier tests held, so that this one was evaluated.
    package let reached: Int
    /// The number of times the test held.
    package let matched: Int
    /// The values that failed the test, the most frequent first. At most 32; others are counted in `others`.
    package let seen: [Seen]
    /// The number of failing values that are not in `seen`.
    package let others: Int
  }

  /// A part of the trigger that prevented the rule from firing.
  package struct Stop: Sendable, Equatable {
    /// The part, in the terms of a profile file.
    package let part: String
    /// The number of times it prevented firing.
    package let count: Int
  }

  /// The rule's name.
  package let rule: String
  /// The profile that the rule belongs to; nil for an added rule.
  package let profile: String?
  /// The rule's injection point.
  package let injectionPoint: InjectionPoint
  /// The number of evaluations. Traffic that an earlier rule ended is not included.
  package let evaluations: Int
  /// The number of times the rule fired.
  package let fired: Int
  /// The number of pushes that the rule did not apply to because APNs rejects them.
  package let rejectedByAPNs: Int
  /// The tests of the condition, in evaluation order.
  package let tests: [Test]
  /// The number of times all tests held.
  package let passedTests: Int
  /// The number of times an exception held; nil without exceptions.
  package let excepted: Int?
  /// The parts of the trigger that prevented firing after the condition held, in evaluation order.
  package let stops: [Stop]
  /// The number of pushes that the rule currently delays.
  package let active: Int

  /// The number of times the condition held, so that the trigger was evaluated.
  package var triggered: Int { passedTests - (excepted ?? 0) }

  init(_ rule: Rule, profile: String?, count: RuleCounter.Count, active: Int) {
    self.rule = rule.name
    self.profile = profile
    self.active = active
    injectionPoint = rule.injectionPoint
    evaluations = count.evaluations
    fired = count.fired
    rejectedByAPNs = count.rejectedByAPNs
    var reached = count.evaluations - count.rejectedByAPNs
    tests = zip(rule.condition.tests, zip(count.misses, count.seen)).map { test, missed in
      let (misses, seen) = missed
      defer { reached -= misses }
      return Test(
        name: test.name, wanted: test.wanted, reached: reached, matched: reached - misses,
        seen: seen.common.map { Seen(value: $0.value, count: $0.count, hint: test.match.hint(for: $0.value)) },
        others: seen.others)
    }
    passedTests = reached
    excepted = rule.condition.exceptions.isEmpty ? nil : count.excepted
    stops = TriggerPart.allCases.compactMap { part in
      let stopped = count.stops[part.rawValue]
      return stopped > 0 ? Stop(part: part.name, count: stopped) : nil
    }
  }

  // MARK: - Text

  /// The explanation in a few lines for users.
  package var text: String {
    var rows: [(name: String, text: String)] = []
    if rejectedByAPNs > 0 {
      rows.append(
        (
          "verdict",
          "\(evaluations - rejectedByAPNs) of \(evaluations) match   APNs rejects the others; use stage before_validation"
        ))
    }
    rows += tests.map { ($0.name, $0.text) }
    if let excepted {
      rows.append(("not", passedTests == 0 ? "not reached" : "\(triggered) of \(passedTests) match"))
      if excepted > 0 { rows[rows.count - 1].text += "   \(excepted) excluded" }
    }
    rows.append(("trigger", triggerText))
    let width = rows.reduce(0) { max($0, $1.name.count) }
    return rows.reduce(into: "rule \(Explanation.quoted(rule)): \(evaluations) \(evaluatedPushes), \(fired) fired") {
      text, row in
      text += "\n  " + row.name + String(repeating: " ", count: width - row.name.count) + "  " + row.text
    }
  }

  private var evaluatedPushes: String {
    switch injectionPoint {
    case .request, .response: evaluations == 1 ? "push evaluated" : "pushes evaluated"
    case .accept, .tls, .settings: evaluations == 1 ? "connection evaluated" : "connections evaluated"
    case .connection: evaluations == 1 ? "evaluation of a connection" : "evaluations of connections"
    }
  }

  private var triggerText: String {
    guard triggered > 0 else { return "not reached" }
    let stopped = stops.map { "\($0.part) (\($0.count))" }.joined(separator: ", ")
    return "\(fired) of \(triggered) fired" + (stopped.isEmpty ? "" : "   stopped by \(stopped)")
  }

  // MARK: - JSON

  /// Writes the explanation to `writer` as a JSON object.
  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("rule", rule)
      writer.member("profile", profile)
      writer.member("at", injectionPoint.rawValue)
      writer.member("looked_at", evaluations)
      writer.member("fired", fired)
      writer.member("active", active)
      writer.member("rejected_by_apns", rejectedByAPNs)
      writer.arrayMember("when") { writer in
        for test in tests { test.write(to: &writer) }
      }
      writer.member("excepted", excepted)
      writer.objectMember("trigger") { writer in
        writer.member("reached", triggered)
        writer.member("fired", fired)
        writer.objectMember("stopped") { writer in
          for stop in stops { writer.member(stop.part, stop.count) }
        }
      }
      writer.member("text", text)
    }
  }
}

extension RuleExplanation.Test {
  /// The maximum number of values that the text shows.
  private static let shown = 3

  fileprivate var text: String {
    guard reached > 0 else { return "not reached" }
    var text = "\(matched) of \(reached) match"
    guard matched < reached else { return text }
    text += "   wanted \(wanted)"
    guard !seen.isEmpty else { return text }
    text += "   most common values: "
    text += seen.prefix(Self.shown).map { seen in
      let value = seen.value.map { Explanation.quoted($0) } ?? "nothing"
      return "\(value) (\(seen.count)\(seen.hint.map { ", \($0)" } ?? ""))"
    }.joined(separator: ", ")
    return text
  }

  fileprivate func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("test", name)
      writer.member("wanted", wanted)
      writer.member("reached", reached)
      writer.member("matched", matched)
      writer.arrayMember("seen") { writer in
        for seen in seen {
          writer.object { writer in
            writer.member("value", seen.value)
            writer.member("count", seen.count)
            writer.member("hint", seen.hint)
          }
        }
      }
      writer.member("others", others)
    }
  }
}

extension FaultPlan {
  /// Evaluates each rule of an injection point in order, without counting or injecting anything. Counts and rate
  /// limits are not checked.
  ///
  /// - Parameter now: The time of the traffic, in monotonic nanoseconds.
  package func evaluateWithoutCounting(
    _ traffic: Traffic, at injectionPoint: InjectionPoint, now: MonotonicTime
  ) -> [RuleEvaluationReport] {
    var context = EvaluationContext(traffic, identity: profile.pushIdentity)
    let kind = traffic.push?.kind
    return rules(at: injectionPoint).map { rule in
      let outcome: RuleEvaluationReport.Outcome =
        if now < rule.activatedAt {
          .activatedLater
        } else if rule.applies(to: kind) {
          RuleEvaluationReport.Outcome(rule.evaluate(&context, now: now), of: rule.rule)
        } else {
          .missed(
            test: Condition.Subject.kind.name, wanted: Explanation.quoted(RequestKind.push.rawValue),
            seen: kind?.rawValue)
        }
      return RuleEvaluationReport(
        rule: rule.rule.name, profile: rule.profile, injectionPoint: injectionPoint, outcome: outcome)
    }
  }
}

extension RuleEvaluationReport.Outcome {
  fileprivate init(_ evaluation: RuleEvaluation, of rule: Rule) {
    switch evaluation {
    case .rejectedByAPNs: self = .rejectedByAPNs
    case .missed(.exception): self = .excepted
    case .missed(.test(let index, let seen)):
      let test = rule.condition.tests[index]
      self = .missed(test: test.name, wanted: test.wanted, seen: seen?.shown)
    case .stopped(let part): self = .stopped(part: part.name)
    case .matched(let match):
      if let probability = match.probability, !match.passesDraw {
        self = .notDrawn(draw: match.draw, probability: probability)
      } else {
        self = .mayFire(draw: match.draw, probability: match.probability)
      }
    }
  }
}

/// The values that failed a test, with their counts. Bounded in number and in size.
struct ObservedValues {
  /// The maximum number of distinct values counted separately.
  static let limit = 32
  /// The maximum length of a value; longer values are truncated.
  private static let length = 80

  /// The number of occurrences of each value; nil is an absent value.
  private(set) var counts: [String?: Int] = [:]
  /// The number of occurrences of all other values.
  private(set) var others = 0

  mutating func add(_ value: SubjectValue?, of subject: Condition.Subject) {
    let text = value.map { Self.shown($0, of: subject) }
    if counts[text] == nil, counts.count >= Self.limit {
      others &+= 1
    } else {
      counts[text, default: 0] &+= 1
    }
  }

  /// The values, the most frequent first.
  var common: [(value: String?, count: Int)] {
    counts.map { (value: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.value ?? "") < ($0.count, $1.value ?? "") }
  }

  private static func shown(_ value: SubjectValue, of subject: Condition.Subject) -> String {
    let text = value.shown
    switch subject {
    case .deviceToken: return DeviceToken.abbreviated(text)
    // Never show a signature, not even in a wrong header: every JWT contains this text.
    case .header(let name) where name == "authorization" || text.contains("eyJ"): return "(not shown)"
    default:
      // Truncate by scalars: one character may consist of any number of them.
      let cut = text.unicodeScalars.prefix(length)
      return cut.endIndex == text.unicodeScalars.endIndex ? text : String(cut)
    }
  }
}
