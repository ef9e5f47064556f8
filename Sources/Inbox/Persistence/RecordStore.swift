package import APNSMockRules
package import APNSMockNotation
package import APNSMockPushQuery

/// A database that keeps the records of an inbox after they have left memory, and after the server has ended.
///
/// Changes come from one thread, that of `RecordWriter`; any thread may read at the same time. A method throws an error
/// of the database, whose description is a sentence for people.
package protocol RecordStore: Sendable {
  /// The kind of the store and its place, such as `sqlite:inbox.db`, for people.
  var place: String { get }

  /// What the store contains when it is opened.
  var initialContents: StoredContents { get }

  /// The nanoseconds without an answer of the database after which it counts as failing.
  var stallTime: Int64 { get }

  /// Whether the file of the store was removed or replaced, so that nothing written now would be there after a restart.
  var isLost: Bool { get }

  /// Whether no other server can have taken over the store. Answers leave before their pushes are written only then.
  var isExclusive: Bool { get }

  /// Whether the database is another program, for which no event loop may wait.
  var isRemote: Bool { get }

  /// The number of queries that are to read at the same time.
  var concurrentReads: Int { get }

  /// Whether others write the store, and this program only reads it.
  var isReadOnly: Bool { get }

  /// Returns what a store that others write contains now; nil if this program writes it.
  func currentContents() throws -> StoredContents?

  /// Whether it is a view of several servers. The `seq` of a record is then an internal number of the view.
  var isOfSeveralServers: Bool { get }

  /// The runs of test suites in a store that others write, as they were when its contents were last read.
  var runs: ViewedRuns { get }

  /// The servers of a store that others write.
  var servers: [ViewedServer] { get }

  /// Returns the `seq` in a view of several servers of a record of one of them; nil if there is no such server, or if it has no such
  /// `seq` yet. There may be no such record.
  func seq(of origin: RecordOrigin) throws -> Int?

  /// Returns the server and the number of a `seq` of a view of several servers; nil if there is none. There may be no such record.
  func origin(of seq: Int) throws -> RecordOrigin?

  /// Makes all changes of a batch in one transaction. If it throws, nothing has changed, or a second call with the same batch
  /// recognizes that it was written.
  ///
  /// - Parameter progress: Is called when the database has received a part of the batch.
  func write(_ batch: borrowing StoreBatch, progress: () -> Void) throws -> StoreBatch.Result

  /// Calls `visit` with each record that matches `query`, until it returns false. More records may be visited than
  /// match the conditions of the query, never fewer.
  func forEach(_ query: StoreQuery, _ visit: (borrowing Record) -> Bool) throws

  /// Returns the number of records that meet the conditions of `query`, which must be exact, or `limit` if there are more.
  func count(_ query: StoreQuery, limit: Int) throws -> Int

  /// Returns parts of a range that contain all records that match `query`, in ascending order.
  ///
  /// - Parameter span: The number of `seq` values that a part covers at most, unless an index finds its records.
  func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice]

  /// Returns whether a record with this rule, profile or reason that is not one of APNs was ever stored.
  func contains(name: String) throws -> Bool

  /// Returns the state of the server that was stored last (`StoredServerState`), by name.
  func serverState() throws -> [String: String]

  /// Returns the `seq` of the newest pushes that wait for their device, or have (`DeliveryState.ofStorage`), in ascending order.
  func seqsOfStorage(limit: Int) throws -> [Int]

  /// Ends all use of the database.
  func close() throws
}

extension RecordStore {
  package var stallTime: Int64 { 750_000_000 }
  package var isLost: Bool { false }
  package var isExclusive: Bool { true }
  package var isRemote: Bool { false }
  package var concurrentReads: Int { 2 }
  package var isReadOnly: Bool { false }
  package func currentContents() throws -> StoredContents? { nil }
  package var isOfSeveralServers: Bool { false }
  package var runs: ViewedRuns { ViewedRuns() }
  package var servers: [ViewedServer] { [] }
  package func seq(of origin: RecordOrigin) throws -> Int? { nil }
  package func origin(of seq: Int) throws -> RecordOrigin? { nil }
  package func serverState() throws -> [String: String] { [:] }
  package func seqsOfStorage(limit: Int) throws -> [Int] { [] }
}

