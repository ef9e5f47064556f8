internal import APNSMockRules

/// Writes batches to a database. A value: a transaction that fails must not leave behind what it rolled back.
package struct SQLWriter: Sendable {
  private var references = WrittenReferences()
  /// The rows of records up to this `seq` were removed because of a limit. Rows that are removed stay in an index for a time, so
  /// the next search begins after them.
  private var removedThrough = 0
  /// Records up to this `seq` are hidden because the inbox was emptied.
  private var emptiedThrough = 0
  /// The rows of records up to this `seq`, which are hidden, were removed.
  private var hiddenThrough = 0

  /// Creates a writer that knows nothing of what the database contains.
  package init() {}

  /// Makes the changes of a batch, within a transaction.
  ///
  /// - Parameters:
  ///   - totals: Further assignments for the row of the table `contents`, in SQL.
  ///   - progress: Is called when the database has received a part of the batch.
  package mutating func write(
    _ batch: StoreBatch, to db: some SQLConnection, totals: String = "", progress: () -> Void
  ) throws -> StoreBatch.Result {
    try db.insert(batch.appended, try references.ids(of: batch.appended, db, progress: progress), progress: progress)
    try db.update(batch.changed, progress: progress)
    try update(batch.deliveries, db, progress)
    try references.insertNames(of: batch.appended, db)
    try references.insertNames(of: batch.changed, db)
    try write(batch.serverState, db, progress)
    var contents = batch.contents
    emptiedThrough = contents.emptiedThrough
    var result = StoreBatch.Result()
    result.deleted = try remove(batch.deleted, db)
    contents.subtract(result.deleted)
    result.evicted = try removeOldest(batch, of: contents, db)
    contents.subtract(result.evicted)
    let remainsHidden = try removeHidden(db)
    result.isIncomplete = remainsHidden || result.evicted.count >= StoreBatch.removalLimit
    contents.evicted += result.evicted.count
    if result.evicted.count > 0 { contents.lastEvicted = max(contents.lastEvicted, result.evicted.lastSeq) }
    try db.execute(
      """
      UPDATE contents SET last_seq = $1, reserved_seq = $2, emptied_through = $3, count = $4, bytes = $5, evicted = $6, \
      last_evicted = $7, last_connection = $8\(totals)
      """,
      [
        contents.lastSeq, contents.lastSeq + StoredContents.reservedSeqs, contents.emptiedThrough, contents.count,
        contents.bytes, contents.evicted, contents.lastEvicted, contents.lastConnection,
      ].map { String($0) })
    return result
  }

  /// The maximum number of rows that one command changes.
  private static let changeLimit = 2048

  private func update(
    _ deliveries: [Int: DeliveryState], _ db: some SQLConnection, _ progress: () -> Void
  ) throws {
    for (delivery, changes) in Dictionary(grouping: deliveries, by: \.value) {
      for part in changes.map(\.key).parts(of: Self.changeLimit) {
        try db.execute("UPDATE push SET delivery = $1 WHERE seq IN (\(part.listInSQL))", [delivery.text])
        progress()
      }
    }
  }

  private func write(_ state: StoredServerState.Rows, _ db: some SQLConnection, _ progress: () -> Void) throws {
    for part in Array(state.keys).parts(of: 128) {
      let removed = part.filter { state[$0] == .some(nil) }
      let changed = part.filter { state[$0] != .some(nil) }
      if !removed.isEmpty {
        let list = removed.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        try db.execute("DELETE FROM state WHERE name IN (\(list))", removed)
      }
      if !changed.isEmpty {
        let rows = changed.indices.map { "($\(2 * $0 + 1), $\(2 * $0 + 2))" }.joined(separator: ", ")
        try db.execute(
          "INSERT INTO state VALUES \(rows) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
          changed.flatMap { [$0, state[$0] ?? nil] })
      }
      progress()
    }
  }

  // MARK: - Removing

  /// Removes records.
  private func remove(_ seqs: [Int], _ db: some SQLConnection) throws -> RemovedRecords {
    var removed = RemovedRecords()
    for part in seqs.parts(of: Self.changeLimit) {
      // All rows are read: SQLite makes the change of a statement that returns rows after the last one.
      try db.forEachRow(
        "DELETE FROM push WHERE seq IN (\(part.listInSQL)) AND seq > $1 RETURNING seq, \(size(in: db))",
        [String(emptiedThrough)]
      ) { row in
        removed.count += 1
        removed.lastSeq = max(removed.lastSeq, Int(row.number(0)))
        removed.bytes += Int(row.number(1))
        return true
      }
    }
    return removed
  }

  /// The size of a record, in SQL.
  private func size<Connection: SQLConnection>(in db: Connection) -> String {
    "coalesce(\(Connection.contentSize), 0) + \(Record.storedColumnsSize)"
  }

  /// Removes the oldest records that exceed the limits of a batch, at most `StoreBatch.removalLimit`.
  ///
  /// - Parameter contents: What the store contains before.
  private mutating func removeOldest(
    _ batch: StoreBatch, of contents: StoredContents, _ db: some SQLConnection
  ) throws -> RemovedRecords {
    var excess = ExcessRecords(batch, of: contents)
    guard excess.arePossible else { return excess.removed }
    let after = max(emptiedThrough, removedThrough)
    try db.forEachRow(
      """
      SELECT seq, received_at, \(size(in: db)) FROM push WHERE seq > $1 ORDER BY seq LIMIT \(StoreBatch.removalLimit)
      """, [String(after)]
    ) { row in
      let seq = Int(row.number(0))
      guard StoredContents.numbers.contains(seq) else { return false }
      // A damaged record counts as old, so that it does not keep others from being removed.
      return excess.examine(
        seq: seq, receivedAt: row.type(of: 1) == .number ? row.number(1) : .min, size: Int(row.number(2)))
    }
    if let (lastSeq, latestTime) = excess.unresolved,
      let time = try db.firstTime(notAfter: latestTime, behind: lastSeq)
    {
      excess.resolve(nextReceivedAt: time)
    }
    if excess.removed.count > 0 {
      removedThrough = excess.removed.lastSeq
      try db.remove(after: after, through: removedThrough)
    }
    return excess.removed
  }

  /// Removes some records that are hidden because the inbox was emptied.
  ///
  /// - Returns: Whether there may be more.
  private mutating func removeHidden(_ db: some SQLConnection) throws -> Bool {
    guard emptiedThrough > hiddenThrough else { return false }
    let last = try db.number(
      """
      SELECT max(seq) FROM (SELECT seq FROM push WHERE seq > $1 AND seq <= $2 ORDER BY seq \
      LIMIT \(StoreBatch.removalLimit)) AS hidden
      """, [String(hiddenThrough), String(emptiedThrough)]
    ).map { Int($0) }
    if let last { try db.remove(after: hiddenThrough, through: last) }
    hiddenThrough = last ?? emptiedThrough
    return hiddenThrough < emptiedThrough
  }

  /// Removes some connections and provider tokens to which no record refers any more.
  ///
  /// The writer refers to none after `WrittenReferences.lifetime` newer ones, so the records after the oldest one refer to none
  /// that is older by more.
  ///
  /// - Returns: Whether there are no more.
  @discardableResult
  package func removeUnreferenced(_ db: some SQLConnection) throws -> Bool {
    var isComplete = true
    for (table, column) in [("connection", "connection"), ("provider_token", "token")] {
      let oldest = """
        SELECT \(column) FROM push WHERE seq > \(max(removedThrough, emptiedThrough)) ORDER BY seq LIMIT 1
        """
      var count = 0
      try db.forEachRow(
        """
        DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE id < (CASE WHEN EXISTS (\(oldest)) \
        THEN (\(oldest)) ELSE (SELECT max(id) FROM \(table)) END) - \(WrittenReferences.lifetime) \
        ORDER BY id LIMIT \(StoreBatch.removalLimit)) RETURNING id
        """, []
      ) { _ in
        count += 1
        return true
      }
      if count == StoreBatch.removalLimit { isComplete = false }
    }
    return isComplete
  }
}

extension StoredContents {
  /// The number of seqs after the newest stored one that may be in use.
  package static let reservedSeqs = 65_536

  /// Subtracts removed records. The totals of a database that another program has changed may be smaller.
  fileprivate mutating func subtract(_ removed: RemovedRecords) {
    count = max(0, count - removed.count)
    bytes = max(0, bytes - removed.bytes)
  }
}

extension Array {
  /// Returns the elements in parts of at most this size.
  fileprivate func parts(of size: Int) -> some Sequence<[Element]> {
    stride(from: 0, to: count, by: size).lazy.map { Array(self[$0..<Swift.min($0 + size, self.count)]) }
  }
}

extension [Int] {
  /// The numbers, separated by commas.
  fileprivate var listInSQL: String { map { String($0) }.joined(separator: ",") }
}
