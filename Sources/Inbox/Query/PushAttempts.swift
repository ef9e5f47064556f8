internal import APNSMockNotation
internal import APNSMockRules

/// The attempts of some records, by push: those with the same push key, in the order of their times, as long as their numbers
/// increase. A number that does not increase begins another push with the same content.
struct PushAttempts {
  /// What is known of an attempt: 40 bytes.
  struct Attempt {
    let key: UInt64
    /// The number of the server in a view of several servers.
    let server: Int32
    /// From 1.
    let number: Int32
    let receivedAt: ServerTime
    let seq: Int

    /// Returns whether the attempt is of the same push as an earlier one with the same key.
    fileprivate func continues(_ earlier: Attempt) -> Bool {
      key == earlier.key && server == earlier.server && number > earlier.number
    }

    fileprivate var order: (Int32, UInt64, ServerTime, Int) { (server, key, receivedAt, seq) }
  }

  private var attempts: [Attempt] = []
  private var servers: [String: Int32] = [:]

  /// The number of attempts.
  var count: Int { attempts.count }

  mutating func add(_ record: borrowing Record) {
    let server = record.origin.map { servers[$0.server, default: Int32(servers.count)] } ?? 0
    if let name = record.origin?.server { servers[name] = server }
    attempts.append(
      Attempt(
        key: record.pushKey.number, server: server, number: record.attempt, receivedAt: record.receivedAt,
        seq: record.seq))
  }

  /// Calls `body` with the attempts of each push in the order of their times.
  func forEachPush(_ body: (ArraySlice<Attempt>) -> Void) {
    // A restored attempt has a new `seq`, but its former time.
    let sorted = attempts.sorted { $0.order < $1.order }
    var start = 0
    for index in sorted.indices where index > start && !sorted[index].continues(sorted[index - 1]) {
      body(sorted[start..<index])
      start = index
    }
    if start < sorted.endIndex { body(sorted[start...]) }
  }
}

extension InboxSnapshot {
  /// The maximum number of records of a store that are sorted, or grouped by push.
  private static let maxCollected = 1_000_000

  /// Checks that this many records of a store are not too many to collect.
  ///
  /// - Throws: `FilterError` for more than a million.
  func checkCollected(_ count: Int, for parameter: String) throws(FilterError) {
    guard records.stored == nil || count <= Self.maxCollected else {
      throw FilterError(
        name: parameter,
        message: "more than a million pushes match, which is too many to sort, to group or to list by number",
        hint: "Select fewer of them, for example with since:-1h, or read pages of GET /api/v1/pushes.")
    }
  }

  /// Returns the `seq` of all attempts of the pushes of which an attempt is selected, ascending. Reads all records, and
  /// suspends after at most 4096 of them.
  ///
  /// - Throws: `FilterError` for more than a million records of a store; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read.
  fileprivate func seqsOfAllAttempts(of selection: Selection) async throws -> [Int] {
    var (selected, keys): (Set<Int>, Set<PushKey>) = ([], [])
    try await forEachSlice(of: selection) { part in
      try records.forEach(in: part) { record in
        selected.insert(record.seq)
        keys.insert(record.pushKey)
        return true
      }
      try checkCollected(selected.count, for: "attempts")
      return true
    }
    var attempts = PushAttempts()
    try await forEachSlice(of: .allKinds, checksWork: false) { part in
      try records.forEach(in: part) { record in
        if keys.contains(record.pushKey) { attempts.add(record) }
        return true
      }
      try checkCollected(attempts.count, for: "attempts")
      return true
    }
    var found: [Int] = []
    attempts.forEachPush { push in
      if push.contains(where: { selected.contains($0.seq) }) { found += push.map(\.seq) }
    }
    return found.sorted()
  }
}

extension Selection {
  /// Removes the parameter `attempts` from others.
  ///
  /// - Returns: Whether it is there.
  /// - Throws: `FilterError` for a value other than `all`.
  static func removeAttempts(from parameters: inout [(name: String, value: String)]) throws(FilterError) -> Bool {
    guard let value = parameters.first(where: { $0.name == "attempts" })?.value else { return false }
    parameters.removeAll { $0.name == "attempts" }
    guard value == "all" else {
      throw FilterError(
        field: "attempts", value: value,
        hint: "Use all, to select all attempts of each push of which one matches, or omit it.")
    }
    return true
  }

  /// Selects all attempts of the pushes of which an attempt matches, between the same cursors.
  ///
  /// - Throws: The errors of `InboxSnapshot.seqsOfAllAttempts(of:)`.
  mutating func includeAllAttempts(in snapshot: InboxSnapshot?) async throws {
    guard let snapshot, !filter.isEmpty else { return }
    var matches = self
    (matches.after, matches.before) = (0, .max)
    filter = scope
    filter.seqs = SeqRanges(try await snapshot.seqsOfAllAttempts(of: matches))
    includesAllKinds = true
  }
}
