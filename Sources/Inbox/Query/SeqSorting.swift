internal import APNSMockNotation

/// A value of a record by which a list is sorted; the raw values are the names.
package enum SortField: String, CaseIterable, Sendable {
  /// The order of arrival.
  case seq
  case outcome
  case status
  case reason
  case topic
  case pushType = "push_type"
  case priority
  case deviceToken = "device_token"
  case attempt
  case size
  case latency
  case connection
  case collapseID = "collapse_id"
}

extension InboxSnapshot {
  /// Returns the `seq` of all selected records in the order of a field, and their number. Records without a value come last
  /// in both orders; among equal values the newest comes first.
  ///
  /// Uses up to 16 bytes for each record, 56 if they are grouped, and the distinct texts of the field. Suspends after at most
  /// 512 records.
  ///
  /// - Parameter groupsAttempts: Whether only the newest of the selected attempts of each push is listed.
  /// - Throws: `FilterError` if the selection exceeds the work limit, or has more than a million records of a store;
  ///   `CancellationError` if the task was cancelled.
  package func sortedSeqs(
    of selection: Selection, by field: SortField, _ order: PageQuery.Order, groupsAttempts: Bool = false
  ) async throws -> (seqs: [Int], attempts: Int) {
    var keys: [(key: Int64, seq: Int)] = []
    var attempts = PushAttempts()
    var texts = DistinctTexts()
    let isDescending = order == .descending
    try await forEachSlice(of: selection) { part in
      try records.forEach(in: part) { record in
        keys.append((record.sortKey(field, &texts), record.seq))
        if groupsAttempts { attempts.add(record) }
        return true
      }
      try checkCollected(keys.count, for: "sort")
      return true
    }
    let count = keys.count
    if groupsAttempts {
      var newest = Set<Int>(minimumCapacity: count)
      attempts.forEachPush { if let last = $0.last { newest.insert(last.seq) } }
      keys.removeAll { !newest.contains($0.seq) }
    }
    if let ranks = texts.ranks {
      for index in keys.indices where keys[index].key != .max { keys[index].key = ranks[Int(keys[index].key)] }
    }
    keys.sort { one, other in
      if one.key == other.key { return field == .seq && !isDescending ? one.seq < other.seq : one.seq > other.seq }
      if one.key == .max || other.key == .max { return other.key == .max }
      return isDescending ? one.key > other.key : one.key < other.key
    }
    return (keys.map(\.seq), count)
  }
}

/// Texts and the number of each, so that sorting compares numbers.
private struct DistinctTexts {
  private var numbers: [String: Int64] = [:]

  /// Returns the number of a text; that of a missing one is `Int64.max`.
  mutating func number(of text: String?) -> Int64 {
    guard let text else { return .max }
    if let number = numbers[text] { return number }
    let number = Int64(numbers.count)
    numbers[text] = number
    return number
  }

  /// The position of each text in ascending order, by its number; nil without texts.
  var ranks: [Int64]? {
    guard !numbers.isEmpty else { return nil }
    var ranks = [Int64](repeating: 0, count: numbers.count)
    for (rank, entry) in numbers.sorted(by: { $0.key < $1.key }).enumerated() { ranks[Int(entry.value)] = Int64(rank) }
    return ranks
  }
}

extension Record {
  /// Returns the number by which the record is sorted; `Int64.max` if it has no value.
  fileprivate func sortKey(_ field: SortField, _ texts: inout DistinctTexts) -> Int64 {
    switch field {
    case .seq: Int64(seq)
    case .outcome: texts.number(of: outcome.rawValue)
    case .status: sentResponse.status.map(Int64.init) ?? .max
    case .reason: texts.number(of: sentReason)
    case .topic: texts.number(of: topic)
    case .pushType: texts.number(of: pushType)
    case .priority: priority.map(Int64.init) ?? .max
    case .deviceToken: texts.number(of: deviceToken)
    case .attempt: Int64(attempt)
    case .size: Int64(bodySize)
    case .latency: sentResponse.latencyNanoseconds ?? .max
    // `c9` comes before `c10`.
    case .connection: Int64(connection.id.dropFirst()) ?? .max
    case .collapseID: texts.number(of: collapseID)
    }
  }
}
