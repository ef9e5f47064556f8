package import APNSRules
internal import FaultModel
internal import HTTPMessage
internal import Notation

/// Values read from a record for one condition that later conditions can reuse.
struct FilterEvaluationCache {
  fileprivate var isJSON: Bool?
  fileprivate var unescapedBody: String?
}

extension Filter {
  /// Removes the records that do not match.
  borrowing func narrow(_ batch: inout RecordBatch) {
    var hasExpensive = false
    for group in groups where batch.remaining != 0 {
      group.compiled.narrow(&batch, of: self)
      if case .expensive = group.compiled { hasExpensive = true }
    }
    guard hasExpensive else { return }
    let (expensive, filter) = (groups.filter(\.isExpensive), copy self)
    batch.keep { _, record in
      var reading = FilterEvaluationCache()
      return !expensive.holdsSome { !record.satisfies(expensive: $0, of: filter, &reading) }
    }
  }
}

extension Record {
  /// Returns whether all conditions on one field hold.
  ///
  /// Here and below records are borrowed: a copy retains the record's storage and so loads that memory into the
  /// cache.
  borrowing func satisfies(_ group: Filter.Group, of filter: borrowing Filter, _ reading: inout FilterEvaluationCache)
    -> Bool
  {
    if group.isExpensive { return satisfies(expensive: group, of: filter, &reading) }
    return withUnsafePointer(to: self) { record in
      var batch = RecordBatch(record)
      group.compiled.narrow(&batch, of: filter)
      return batch.remaining != 0
    }
  }

  fileprivate borrowing func satisfies(
    expensive group: borrowing Filter.Group, of filter: borrowing Filter, _ reading: inout FilterEvaluationCache
  ) -> Bool {
    if case .payload(let pointer) = group.subject { return satisfies(group, payload: pointer, &reading) }
    for test in group.unwanted where satisfies(test, group.subject, of: filter, &reading) { return false }
    if group.wanted.isEmpty { return true }
    for test in group.wanted where satisfies(test, group.subject, of: filter, &reading) { return true }
    return false
  }

  private borrowing func satisfies(
    _ test: FilterTest, _ subject: FilterSubject, of filter: borrowing Filter, _ reading: inout FilterEvaluationCache
  ) -> Bool {
    switch (test, subject) {
    case (.text(let pattern), .field(.finding)): hasFinding(pattern, of: filter)
    case (.text(let pattern), .field(.text)): contains(pattern, &reading)
    default: false
    }
  }

  /// Returns whether the record has a finding whose name matches.
  private borrowing func hasFinding(_ pattern: TextPattern, of filter: borrowing Filter) -> Bool {
    guard let rulebook = filter.rulebook else { return false }
    return hasFinding(by: rulebook, in: filter.inbox) { pattern.matches($0.rawValue) }
  }

  /// Returns a text of each injection.
  borrowing func injections(_ text: (Injection) -> String?) -> [String] {
    wireOutcome?.injections.compactMap(text) ?? []
  }

  // MARK: - Payload and text

  private func satisfies(_ group: Filter.Group, payload pointer: JSONPointer, _ reading: inout FilterEvaluationCache)
    -> Bool
  {
    let value = withBody { pointer.value(in: $0) }
    let withoutValue = group.wanted.isEmpty
    let withValue = group.holds { test in
      guard case .value(let test) = test, let value else { return false }
      return test.holds(forPayload: value)
    }
    // A body that is not JSON has no values, whatever the pointer found in it. Validating the whole body takes
    // longer than finding a value, so it is done last and only if it changes the result.
    return withValue == withoutValue || isJSON(&reading) ? withValue : withoutValue
  }

  private func isJSON(_ reading: inout FilterEvaluationCache) -> Bool {
    if let known = reading.isJSON { return known }
    let isJSON = !isBodyCut && withBody { JSONText.problem(in: $0) == nil }
    reading.isJSON = isJSON
    return isJSON
  }

  /// Returns whether the payload, or the name or value of a header field, contains the pattern.
  private func contains(_ pattern: TextPattern, _ reading: inout FilterEvaluationCache) -> Bool {
    if withBody(pattern.matches) { return true }
    if withHeaders({ pattern.matchesField(in: $0) }) { return true }
    guard withBody({ $0.contains(UInt8(ascii: "\\")) }) else { return false }
    // Many providers escape all characters beyond ASCII.
    let text = reading.unescapedBody ?? withBody { JSONPointer.unescaped($0) }
    reading.unescapedBody = text
    return pattern.matches(text)
  }
}

extension InboxSnapshot {
  /// Returns the `seq` of each push that was accepted again after the same push was accepted, within the records of
  /// the inbox.
  ///
  /// Reads all records and temporarily uses up to forty bytes for each of them.
  ///
  /// - Returns: The `seq` values in ascending order.
  func duplicates() -> [Int] {
    var taken = PushKeySet(capacity: count)
    var duplicates: [Int] = []
    records.forEach(in: Selection()) { record in
      if record.accepted, !taken.insert(record.pushKey) { duplicates.append(record.seq) }
      return true
    }
    return duplicates
  }
}

/// A set of push keys: a hash table with open addressing.
private struct PushKeySet {
  // 0 marks a free slot; no key in the table is 0.
  private var places: [UInt64]
  private let shift: UInt64
  /// Random, so that a client cannot choose keys that collide.
  private let factor = UInt64.random(in: .min ... .max) | 1

  /// - Parameter capacity: The maximum number of keys.
  init(capacity: Int) {
    // At most half of the slots are used.
    let bits = max(4, Int.bitWidth - max(1, capacity).leadingZeroBitCount + 1)
    places = Array(repeating: 0, count: 1 << bits)
    shift = UInt64(UInt64.bitWidth - bits)
  }

  /// Inserts a key.
  ///
  /// - Returns: Whether it was not present.
  mutating func insert(_ key: PushKey) -> Bool {
    let wanted = max(1, key.number)
    var index = Int(truncatingIfNeeded: (wanted &* factor) >> shift)
    while places[index] != 0 {
      if places[index] == wanted { return false }
      index = (index + 1) & (places.count - 1)
    }
    places[index] = wanted
    return true
  }
}

/// The context in which a filter is parsed. A condition that needs a property that is nil is an error.
package struct FilterContext: Sendable {
  /// Milliseconds since 1970 by the server's clock, the reference for times such as `since:-5m`.
  package var now: Int64?
  /// The rules that determine findings.
  package var rulebook: Rulebook?
  /// The records among which `is:duplicate` finds duplicates. Later records are not considered, so a wait cannot use
  /// it.
  package var snapshot: InboxSnapshot?
  /// The inbox of the records, for findings that depend on several of them.
  package var inbox: Inbox?
  /// The valid names of rules, profiles, reasons and findings; other names are errors. Nil to accept any name.
  package var known: KnownNames?

  /// Creates a context. The empty context is sufficient except for relative times, `finding` and `is:duplicate`.
  package init(
    now: Int64? = nil, rulebook: Rulebook? = nil, snapshot: InboxSnapshot? = nil, inbox: Inbox? = nil,
    known: KnownNames? = nil
  ) {
    self.known = known
    self.now = now
    self.rulebook = rulebook
    self.snapshot = snapshot
    self.inbox = inbox
  }
}