/// A server that writes what a view shows.
package struct ViewedServer: Sendable {
  /// The name: that of its schema; empty in a view of one server.
  package let name: String
  /// Another number after its inbox was emptied, or its schema was removed and created again.
  package let generation: Int
  /// Its records; nil if they cannot be read now.
  package let store: (any RecordStore)?
  /// Records up to this `seq` were removed when its inbox was emptied.
  package let emptiedThrough: Int
  /// Records up to this `seq` are not analyzed for findings, because they are from before the start of the view.
  package let analyzedAfter: Int
  /// The `seq` of its newest record.
  package let lastSeq: Int

  /// Creates a description.
  package init(
    name: String, generation: Int, store: (any RecordStore)?, emptiedThrough: Int, analyzedAfter: Int, lastSeq: Int
  ) {
    (self.name, self.generation, self.store) = (name, generation, store)
    (self.emptiedThrough, self.analyzedAfter, self.lastSeq) = (emptiedThrough, analyzedAfter, lastSeq)
  }
}

extension DeliveryState {
  /// The states of pushes that wait for their device, or that left the storage of APNs.
  package static let ofStorage = [
    storedOffline, storedForPower, deliveredFromStorage, discardedExpired, discardedUnregisteredFromStorage,
    discardedDisabledFromStorage,
  ]

  /// A condition in SQL for `ofStorage`. The index with it is used for a query that repeats it.
  package static let isOfStorage = "delivery IN (\(ofStorage.map { "'\($0.text)'" }.joined(separator: ", ")))"
}

/// What a store contains.
package struct StoredContents: Sendable, Equatable {
  /// The `seq` of the newest record ever stored; 0 before the first.
  package var lastSeq = 0
  /// Records up to this `seq` were removed when the inbox was emptied.
  package var emptiedThrough = 0
  /// The number of records.
  package var count = 0
  /// The size of the records, in bytes.
  package var bytes = 0
  /// The number of records evicted since the inbox was last emptied.
  package var evicted = 0
  /// The `seq` of the newest evicted record; 0 if there is none.
  package var lastEvicted = 0
  /// The number of the newest connection.
  package var lastConnection = 0
  /// The seed of servers that are started without one; nil if the store keeps none.
  package var seed: UInt64?

  /// Creates the contents of an empty store.
  package init() {}
}

/// Changes of a store that belong together.
package struct StoreBatch: Sendable {
  /// The number of the batch, different for each since the start.
  package var number = 0
  /// New records in ascending order.
  package var appended: [Record] = []
  /// The current state of records that were written before.
  package var changed: [Record] = []
  /// The states of the deliveries of other records, by their `seq`. There may be no such record.
  package var deliveries: [Int: DeliveryState] = [:]
  /// The `seq` of records to remove.
  package var deleted: [Int] = []
  /// Whether records up to `contents.emptiedThrough` are removed.
  package var isEmptied = false
  /// The maximum number of records; the oldest that exceed it are removed.
  package var maxRecords = Int.max
  /// The maximum size of the records in bytes; the oldest that exceed it are removed.
  package var maxBytes = Int.max
  /// Records that arrived before this range are removed; nil if age is not limited. The range ends with the present time, or
  /// that of the machine if it is later.
  package var keptTimes: ClosedRange<ServerTime>?
  /// Whether the batch is to be written although nothing changes, so that the store removes records.
  package var isRequired = false
  /// What the store contains after the batch, without the records that it removes.
  package var contents = StoredContents()
  /// Changed rows of the state of the server.
  package var serverState: StoredServerState.Rows = [:]

  /// What a batch removed.
  package struct Result: Sendable {
    /// The records to remove that were there.
    package var deleted = RemovedRecords()
    /// The oldest records, because of a limit.
    package var evicted = RemovedRecords()
    /// Whether more records have to be removed.
    package var isIncomplete = false
    /// Creates the result of a batch that removed nothing.
    package init() {}
  }

  /// Creates a batch that changes nothing.
  package init() {}

  /// The maximum number of the oldest records that one batch removes, so that no batch takes long.
  package static let removalLimit = 2000

  /// Whether records may have to be removed because of a limit.
  private var mayExceedLimits: Bool { ExcessRecords(self, of: contents).arePossible }

  /// Whether nothing changes.
  package var isEmpty: Bool {
    appended.isEmpty && changed.isEmpty && deliveries.isEmpty && deleted.isEmpty && !isEmptied && serverState.isEmpty
      && !mayExceedLimits
      && !isRequired
  }
}

