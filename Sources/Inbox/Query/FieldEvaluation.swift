internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockPushQuery

/// How the conditions on one field are evaluated, determined when the filter is made so that evaluating a record only
/// reads and compares a value.
enum FieldEvaluation: Sendable {
  /// The text of a field.
  case text(QueryField)
  /// The number of a field.
  case number(QueryField)
  case accepted(SmallValueSet)
  /// The matching outcomes, by index in `Record.Outcome.allCases`.
  case outcome(SmallValueSet)
  /// The matching decisions, by index in `Decision.allCases`.
  case decision(SmallValueSet)
  /// The matching endings, by index in `Ending.allCases`.
  case ending(SmallValueSet)
  /// The matching states of delivery, by raw value; 0 for none.
  case delivery(SmallValueSet)
  /// The matching kinds, by index in `RequestKind.allCases`.
  case requestKind(SmallValueSet)
  /// The matching values of `stateNumber(isDuplicate:)`.
  case state(SmallValueSet)
  case pushKey(PushKeyConditions)
  /// The values of a header field.
  case header
  /// The run, or the test, of a push.
  case owner(isTest: Bool)
  /// Conditions that are expensive: evaluated record by record, after all others.
  case byRecord

  init(_ conditions: FieldConditions) {
    switch conditions.subject {
    case .payload, .field(.text), .field(.finding): self = .byRecord
    case .header: self = .header
    case .field(.run): self = .owner(isTest: false)
    case .field(.test): self = .owner(isTest: true)
    case .field(.pushKey): self = .pushKey(PushKeyConditions(conditions))
    case .field(.is): self = .state(SmallValueSet(32) { conditions.hold(anyOf: PushState.names(in: $0)) })
    case .field(.accepted): self = .accepted(SmallValueSet(2) { conditions.hold($0 == 1 ? "true" : "false") })
    case .field(.outcome):
      let outcomes = Record.Outcome.allCases
      self = .outcome(SmallValueSet(outcomes.count) { conditions.hold(outcomes[$0].rawValue) })
    case .field(.decision):
      self = .decision(SmallValueSet(Decision.allCases.count) { conditions.hold(Decision.allCases[$0].rawValue) })
    case .field(.ending):
      self = .ending(SmallValueSet(Ending.allCases.count) { conditions.hold(Ending.allCases[$0].rawValue) })
    case .field(.delivery):
      self = .delivery(
        SmallValueSet(DeliveryState.allCases.count + 1) { number in
          conditions.hold(DeliveryState(rawValue: UInt8(truncatingIfNeeded: number))?.text)
        })
    case .field(.requestKind):
      let kinds = RequestKind.allCases
      self = .requestKind(SmallValueSet(kinds.count) { conditions.hold(kinds[$0].rawValue) })
    case .field(let field):
      switch field.kind {
      case .number, .time, .size: self = .number(field)
      case .text, .anywhere, .word, .flag: self = .text(field)
      }
    }
  }
}

extension RequestKind {
  /// The index in `allCases`.
  fileprivate var number: Int {
    switch self {
    case .push: 0
    case .broadcast: 1
    case .channel: 2
    }
  }
}

/// A set of up to 32 small values, one bit each.
struct SmallValueSet: Sendable {
  private var bits: UInt32 = 0

  /// - Parameter count: The number of values, at most 32.
  init(_ count: Int, where holds: (Int) -> Bool) {
    for value in 0..<count where holds(value) { bits |= 1 << UInt32(value) }
  }

  @inline(__always)
  func contains(_ value: Int) -> Bool { bits >> UInt32(truncatingIfNeeded: value) & 1 == 1 }
}

extension PushState {
  /// The states of a record with this `stateNumber`.
  fileprivate static func names(in stateNumber: Int) -> [String] {
    allCases.filter { $0.holds(in: stateNumber) }.map(\.rawValue)
  }

  /// Returns whether a record with this `stateNumber` is in this state.
  private func holds(in stateNumber: Int) -> Bool {
    switch self {
    case .retry: stateNumber & 1 != 0
    case .first: stateNumber & 1 == 0
    case .pending: stateNumber & 2 != 0
    case .duplicate: stateNumber & 4 != 0
    case .faulted: stateNumber & 8 != 0
    case .deviating: stateNumber & 16 != 0
    }
  }
}

extension Record {
  /// Returns the names of the record's states.
  borrowing func states(isDuplicate: Bool) -> [String] { PushState.names(in: stateNumber(isDuplicate: isDuplicate)) }

  /// Returns the states that `is` can query, as five bits. The caller knows whether the record is a duplicate.
  borrowing func stateNumber(isDuplicate: Bool) -> Int {
    (attempt > 1 ? 1 : 0) | (outcome == .pending ? 2 : 0) | (isDuplicate ? 4 : 0) | (isFaulted ? 8 : 0)
      | (isDeviating ? 16 : 0)
  }
}

extension FieldEvaluation {
  /// Removes the records for which the conditions do not hold. Keeps all records if the conditions are expensive.
  func removeNonMatching(
    _ batch: inout FilterBatch, _ conditions: borrowing FieldConditions, of filter: borrowing Filter
  ) {
    switch self {
    case .text(let field): batch.keep(field, text: conditions)
    case .number(let field): batch.keep(field, number: conditions)
    case .accepted(let values): batch.keep { _, record in values.contains(record.accepted ? 1 : 0) }
    case .outcome(let values): batch.keep { _, record in values.contains(Int(record.outcome.number)) }
    case .decision(let values): batch.keep { _, record in values.contains(Int(record.end.decision.number)) }
    case .ending(let values): batch.keep { _, record in values.contains(Int(record.end.ending.number)) }
    case .delivery(let values): batch.keep { _, record in values.contains(Int(record.delivery?.rawValue ?? 0)) }
    case .requestKind(let values): batch.keep { _, record in values.contains(record.kind.number) }
    case .state(let values): batch.keep(states: values, duplicates: filter.duplicates)
    case .pushKey(let keys): batch.keep { _, record in keys.hold(record.pushKey, conditions) }
    case .header: batch.keep(headers: conditions)
    case .owner(let isTest):
      let attribution = filter.runs?.attribution
      batch.keep { _, record in
        let owner = attribution?.owner(of: record)
        return conditions.hold(isTest ? owner?.test : owner?.run)
      }
    case .byRecord: break
    }
  }
}

