internal import APNSRules
internal import Faults
internal import HTTPMessage
internal import Notation

extension FilterSieve {
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
    case .dear: break
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
    case .reason: keep { _, record in record.servedReason.map(conditions.hold) ?? conditions.holdForNothing }
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
      guard let place else { return conditions.holdForNothing }
      return record.withBytes(place) { conditions.hold($0) }
    }
  }

  private mutating func keep(topic conditions: TextConditions) {
    var defaults = OwnerMemory()
    keep(reading: { $0.head { $0.place($0.verdict.facts.topic) } }) { record, place in
      if let place { return record.withBytes(place) { conditions.hold($0) } }
      return defaults.value(of: record.head { ObjectIdentifier($0.connection) }) {
        record.withTopic { $0.map(conditions.hold) ?? conditions.holdForNothing }
      }
    }
  }

  private mutating func keep(token conditions: TextConditions, _ text: (ProviderToken) -> String?) {
    keep(ofOwner: { $0.head { $0.verdict.token.map { ObjectIdentifier($0) } } }) { record in
      record.verdict?.token.flatMap(text).map(conditions.hold) ?? conditions.holdForNothing
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
  fileprivate mutating func keep(states: FewValues, duplicates: [Int]) {
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
        var (isWanted, isForbidden) = (conditions.holdForNothing, false)
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