/// Records that a store has removed.
package struct RemovedRecords: Sendable {
  /// The number of records.
  package var count = 0
  /// Their size in bytes.
  package var bytes = 0
  /// The `seq` of the newest of them; 0 if there is none.
  package var lastSeq = 0

  /// Creates the description of no records.
  package init() {}
}

/// Finds the oldest records of a store that exceed the limits of a batch.
package struct ExcessRecords {
  /// The records to remove.
  package private(set) var removed = RemovedRecords()
  /// These, and those after them that arrived while the clock was ahead.
  private var examined = RemovedRecords()
  private let count: Int
  private let excess: Int
  private let excessBytes: Int
  private let keptTimes: ClosedRange<ServerTime>?

  /// - Parameter contents: What the store contains with the records that may exceed the limits.
  package init(_ batch: StoreBatch, of contents: StoredContents) {
    count = contents.count
    excess = contents.count > batch.maxRecords ? contents.count - batch.maxRecords : 0
    // The newest record stays, whatever its size.
    excessBytes = contents.count > 1 && contents.bytes > batch.maxBytes ? contents.bytes - batch.maxBytes : 0
    keptTimes = batch.keptTimes
  }

  /// Whether there may be any.
  package var arePossible: Bool { excess > 0 || excessBytes > 0 || keptTimes != nil }

  /// Examines the next record, in ascending order.
  ///
  /// A record that arrived while the clock was ahead is removed together with the next one that is too old: its own time
  /// may be years away.
  ///
  /// - Returns: Whether the record after it may exceed a limit too.
  package mutating func examine(seq: Int, receivedAt: ServerTime, size: Int) -> Bool {
    let isOld = keptTimes.map { receivedAt < $0.lowerBound } ?? false
    let isLarge = examined.bytes < excessBytes && examined.count + 1 < count
    let exceedsLimit = isOld || isLarge || examined.count < excess
    let isAhead = keptTimes.map { receivedAt > $0.upperBound } ?? false
    guard exceedsLimit || isAhead else { return false }
    examined.count += 1
    examined.bytes += size
    examined.lastSeq = seq
    if exceedsLimit { removed = examined }
    return true
  }

  /// The records that arrived while the clock was ahead, if so many were examined that one is to be looked for behind them that
  /// did not: the `seq` of the newest of them, and the end of the kept times.
  package var unresolved: (lastSeq: Int, latestTime: ServerTime)? {
    guard removed.count == 0, examined.count >= StoreBatch.removalLimit, let keptTimes else { return nil }
    return (examined.lastSeq, keptTimes.upperBound)
  }

  /// Removes the examined records if one behind them that did not arrive while the clock was ahead is too old.
  package mutating func resolve(nextReceivedAt time: ServerTime) {
    if let keptTimes, time < keptTimes.lowerBound { removed = examined }
  }
}

/// The records of a store to read.
package struct StoreQuery: Sendable {
  /// Only records with a larger `seq`.
  package var after: Int
  /// Only records with a smaller `seq`.
  package var before: Int
  /// Whether the newest record comes first.
  package var newestFirst = false
  /// Is called with the `seq` of each record that cannot be read, because its row was damaged, and with the error; the record is
  /// then left out. Nil to throw the error.
  package var skip: (@Sendable (Int, any Error) -> Void)?
  /// Conditions on columns, all of which must hold.
  package private(set) var conditions: [ColumnCondition]
  /// The filter that the records are compared with afterwards.
  private let filter: Filter
  /// Whether every record that meets the conditions matches, so that the database can count the matches.
  let isExact: Bool

  /// - Parameter usesResults: Whether there are conditions on columns that may have changed since they were written.
  init(_ selection: Selection, after: Int, before: Int, newestFirst: Bool = false, usesResults: Bool = true) {
    (self.after, self.before, self.newestFirst) = (after, before, newestFirst)
    filter = selection.filter
    conditions = selection.filter.groups.flatMap { ColumnCondition.conditions(of: $0.conditions) }
    let areComplete =
      selection.filter.seqs == nil && selection.filter.excludedSeqs == nil
      && selection.filter.groups.allSatisfy {
        ColumnCondition.areExact($0.conditions)
      }
    isExact = areComplete && (usesResults || !conditions.contains { RecordColumn.changing.contains($0.column) })
    if !usesResults { conditions.removeAll { RecordColumn.changing.contains($0.column) } }
    if selection.isOfPushesOnly {
      conditions.append(ColumnCondition(column: .kind, test: .texts([RequestKind.push.rawValue], foldsCase: false)))
    }
  }

  /// Whether `mayMatch` reads the header fields, and the payload.
  package var readsContents: (headers: Bool, payload: Bool) {
    let prefilters = filter.groups.lazy.filter { !$0.conditions.matchesMissingValue && !$0.storePrefilter.isEmpty }.map(
      \.storePrefilter)
    return (prefilters.contains(where: \.searchesHeaders), prefilters.contains(where: \.searchesBody))
  }

  /// The prefilters of conditions on contents for which a database can search, so that it returns fewer records: one for each
  /// field whose conditions must hold.
  package var searchablePrefilters: [FieldPrefilter] {
    filter.groups.lazy.filter { !$0.conditions.matchesMissingValue }.map(\.storePrefilter).filter {
      $0.searchedBytes != nil
    }
  }

  /// Returns false only if no record with these contents matches. The test takes less time than creating the record.
  package func mayMatch(headers: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    filter.groups.allSatisfy {
      $0.conditions.matchesMissingValue || $0.storePrefilter.mayHold(inParts: headers, body: payload)
    }
  }

  /// The hashes of the values of which an indexed column must have one; nil if the condition does not restrict it.
  package func hashes(of column: RecordColumn.Hashed) -> [UInt32]? {
    for condition in conditions where condition.column == column.column && !condition.isNegated {
      switch condition.test {
      case .texts(let texts, _): return texts.map { StoredHash.of($0) }
      case .ranges(let ranges) where ranges.allSatisfy({ $0.lowerBound == $0.upperBound }):
        return ranges.map { StoredHash.of(UInt64(bitPattern: $0.lowerBound)) }
      case .ranges: return nil
      }
    }
    return nil
  }
}

