internal import APNSRules
internal import FaultModel
internal import HTTPMessage
internal import Notation

/// The conditions on one field, compiled when the filter is made so that evaluating a record only reads and compares
/// a value.
enum CompiledFilter: Sendable {
  /// Conditions on the text of a field.
  case text(FilterField, TextConditions)
  /// Conditions on the number of a field.
  case number(FilterField, NumberConditions)
  case accepted(SmallValueSet)
  /// The matching outcomes, by index in `Record.Outcome.allCases`.
  case outcome(SmallValueSet)
  /// The matching values of `stateNumber(isDuplicate:)`.
  case state(SmallValueSet)
  case pushKey(PushKeyConditions)
  /// Conditions on the values of the header fields with this name.
  case header(TextPattern, ValueConditions)
  /// Conditions that are expensive: evaluated record by record, after all others.
  case expensive

  init(_ group: Filter.Group) {
    let texts = TextConditions(group)
    switch group.subject {
    case .payload, .field(.text), .field(.finding): self = .expensive
    case .header(let name):
      self = .header(TextPattern(pieces: [name], foldsCase: false), ValueConditions(group))
    case .field(.pushKey): self = .pushKey(PushKeyConditions(texts))
    case .field(let field):
      switch field.kind {
      case .text, .anywhere: self = .text(field, texts)
      case .number, .time, .size: self = .number(field, NumberConditions(group))
      case .flag:
        self = .accepted(
          SmallValueSet(2) { value in
            group.holds { if case .flag(let flag) = $0 { flag == (value == 1) } else { false } }
          }
        )
      case .word where field == .is:
        self = .state(
          SmallValueSet(8) { value in
            group.holds { if case .states(let states) = $0 { states.contains { $0.holds(in: value) } } else { false } }
          })
      case .word:
        self = .outcome(
          SmallValueSet(Record.Outcome.allCases.count) { texts.hold(Record.Outcome.allCases[$0].rawValue) })
      }
    }
  }
}

/// A set of up to eight small values, one bit each.
struct SmallValueSet: Sendable {
  private var bits: UInt8 = 0

  /// - Parameter count: The number of values, at most 8.
  init(_ count: Int, where holds: (Int) -> Bool) {
    for value in 0..<count where holds(value) { bits |= 1 << UInt8(value) }
  }

  @inline(__always)
  func contains(_ value: Int) -> Bool { bits >> UInt8(truncatingIfNeeded: value) & 1 == 1 }
}

/// Conditions on one text or on several texts.
struct TextConditions: Sendable {
  let wanted: [TextPattern]
  let unwanted: [TextPattern]

  init(_ group: Filter.Group) {
    func patterns(_ tests: [FilterTest]) -> [TextPattern] {
      tests.compactMap { if case .text(let pattern) = $0 { pattern } else { nil } }
    }
    wanted = patterns(group.wanted)
    unwanted = patterns(group.unwanted)
  }

  /// Whether the conditions hold for a record without a text.
  var matchesMissingValue: Bool { wanted.isEmpty }

  /// Returns whether the conditions hold for a text.
  func hold(_ text: UnsafeRawBufferPointer) -> Bool {
    if !unwanted.isEmpty, unwanted.holdsSome({ $0.matches(text) }) { return false }
    return wanted.isEmpty || wanted.holdsSome { $0.matches(text) }
  }

  /// Returns whether the conditions hold for a text.
  func hold(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { hold(UnsafeRawBufferPointer($0)) }
  }

  /// Returns whether the conditions hold for several texts: one must be wanted, and none unwanted.
  func hold(anyOf texts: [String]) -> Bool {
    if unwanted.contains(where: { texts.contains(where: $0.matches) }) { return false }
    return wanted.isEmpty || wanted.contains { texts.contains(where: $0.matches) }
  }
}

/// Conditions on a number.
struct NumberConditions: Sendable {
  private struct Numbers: Sendable {
    var ranges: [ClosedRange<Int64>] = []
    /// Patterns for the decimal digits.
    var patterns: [TextPattern] = []

    init(_ tests: [FilterTest]) {
      for test in tests {
        switch test {
        case .number(let range): ranges.append(range)
        case .text(let pattern): patterns.append(pattern)
        default: break
        }
      }
    }

    var isEmpty: Bool { ranges.isEmpty && patterns.isEmpty }

    func contains(_ number: Int64) -> Bool {
      for range in ranges where range.contains(number) { return true }
      return !patterns.isEmpty && patterns.holdsSome { $0.matches(String(number)) }
    }
  }

  private let wanted: Numbers
  private let unwanted: Numbers

  init(_ group: Filter.Group) {
    wanted = Numbers(group.wanted)
    unwanted = Numbers(group.unwanted)
  }