extension FilterBatch {
  fileprivate mutating func keep(_ field: QueryField, text conditions: borrowing FieldConditions) {
    switch field {
    case .deviceToken: keep(conditions) { $0.head { $0.byteRange($0.verdict.facts.deviceToken) } }
    case .pushType: keep(conditions) { $0.head { $0.byteRange($0.verdict.facts.pushTypeText) } }
    case .collapseID: keep(conditions) { $0.head { $0.byteRange($0.verdict.facts.collapseID) } }
    case .apnsID: keep(conditions) { $0.head { $0.effectiveIDRange } }
    case .topic: keep(topic: conditions)
    case .reason: keep { _, record in conditions.hold(record.sentReason) }
    case .violation: keep { _, record in conditions.hold(record.wireDetails?.violationText) }
    case .rule: keep { _, record in conditions.hold(anyOf: record.injections { $0.rule }) }
    case .profile: keep { _, record in conditions.hold(anyOf: record.injections { $0.profile }) }
    case .connection:
      keep(ofOwner: { $0.head { ObjectIdentifier($0.connection) } }) { conditions.hold($0.connection.id) }
    case .environment:
      keep(ofOwner: { $0.head { ObjectIdentifier($0.connection) } }) {
        conditions.hold($0.connection.environment.rawValue)
      }
    case .keyID: keep(token: conditions, \.keyID)
    case .teamID: keep(token: conditions, \.teamID)
    // These fields have no text.
    default: keep(0)
    }
  }

  @inline(__always)
  private mutating func keep(
    _ conditions: borrowing FieldConditions, _ range: (borrowing Record) -> Range<Int>?
  ) {
    keep(reading: range) { record, range in
      guard let range else { return conditions.matchesMissingValue }
      return record.withBytes(range) { conditions.hold($0) }
    }
  }

  private mutating func keep(topic conditions: borrowing FieldConditions) {
    var defaults = OwnerCache()
    keep(reading: { $0.head { $0.byteRange($0.verdict.facts.topic) } }) { record, range in
      if let range { return record.withBytes(range) { conditions.hold($0) } }
      return defaults.value(of: record.head { ObjectIdentifier($0.connection) }) {
        record.withTopic { text in
          guard let text else { return conditions.matchesMissingValue }
          return conditions.hold(text)
        }
      }
    }
  }

  private mutating func keep(token conditions: borrowing FieldConditions, _ text: (ProviderToken) -> String?) {
    keep(ofOwner: { $0.head { $0.verdict.token.map { ObjectIdentifier($0) } } }) { record in
      conditions.hold(record.verdict?.token.flatMap(text))
    }
  }

  /// Evaluates a condition on a value shared by all records with the same owner.
  @inline(__always)
  private mutating func keep(
    ofOwner owner: (borrowing Record) -> ObjectIdentifier?, _ holds: (borrowing Record) -> Bool
  ) {
    var cache = OwnerCache()
    keep { _, record in cache.value(of: owner(record)) { holds(record) } }
  }

  fileprivate mutating func keep(_ field: QueryField, number conditions: borrowing FieldConditions) {
    switch field {
    case .status: keep { _, record in conditions.hold(record.sentResponse.status.map(Int64.init)) }
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
  fileprivate mutating func keep(headers conditions: borrowing FieldConditions) {
    keep { _, record in
      record.withHeaders { CacheLines.prefetch($0) }
      return true
    }
    keep { _, record in record.withHeaders { conditions.hold(headers: $0) } }
  }
}

/// The last owner and its result: consecutive records mostly have the same owner.
private struct OwnerCache {
  private var last: (owner: ObjectIdentifier?, holds: Bool)?

  @inline(__always)
  mutating func value(of owner: ObjectIdentifier?, _ find: () -> Bool) -> Bool {
    if let last, last.owner == owner { return last.holds }
    let holds = find()
    last = (owner, holds)
    return holds
  }
}

/// Conditions on the push key, compared as numbers; as text only if a pattern contains `*`.
struct PushKeyConditions: Sendable {
  private let wanted: Set<PushKey>
  private let unwanted: Set<PushKey>
  private let hasWildcards: Bool

  init(_ conditions: FieldConditions) {
    func keys(_ texts: [String?]) -> Set<PushKey> { Set(texts.compactMap { $0.flatMap { PushKey(text: $0) } }) }
    let (wanted, unwanted) = (conditions.wanted.texts.map(\.literal), conditions.unwanted.texts.map(\.literal))
    hasWildcards = (wanted + unwanted).contains(nil)
    // A literal that is not a valid key matches no record.
    (self.wanted, self.unwanted) = (keys(wanted), keys(unwanted))
  }

  /// Returns whether the conditions hold for a push key.
  @inline(__always)
  func hold(_ key: PushKey, _ conditions: borrowing FieldConditions) -> Bool {
    if hasWildcards { return key.withText { conditions.hold($0) } }
    return (conditions.matchesMissingValue || wanted.contains(key)) && !unwanted.contains(key)
  }
}
