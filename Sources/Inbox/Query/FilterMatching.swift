internal import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockPushQuery

/// Values read from a record for one condition that later conditions can reuse.
struct FilterEvaluationCache {
  fileprivate var isJSON: Bool?
  fileprivate var unescapedBody: String?
}

extension Filter {
  /// Removes the records that do not match.
  borrowing func removeNonMatching(_ batch: inout FilterBatch) {
    if let seqs { batch.keep { _, record in seqs.contains(record.seq) } }
    if let excludedSeqs { batch.keep { _, record in !excludedSeqs.contains(record.seq) } }
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
    for alternative in group.alternatives where satisfies(alternative, of: filter, &cache) { return true }
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
    wireDetails?.injections.compactMap(text) ?? []
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