  /// Returns whether the conditions hold for a number, or for its absence if nil.
  func hold(_ number: Int64?) -> Bool {
    guard let number else { return wanted.isEmpty }
    if !unwanted.isEmpty, unwanted.contains(number) { return false }
    return wanted.isEmpty || wanted.contains(number)
  }
}

/// Conditions on the values of a header field: one value must be wanted, and none unwanted.
struct ValueConditions: Sendable {
  private let wanted: [QueryValueTest]
  private let unwanted: [QueryValueTest]

  /// Whether the conditions hold for a record without the header field.
  var matchesMissingValue: Bool { wanted.isEmpty }

  init(_ group: Filter.Group) {
    func values(_ tests: [FilterTest]) -> [QueryValueTest] {
      tests.compactMap { if case .value(let test) = $0 { test } else { nil } }
    }
    wanted = values(group.wanted)
    unwanted = values(group.unwanted)
  }

  /// Returns whether the value satisfies a positive condition.
  func want(_ value: UnsafeRawBufferPointer) -> Bool { wanted.contains { $0.holds(forHeader: value) } }

  /// Returns whether the value satisfies a negated condition.
  func forbid(_ value: UnsafeRawBufferPointer) -> Bool { unwanted.contains { $0.holds(forHeader: value) } }
}

extension FilterState {
  /// Returns whether a record with this `stateNumber` is in this state.
  func holds(in stateNumber: Int) -> Bool {
    switch self {
    case .retry: stateNumber & 1 != 0
    case .first: stateNumber & 1 == 0
    case .pending: stateNumber & 2 != 0
    case .duplicate: stateNumber & 4 != 0
    }
  }
}

extension Record {
  /// Returns the record's states.
  borrowing func states(isDuplicate: Bool) -> [FilterState] {
    let number = stateNumber(isDuplicate: isDuplicate)
    return FilterState.allCases.filter { $0.holds(in: number) }
  }

  /// Returns the states that `is` can query, as three bits. The caller knows whether the record is a duplicate.
  borrowing func stateNumber(isDuplicate: Bool) -> Int {
    (attempt > 1 ? 1 : 0) | (outcome == .pending ? 2 : 0) | (isDuplicate ? 4 : 0)
  }
}

extension Array {
  /// Returns whether `holds` returns true for one of the elements. Elements are not copied.
  @inline(__always)
  func holdsSome(_ holds: (borrowing Element) -> Bool) -> Bool {
    withUnsafeBufferPointer { elements in
      for index in elements.indices where elements.borrow(index, holds) { return true }
      return false
    }
  }
}

extension UnsafeBufferPointer where Element: ~Copyable {
  /// Calls `read` with a borrowed element. Copying a record would retain its storage and load that memory into the
  /// cache, and copying a text counts references. The compiler omits the copy only if it does not know that
  /// `Element` is copyable.
  @inline(__always)
  func borrow<Result>(_ index: Int, _ read: (borrowing Element) -> Result) -> Result { read(self[index]) }
}

extension CompiledFilter {
  /// Removes the records for which the conditions do not hold. Keeps all records if the conditions are expensive.
  func narrow(_ batch: inout RecordBatch, of filter: borrowing Filter) {
    switch self {
    case .text(let field, let conditions): batch.keep(field, conditions)
    case .number(let field, let conditions): batch.keep(field, conditions)
    case .accepted(let values): batch.keep { _, record in values.contains(record.accepted ? 1 : 0) }
    case .outcome(let values): batch.keep { _, record in values.contains(record.outcome.place) }
    case .state(let values): batch.keep(states: values, duplicates: filter.duplicates)
    case .pushKey(let conditions): batch.keep { _, record in conditions.hold(record.pushKey) }
    case .header(let name, let conditions): batch.keep(header: name, conditions)
    case .expensive: break
    }
  }
}

extension Record.Outcome {
  /// The index in `allCases`.
  fileprivate var place: Int {
    switch self {
    case .accepted: 0
    case .rejected: 1
    case .faulted: 2
    case .pending: 3
    case .aborted: 4
    }
  }
}

extension RecordBatch {
  fileprivate mutating func keep(_ field: FilterField, _ conditions: TextConditions) {
    switch field {
    case .deviceToken: keep(conditions) { $0.head { $0.place($0.verdict.facts.deviceToken) } }
    case .pushType: keep(conditions) { $0.head { $0.place($0.verdict.facts.pushTypeText) } }
    case .collapseID: keep(conditions) { $0.head { $0.place($0.verdict.facts.collapseID) } }
    case .apnsID: keep(conditions) { $0.head { $0.idPlace } }
    case .topic: keep(topic: conditions)
    case .reason: keep { _, record in record.servedReason.map(conditions.hold) ?? conditions.matchesMissingValue }
    case .rule: keep { _, record in conditions.hold(anyOf: record.injections { $0.rule }) }
    case .profile: keep { _, record in conditions.hold(anyOf: record.injections { $0.profile }) }
    case .connection:
      keep(ofOwner: { $0.head { ObjectIdentifier($0.connection) } }) { conditions.hold($0.connection.id) }
    case .keyID: keep(token: conditions, \.keyID)
    case .teamID: keep(token: conditions, \.teamID)
    // These fields have no text.
    default: keep(0)
    }
  }

