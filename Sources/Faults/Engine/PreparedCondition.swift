import APNSMockFaultModel
internal import APNSMockNotation

/// A condition prepared for evaluation: JSON pointers are parsed, and texts are in lower case where case does not
/// matter.
struct PreparedCondition: Sendable {
  struct Test: Sendable {
    let subject: Condition.Subject
    let match: Condition.Match
    /// The parsed pointer of a subject `payload`; nil for other subjects and for an invalid pointer, which finds
    /// nothing.
    let pointer: JSONPointer?
  }

  /// The reason why a condition does not hold.
  enum Miss {
    /// The index of the test that failed, and the value it found.
    case test(Int, seen: SubjectValue?)
    /// An exception that held.
    case exception
  }

  private let tests: [Test]
  private let exceptions: [PreparedCondition]

  init(_ condition: Condition) {
    tests = condition.tests.map { test in
      var pointer: JSONPointer?
      if case .payload(let text) = test.subject { pointer = JSONPointer(text) }
      return Test(
        subject: test.subject, match: test.subject.foldsCase ? test.match.lowercased : test.match, pointer: pointer)
    }
    exceptions = condition.exceptions.map { PreparedCondition($0) }
  }

  /// Returns the times from `connection`'s current age and idle time to the later bounds in this condition, in
  /// nanoseconds. The condition can change its value only then, unless the client sends something.
  func timesToBounds(of connection: Traffic.Connection) -> [Int64] {
    let own = tests.flatMap { test -> [Int64] in
      let now: Int64
      switch test.subject {
      case .age: now = connection.age
      case .idle: now = connection.idle
      default: return []
      }
      guard case .between(let above, let below) = test.match else { return [] }
      return [above, below].compactMap { bound in
        guard let bound else { return nil }
        // A bound is exclusive, and a timer may be early by a rounding error.
        let time = Int64.nanoseconds(bound * 1e9)
        return time >= now ? time &- now &+ 1_000_000 : nil
      }
    }
    return own + exceptions.flatMap { $0.timesToBounds(of: connection) }
  }

  /// Returns why the condition does not hold; nil if it holds.
  func firstFailure(_ context: inout EvaluationContext) -> Miss? {
    for (index, test) in tests.enumerated() {
      if case .query(let query) = test.match {
        if !context.meets(query, test) { return .test(index, seen: context.value(of: test)) }
        continue
      }
      let value = context.value(of: test)
      if !test.match.holds(for: value) { return .test(index, seen: value) }
    }
    for exception in exceptions where exception.firstFailure(&context) == nil { return .exception }
    return nil
  }
}

extension Condition {
  /// Whether a test examines the age or idle time of the connection.
  var dependsOnTime: Bool {
    tests.contains { $0.subject == .age || $0.subject == .idle } || exceptions.contains(where: \.dependsOnTime)
  }
}

extension Condition.Match {
  fileprivate var lowercased: Condition.Match {
    switch self {
    case .equals(let text): .equals(text.lowercased())
    case .prefix(let text): .prefix(text.lowercased())
    case .oneOf(let texts): .oneOf(Set(texts.map { $0.lowercased() }))
    case .glob, .within, .present, .between, .query: self
    }
  }

  func holds(for value: SubjectValue?) -> Bool {
    if case .present(let isPresent) = self { return (value != nil) == isPresent }
    return switch value {
    case .text(let text): holds(for: text)
    case .number(let text): holds(for: text) || isWithin(Double(text))
    case .duration(let duration): isWithin(duration / .seconds(1))
    case .structure, nil: false
    }
  }

  private func holds(for text: String) -> Bool {
    switch self {
    case .equals(let wanted): text == wanted
    case .prefix(let wanted): text.utf8.starts(with: wanted.utf8)
    case .glob(let pattern): pattern.matches(text)
    case .oneOf(let wanted): wanted.contains(text)
    case .within(let blocks):
      IPAddress(text).map { address in blocks.contains { $0.contains(address) } } ?? false
    case .present, .between, .query: false
    }
  }

  private func isWithin(_ number: Double?) -> Bool {
    guard case .between(let above, let below) = self, let number, number.isFinite else { return false }
    return above.map { number > $0 } ?? true && below.map { number < $0 } ?? true
  }
}
