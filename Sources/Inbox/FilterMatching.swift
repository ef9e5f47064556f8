internal import APNSRules
internal import Faults
internal import HTTPMessage
internal import Notation

/// What was read of a record for one condition and may serve the next one.
struct FilterReading {
  fileprivate var isJSON: Bool?
  fileprivate var pushKey: String?
  fileprivate var unescapedBody: String?
}

extension Record {
  /// Whether all conditions on one field hold.
  ///
  /// Here and below a record is borrowed: a copy of each would touch what it keeps in memory, whatever is asked of it.
  borrowing func satisfies(_ group: Filter.Group, of filter: borrowing Filter, _ reading: inout FilterReading) -> Bool {
    if case .payload(let pointer) = group.subject { return satisfies(group, payload: pointer, &reading) }
    for test in group.unwanted where satisfies(test, group.subject, of: filter, &reading) { return false }
    if group.wanted.isEmpty { return true }
    for test in group.wanted where satisfies(test, group.subject, of: filter, &reading) { return true }
    return false
  }

  @inline(__always)
  private borrowing func satisfies(
    _ test: FilterTest, _ subject: FilterSubject, of filter: borrowing Filter, _ reading: inout FilterReading
  ) -> Bool {
    switch (test, subject) {
    case (.number(let range), .field(let field)): isNumber(of: field, in: range)
    case (.flag(let flag), _): accepted == flag
    case (.states(let states), _): isOne(of: states, isDuplicate: filter.duplicates.contains(seq))
    case (.text(let pattern), .field(.finding)): hasFinding(pattern, of: filter)
    case (.text(let pattern), .field(.pushKey)): pattern.matches(pushKey(&reading))
    case (.text(let pattern), .field(.text)): contains(pattern, &reading)
    case (.text(let pattern), .field(let field)): has(pattern, field)
    case (.value(let test), .header(let name)): satisfies(test, header: name)
    case (.number, _), (.text, _), (.value, _): false
    }
  }

  /// Whether it has a finding that is called so.
  private borrowing func hasFinding(_ pattern: TextPattern, of filter: borrowing Filter) -> Bool {
    guard let rulebook = filter.rulebook else { return false }
    return hasFinding(by: rulebook, in: filter.inbox) { pattern.matches($0.rawValue) }
  }

  private borrowing func pushKey(_ reading: inout FilterReading) -> String {
    if let known = reading.pushKey { return known }
    let key = pushKey
    reading.pushKey = key
    return key
  }

  // MARK: - Fields

  private borrowing func has(_ pattern: TextPattern, _ field: FilterField) -> Bool {
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
    case .connection: head { pattern.matches($0.connection.id) }
    case .keyID: verdict?.token?.keyID.map(pattern.matches) ?? false
    case .teamID: verdict?.token?.teamID.map(pattern.matches) ?? false
    default: number(field).map { pattern.matches(String($0)) } ?? false
    }
  }

  private borrowing func isNumber(of field: FilterField, in range: ClosedRange<Int64>) -> Bool {
    guard let number = number(field) else { return false }
    return range.contains(number)
  }

  private borrowing func number(_ field: FilterField) -> Int64? {
    switch field {
    case .status: served.status.map(Int64.init)
    case .priority: priority.map(Int64.init)
    case .listener: Int64(head { $0.connection.listener })
    case .attempt: Int64(attempt)
    case .since, .until: receivedAt
    case .size, .sizeGreater, .sizeLess: Int64(bodySize)
    default: nil
    }
  }

  private borrowing func isOne(of states: [FilterState], isDuplicate: Bool) -> Bool {
    for state in states where isIn(state, isDuplicate: isDuplicate) { return true }
    return false
  }

  /// Whether it is in a state; of `duplicate` the caller knows.
  borrowing func isIn(_ state: FilterState, isDuplicate: Bool) -> Bool {
    switch state {
    case .retry: attempt > 1
    case .first: attempt <= 1
    case .pending: outcome == .pending
    case .duplicate: isDuplicate
    }
  }

  // MARK: - What came

  private func satisfies(_ test: FilterTest.ValueTest, header wanted: String) -> Bool {
    var found = false
    withHeaders { packed in
      HeaderList.forEachField(in: packed) { name, value in
        guard !found, packed[name.indices].elementsEqual(wanted.utf8) else { return }
        found = test.holds(forHeader: UnsafeRawBufferPointer(rebasing: packed[value.indices]))
      }
    }
    return found
  }

  private func satisfies(_ group: Filter.Group, payload pointer: JSONPointer, _ reading: inout FilterReading) -> Bool {
    let value = withBody { pointer.value(in: $0) }
    let withoutValue = group.wanted.isEmpty
    let withValue = group.holds { test in
      guard case .value(let test) = test, let value else { return false }
      return test.holds(forPayload: value)
    }
    // A body that is not JSON has no values, whatever was found in it. Looking at all of it for that takes longer than
    // finding one, so it comes last, and only where it matters.
    return withValue == withoutValue || isJSON(&reading) ? withValue : withoutValue
  }

  private func isJSON(_ reading: inout FilterReading) -> Bool {
    if let known = reading.isJSON { return known }
    let isJSON = !isBodyCut && withBody { JSONText.problem(in: $0) == nil }
    reading.isJSON = isJSON
    return isJSON
  }

  /// Whether the payload, or the name or value of a header field, is as the pattern says.
  private func contains(_ pattern: TextPattern, _ reading: inout FilterReading) -> Bool {
    if withBody(pattern.matches) { return true }
    var found = false
    withHeaders { packed in
      HeaderList.forEachField(in: packed) { name, value in
        found =
          found || pattern.matches(UnsafeRawBufferPointer(rebasing: packed[value.indices]))
          || pattern.matches(UnsafeRawBufferPointer(rebasing: packed[name.indices]))
      }
    }
    guard !found, withBody({ $0.contains(UInt8(ascii: "\\")) }) else { return found }
    // Many providers write everything beyond ASCII as escapes.
    let text = reading.unescapedBody ?? withBody { JSONPointer.unescaped($0) }
    reading.unescapedBody = text
    return pattern.matches(text)
  }
}

extension FilterTest.ValueTest {
  fileprivate func holds(forPayload value: JSONPointer.Value) -> Bool {
    switch (self, value) {
    case (.present, _): true
    case (.text(let pattern, _, _), .string(let text)): pattern.matches(text)
    case (.text(let pattern, nil, isTextAlone: false), .number(let text)): pattern.matches(text)
    case (.text(_, let number?, isTextAlone: false), .number(let text)): QueryNumber(text) == number
    case (.text(let pattern, _, isTextAlone: false), .word(let text)): pattern.matches(text)
    case (.within(let bounds), .number(let text)): QueryNumber(text).map(bounds.contains) ?? false
    case (.json(let wanted), _): wanted.isSame(as: JSONValue(value))
    case (.text, _), (.within, _): false
    }
  }

  fileprivate func holds(forHeader value: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .present: true
    case .text(let pattern, _, _): pattern.matches(value)
    case .within(let bounds): QueryNumber(String(decoding: value, as: UTF8.self)).map(bounds.contains) ?? false
    // A header has texts alone.
    case .json(let wanted): wanted.isSame(as: .text(String(decoding: value, as: UTF8.self)))
    }
  }
}