  @inline(__always)
  private mutating func keep(_ conditions: TextConditions, _ place: (borrowing Record) -> Range<Int>?) {
    keep(reading: place) { record, place in
      guard let place else { return conditions.matchesMissingValue }
      return record.withBytes(place) { conditions.hold($0) }
    }
  }

  private mutating func keep(topic conditions: TextConditions) {
    var defaults = OwnerMemory()
    keep(reading: { $0.head { $0.place($0.verdict.facts.topic) } }) { record, place in
      if let place { return record.withBytes(place) { conditions.hold($0) } }
      return defaults.value(of: record.head { ObjectIdentifier($0.connection) }) {
        record.withTopic { $0.map(conditions.hold) ?? conditions.matchesMissingValue }
      }
    }
  }

  private mutating func keep(token conditions: TextConditions, _ text: (ProviderToken) -> String?) {
    keep(ofOwner: { $0.head { $0.verdict.token.map { ObjectIdentifier($0) } } }) { record in
      record.verdict?.token.flatMap(text).map(conditions.hold) ?? conditions.matchesMissingValue
    }
  }

  /// Evaluates a condition on a value shared by all records with the same owner.
  @inline(__always)
  private mutating func keep(
    ofOwner owner: (borrowing Record) -> ObjectIdentifier?, _ holds: (borrowing Record) -> Bool
  ) {
    var memory = OwnerMemory()
    keep { _, record in memory.value(of: owner(record)) { holds(record) } }
  }

  fileprivate mutating func keep(_ field: FilterField, _ conditions: NumberConditions) {
    switch field {
    case .status: keep { _, record in conditions.hold(record.served.status.map(Int64.init)) }
    case .priority: keep { _, record in conditions.hold(record.priority.map(Int64.init)) }
    case .listener: keep { _, record in conditions.hold(record.head { Int64($0.connection.listener) }) }
    case .attempt: keep { _, record in conditions.hold(Int64(record.attempt)) }
    case .since, .until: keep { _, record in conditions.hold(record.receivedAt) }
    case .size, .sizeGreater, .sizeLess: keep { _, record in conditions.hold(Int64(record.bodySize)) }
    // These fields have no number.
    default: keep(0)
    }
  }

  /// Keeps the records whose state is one of `states`.
  ///
  /// - Parameter duplicates: The `seq` of each duplicate, ascending.
  fileprivate mutating func keep(states: SmallValueSet, duplicates: [Int]) {
    var next = duplicates.position(ofSeq: firstSeq)
    keep { _, record in
      while next < duplicates.count, duplicates[next] < record.seq { next += 1 }
      let isDuplicate = next < duplicates.count && duplicates[next] == record.seq
      return states.contains(record.stateNumber(isDuplicate: isDuplicate))
    }
  }

  /// Keeps the records with matching header values. A push's header fields occupy about eight cache lines, so
  /// those of all records are prefetched before the first is read.
  fileprivate mutating func keep(header name: TextPattern, _ conditions: ValueConditions) {
    let length = name.text.utf8.count
    keep { _, record in
      record.withHeaders { CacheLines.prefetch($0) }
      return true
    }
    keep { _, record in
      record.withHeaders { packed in
        var (isWanted, isForbidden) = (conditions.matchesMissingValue, false)
        HeaderList.forEachField(in: packed) { field, value in
          // The length alone rules out most names.
          guard Int(field.count) == length, name.matches(UnsafeRawBufferPointer(rebasing: packed[field.indices])) else {
            return
          }
          let value = UnsafeRawBufferPointer(rebasing: packed[value.indices])
          if conditions.want(value) { isWanted = true }
          if conditions.forbid(value) { isForbidden = true }
        }
        return isWanted && !isForbidden
      }
    }
  }
}

/// The last owner and its result: consecutive records mostly have the same owner.
private struct OwnerMemory {
  private var last: (owner: ObjectIdentifier?, holds: Bool)?

  @inline(__always)
  mutating func value(of owner: ObjectIdentifier?, _ find: () -> Bool) -> Bool {
    if let last, last.owner == owner { return last.holds }
    let holds = find()
    last = (owner, holds)
    return holds
  }
}
