internal import APNSMockInbox
internal import APNSMockNotation
internal import APNSMockRules

/// The table `block`: a row for each 4096 `seq` values, with the oldest and the newest time of their records.
///
/// An index of times finds the records before a time, but not the newest of them by `seq`, because times need not rise with `seq`: the
/// clock may have been moved, and imported records keep their times. Measured with eight million records: 13 to 18 s for a time in the
/// middle, until the records on one side of it had been read.
enum Block {
  /// The number of `seq` values in a block.
  private static let size = 4096
  /// In SQL, the first `seq` of the block of a record.
  static let firstOfSeq = "(seq - 1) / \(size) * \(size) + 1"

  /// Adds new records to their blocks.
  static func add(_ records: [Record], to connection: Connection) throws {
    var times: [Int: ClosedRange<ServerTime>] = [:]
    for index in records.indices {
      let (seq, time) = (records[index].seq, records[index].receivedAt)
      let first = (seq - 1) / size * size + 1
      times[first] = times[first].map { min($0.lowerBound, time)...max($0.upperBound, time) } ?? time...time
    }
    let rows = times.map { "(\($0), \($1.lowerBound), \($1.upperBound))" }.joined(separator: ", ")
    try connection.query(
      """
      INSERT INTO block VALUES \(rows) ON CONFLICT (first_seq) DO UPDATE \
      SET oldest = least(block.oldest, excluded.oldest), newest = greatest(block.newest, excluded.newest)
      """)
  }

  /// Removes the blocks of which all records were removed, if all through `last` were.
  static func remove(through last: Int, from connection: Connection) throws {
    try connection.query("DELETE FROM block WHERE first_seq <= $1", [String(last - size + 1)])
  }

  /// Returns the query for the range of `seq` values in which there may be records of its times; nil if there are none.
  static func narrowed(_ query: StoreQuery, _ connection: Connection) throws -> StoreQuery? {
    var (oldest, newest) = (Int64.min, Int64.max)
    for condition in query.conditions where condition.column == .receivedAt && !condition.isNegated {
      guard case .ranges(let ranges) = condition.test else { continue }
      oldest = max(oldest, ranges.map(\.lowerBound).min() ?? .max)
      newest = min(newest, ranges.map(\.upperBound).max() ?? .min)
    }
    guard oldest > .min || newest < .max else { return query }
    let range = try connection.query(
      """
      SELECT min(first_seq), max(first_seq) FROM block \
      WHERE newest >= $1 AND oldest <= $2 AND first_seq > $3 AND first_seq < $4
      """, [String(oldest), String(newest), String(query.after - size), String(query.before)])
    guard let first = range.number(0, 0), let last = range.number(0, 1) else { return nil }
    var narrowed = query
    narrowed.after = max(query.after, Int(first) - 1)
    narrowed.before = min(query.before, Int(last) + size)
    return narrowed
  }
}