/// A hash by which a store finds the few records of a device token, a push key or an `apns-id` among millions.
package enum StoredHash {
  /// Returns the hash of a text, the same for texts that differ only in case.
  package static func of(_ text: String) -> UInt32 { of(PushKey(deviceToken: text).number) }

  /// Returns the hash of a text, the same for texts that differ only in case.
  package static func of(_ text: UnsafeRawBufferPointer) -> UInt32 { of(PushKey(deviceToken: text).number) }

  /// Returns the hash of a number.
  package static func of(_ number: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: number ^ number >> 32) }
}

/// A condition that a database can evaluate. A record that does not meet it does not match the filter that it comes
/// from; one that meets it may or may not match.
package struct ColumnCondition: Sendable {
  /// How values are compared.
  package enum Test: Sendable {
    /// The value is one of these.
    case texts([String], foldsCase: Bool)
    /// The value is in one of these ranges.
    case ranges([ClosedRange<Int64>])
  }

  /// The column.
  package let column: RecordColumn
  /// The values.
  package let test: Test
  /// Whether the condition holds for all other values, and without a value.
  package var isNegated = false

  /// Returns the conditions that the database can evaluate.
  static func conditions(of field: FieldConditions) -> [ColumnCondition] {
    guard let column = RecordColumn(field.subject) else { return [] }
    return [(field.wanted, false), (field.unwanted, true)].compactMap { tests, isNegated in
      guard !tests.isEmpty, tests.values.isEmpty, let test = test(column, tests) else { return nil }
      return ColumnCondition(column: column, test: test, isNegated: isNegated)
    }
  }

  /// Returns whether a field meets its conditions if its column does.
  static func areExact(_ field: FieldConditions) -> Bool {
    guard let column = RecordColumn(field.subject), column.isComparedExactly else { return false }
    return [field.wanted, field.unwanted].allSatisfy { tests in
      tests.isEmpty
        || tests.values.isEmpty && test(column, tests) != nil
          && Set(tests.texts.map(\.foldsCase)).count < 2
    }
  }

  private static func test(_ column: RecordColumn, _ tests: FieldConditions.Tests) -> Test? {
    let texts = tests.texts.map(\.literal)
    // The column has U+FFFD in place of invalid UTF-8.
    guard !texts.contains(where: { $0?.contains("\u{FFFD}") ?? true }) else { return nil }
    if column == .pushKey {
      let keys = texts.compactMap { $0.flatMap { PushKey(text: $0) } }
      return .ranges(keys.map { Int64(bitPattern: $0.number)...Int64(bitPattern: $0.number) })
    }
    if !tests.numbers.isEmpty { return texts.isEmpty ? .ranges(tests.numbers) : nil }
    return column.isNumber ? nil : .texts(texts.compactMap(\.self), foldsCase: tests.texts.contains(where: \.foldsCase))
  }
}
