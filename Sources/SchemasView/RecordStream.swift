internal import APNSMockInbox
internal import APNSMockPostgreSQLStore

/// The records of a query in one schema, of which some are in memory.
struct RecordStream: Sendable {
  /// The number of records that are read at first, because often few are needed, and later. With those of 16 schemas some megabytes.
  private static let (firstSize, laterSize) = (8, 264)

  private let store: PostgreSQLStore
  private var rest: StoreQuery
  /// The number of records to read the next time; 0 if all were read.
  private var size = firstSize
  /// The records that were read last.
  var records: [Record] = []
  private var position = 0

  init(_ query: StoreQuery, of store: PostgreSQLStore) { (rest, self.store) = (query, store) }

  /// The next record; nil after the last one.
  var first: Record? { position < records.count ? records[position] : nil }

  /// Goes on to the next record.
  ///
  /// - Returns: Whether others were read.
  mutating func advance() throws -> Bool {
    position += 1
    guard position == records.count, size > 0 else { return false }
    try read()
    return true
  }

  /// Reads some records.
  mutating func read() throws {
    var found: [Record] = []
    let limit = size
    try store.forEach(rest) { record in
      found.append(copy record)
      return found.count < limit
    }
    if let last = found.last?.seq {
      if rest.newestFirst { rest.before = last } else { rest.after = last }
    }
    size = found.count < limit ? 0 : Self.laterSize
    (records, position) = (found, 0)
  }
}
