internal import APNSRules
internal import FaultModel
internal import Notation
internal import PushQuery

/// Values read from a record for one condition that later conditions can reuse.
struct FilterEvaluationCache {
  fileprivate var isJSON: Bool?
  fileprivate var unescapedBody: String?
}

extension Filter {
  /// Removes the records that do not match.
  borrowing func removeNonMatching(_ batch: inout FilterBatch) {
    if let seqs { batch.keep { _, record in seqs.contains(record.seq) } }
    var someReadWholeRecords = false
    for group in groups where batch.remaining != 0 {
      group.evaluation.removeNonMatching(&batch, group.conditions, of: self)
      if group.readsWholeRecord { someReadWholeRecords = true }
    }
    guard someReadWholeRecords else { return }
    let (groups, filter) = (groups, copy self)
    batch.keep(readingContents: { record in
      var cache = FilterEvaluationCache()
      return !groups.containsElement { $0.readsWholeRecord && !record.satisfies(byReading: $0, of: filter, &cache) }
    })
  }
}

extension Record {
  /// Returns whether all conditions on one field hold.
  ///
  /// Here and below records are borrowed: a copy retains the record's storage and so loads that memory into the
  /// cache.
  borrowing func satisfies(_ group: Filter.Group, of filter: borrowing Filter, _ cache: inout FilterEvaluationCache)
    -> Bool
  {
    if group.readsWholeRecord { return satisfies(byReading: group, of: filter, &cache) }
    return withUnsafePointer(to: self) { record in
      var batch = FilterBatch(record)
      group.evaluation.removeNonMatching(&batch, group.conditions, of: filter)
      return batch.remaining != 0
    }
  }

  fileprivate borrowing func satisfies(
    byReading group: borrowing Filter.Group, of filter: borrowing Filter, _ cache: inout FilterEvaluationCache
  ) -> Bool {
    guard withContents({ group.prefilter.mayHold(in: $0, body: $1) }) else {
      return group.conditions.matchesMissingValue
    }
    return switch group.conditions.subject {
    case .payload(let pointer): satisfies(group.conditions, payload: pointer, &cache)
    case .field(.text):
      withBody { body in
        withHeaders { group.conditions.hold(body: body, headers: $0, unescaped: &cache.unescapedBody) }
      }
    case .field(.finding):
      group.conditions.hold(matching: { pattern in
        guard let rulebook = filter.rulebook else { return false }
        return hasFinding(by: rulebook, in: filter.inbox) { pattern.matches($0.rawValue) }
      })
    default: false
    }
  }

  /// Returns a text of each injection.
  borrowing func injections(_ text: (Injection) -> String?) -> [String] {
    wireOutcome?.injections.compactMap(text) ?? []
  }

  private borrowing func satisfies(
    _ conditions: borrowing FieldConditions, payload pointer: JSONPointer, _ cache: inout FilterEvaluationCache
  ) -> Bool {
    let withoutValue = conditions.matchesMissingValue
    let withValue = conditions.hold(payload: withBody { pointer.value(in: $0) })
    // A body that is not JSON has no values, whatever the pointer found in it. Validating the whole body takes
    // longer than finding a value, so it is done last and only if it changes the result.
    if withValue == withoutValue { return withValue }
    let isJSON = cache.isJSON ?? (!isBodyCut && withBody { JSONText.problem(in: $0) == nil })
    cache.isJSON = isJSON
    return isJSON ? withValue : withoutValue
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
    var accepted = PushKeySet(capacity: count)
    var duplicates: [Int] = []
    records.forEach(in: Selection()) { record in
      if record.accepted, !accepted.insert(record.pushKey) { duplicates.append(record.seq) }
      return true
    }
    return duplicates
  }
}

/// A set of push keys: a hash table with open addressing.
private struct PushKeySet {
  // 0 marks a free slot; no key in the table is 0.
  private var slots: [UInt64]
  private let shift: UInt64
  /// Random, so that a client cannot choose keys that collide.
  private let factor = UInt64.random(in: .min ... .max) | 1

  /// - Parameter capacity: The maximum number of keys.
  init(capacity: Int) {
    // At most half of the slots are used.
    let bits = max(4, Int.bitWidth - max(1, capacity).leadingZeroBitCount + 1)
    slots = Array(repeating: 0, count: 1 << bits)
    shift = UInt64(UInt64.bitWidth - bits)
  }

  /// Inserts a key.
  ///
  /// - Returns: Whether it was not present.
  mutating func insert(_ key: PushKey) -> Bool {
    let wanted = max(1, key.number)
    var index = Int(truncatingIfNeeded: (wanted &* factor) >> shift)
    while slots[index] != 0 {
      if slots[index] == wanted { return false }
      index = (index + 1) & (slots.count - 1)
    }
    slots[index] = wanted
    return true
  }
}
