internal import APNSRules
internal import Faults
internal import Notation

/// Which records are meant: conditions on fields, as in a query string.
///
/// Conditions on different fields must all hold. Of several on one field any one is enough, and none of the negated ones
/// may hold. A condition with a value never holds for a record that lacks the field.
public struct Filter: Sendable {
  /// What a field is compared with.
  enum Test: Sendable {
    case text(TextPattern)
    case number(Int64)
    case flag(Bool)
  }

  private struct Group: Sendable {
    let field: FilterField
    var wanted: [Test] = []
    var unwanted: [Test] = []
  }

  private var groups: [Group] = []

  /// Matches every record.
  public init() {}

  /// A filter from the names and values of a query.
  ///
  /// - Throws: `FilterError` for a field that does not exist or a value that it cannot have.
  public init(_ conditions: some Sequence<(name: String, value: String)>) throws(FilterError) {
    for condition in conditions { try add(name: condition.name, value: condition.value) }
  }

  /// Adds one condition. A `!` before the value, or before the name, negates it.
  ///
  /// - Parameter further: names that the query may have besides the fields of a filter, for the error's hint.
  /// - Throws: `FilterError` for a field that does not exist or a value that it cannot have.
  mutating func add(name: String, value: String, further: [String] = []) throws(FilterError) {
    let negatedName = name.hasPrefix("!")
    let negatedValue = value.hasPrefix("!")
    let bareName = negatedName ? String(name.dropFirst()) : name
    guard let field = FilterField(rawValue: bareName) else {
      throw FilterError(unknownField: bareName, further: further)
    }
    let test = try Test(field, value: negatedValue ? String(value.dropFirst()) : value)
    let index = groups.firstIndex { $0.field == field } ?? groups.endIndex
    if index == groups.endIndex { groups.append(Group(field: field)) }
    if negatedName != negatedValue {
      groups[index].unwanted.append(test)
    } else {
      groups[index].wanted.append(test)
    }
  }

  /// Whether the record is one of those that are meant.
  public func matches(_ record: borrowing Record) -> Bool {
    for group in groups {
      for test in group.unwanted where record.satisfies(test, group.field) { return false }
      guard !group.wanted.isEmpty else { continue }
      var found = false
      for test in group.wanted where record.satisfies(test, group.field) {
        found = true
        break
      }
      if !found { return false }
    }
    return true
  }
}

extension Record {
  fileprivate func satisfies(_ test: Filter.Test, _ field: FilterField) -> Bool {
    switch test {
    case .text(let pattern): has(pattern, field)
    case .number(let number): compares(to: number, field)
    case .flag(let flag): accepted == flag
    }
  }

  private func has(_ pattern: TextPattern, _ field: FilterField) -> Bool {
    switch field {
    case .deviceToken: withHeader(facts.deviceToken) { $0.map(pattern.matches) ?? false }
    case .topic: withTopic { $0.map(pattern.matches) ?? false }
    case .pushType: withHeader(facts.pushTypeText) { $0.map(pattern.matches) ?? false }
    case .apnsID: withID { $0.map(pattern.matches) ?? false }
    case .collapseID: withHeader(facts.collapseID) { $0.map(pattern.matches) ?? false }
    case .reason: servedReason.map(pattern.matches) ?? false
    case .rule: aftermath?.injections.contains { pattern.matches($0.rule) } ?? false
    case .profile: aftermath?.injections.contains { $0.profile.map(pattern.matches) ?? false } ?? false
    case .outcome: pattern.matches(outcome.rawValue)
    case .connection: pattern.matches(connection.id)
    case .keyID: verdict?.token?.keyID.map(pattern.matches) ?? false
    case .teamID: verdict?.token?.teamID.map(pattern.matches) ?? false
    case .pushKey: pattern.matches(pushKey)
    case .is:
      pattern.matches(attempt > 1 ? "retry" : "first") || (outcome == .pending && pattern.matches("pending"))
    case .status, .priority, .listener, .attempt:
      number(field).map { pattern.matches(String($0)) } ?? false
    case .accepted, .since, .until, .sizeGreater, .sizeLess: false
    }
  }

  private func compares(to value: Int64, _ field: FilterField) -> Bool {
    switch field {
    case .since: receivedAt >= value
    case .until: receivedAt < value
    case .sizeGreater: bodySize > value
    case .sizeLess: bodySize < value
    default: number(field) == value
    }
  }

  private func number(_ field: FilterField) -> Int64? {
    switch field {
    case .status: served.status.map(Int64.init)
    case .priority: priority.map(Int64.init)
    case .listener: Int64(connection.listener)
    case .attempt: Int64(attempt)
    default: nil
    }
  }
}
