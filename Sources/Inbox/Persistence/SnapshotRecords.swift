internal import Synchronization

/// The records of a snapshot: the newest, which are in memory, and those of a store, which are older.
struct SnapshotRecords: Sendable {
  /// The records in memory.
  let recent: RecordStorage
  /// The older records; nil without a store.
  var stored: StoredRecords?

  /// The number of records.
  var count: Int { stored?.count ?? recent.count }
  /// The size of the records, in bytes.
  var bytes: Int { stored?.bytes ?? recent.bytes }

  /// Returns the record with this `seq`.
  ///
  /// - Throws: `StoreUnavailable` if it cannot be read, as all methods do that read the store.
  func record(_ seq: Int) throws(StoreUnavailable) -> Record? {
    guard let stored, seq < stored.before else { return recent.record(seq) }
    return try stored.record(seq)
  }

  /// Calls `body` with each selected record, in order or newest first, until it returns false.
  func forEach(
    in selection: Selection, newestFirst: Bool = false, _ body: (borrowing Record) -> Bool
  ) throws(StoreUnavailable) {
    if let failure = selection.filter.failure { throw failure }
    guard let stored, selection.after < stored.before - 1 else {
      return recent.forEach(in: selection, newestFirst: newestFirst, body)
    }
    var wantsMore = true
    func visit(_ record: borrowing Record) -> Bool {
      wantsMore = body(record)
      return wantsMore
    }
    if newestFirst {
      recent.forEach(in: selection, newestFirst: true, visit)
      if wantsMore { try stored.forEach(in: selection, newestFirst: true, visit) }
    } else {
      try stored.forEach(in: selection, newestFirst: false, visit)
      if wantsMore { recent.forEach(in: selection, visit) }
    }
  }

  /// The bounds of `selection` cut into parts that take a short time, in ascending order.
  func slices(of selection: Selection) throws(StoreUnavailable) -> [RecordSlice] {
    if let failure = selection.filter.failure { throw failure }
    return (try stored?.slices(of: selection) ?? []) + recent.slices(of: selection)
  }

  /// Whether the store can count the selected records without reading them.
  func canCount(_ selection: Selection) -> Bool { stored?.query(of: selection).isExact ?? false }

  /// Counts the selected records. The store must be able to.
  ///
  /// - Parameter limit: The number of matches after which counting ends, as it does after some hundred milliseconds;
  ///   nil to count all.
  /// - Throws: `CancellationError` if the task was cancelled; `StoreUnavailable` if the store cannot be read.
  func count(of selection: Selection, limit: Int?) async throws -> (count: Int, isComplete: Bool) {
    var count = 0
    let maxCount = limit ?? .max
    // Without suspending: a millisecond.
    recent.forEach(in: selection) { _ in
      count += 1
      return count < maxCount
    }
    let ranges = stored?.countingRanges(of: selection) ?? []
    for (number, range) in ranges.enumerated() {
      try Task.checkCancellation()
      guard count < maxCount, limit == nil || number < Self.quickRanges else { return (count, false) }
      count += try stored?.count(of: range.part(of: selection), limit: maxCount - count) ?? 0
      await Task.yield()
    }
    return (count, count < maxCount)
  }

  /// The number of ranges of a store that are counted unless all are to be.
  private static let quickRanges = 4
}

/// The records of a store between two `seq` values, for one snapshot.
struct StoredRecords: Sendable {
  /// Remembers that records were left out.
  final class Skipped: Sendable {
    private let newest = Atomic<Int>(0)

    /// The `seq` of the newest record that was left out; 0 if none was.
    var last: Int { newest.load(ordering: .relaxed) }

    func add(_ seq: Int) { newest.max(seq, ordering: .relaxed) }
  }

  let writer: RecordWriter
  /// Records up to this `seq` were removed.
  let after: Int
  /// Records from this `seq` are in memory.
  let before: Int
  /// The number of all records of the inbox.
  let count: Int
  /// Their size in bytes.
  let bytes: Int
  /// What has changed in records since they were written.
  let changes: StoredChanges
  /// The records that were left out because their rows are damaged; nil if reading them is an error.
  var skipped: Skipped?

  /// The number of `seq` values that are read without suspending: some milliseconds.
  private static let span = 4096

  func record(_ seq: Int) throws(StoreUnavailable) -> Record? {
    guard seq > after, seq < before else { return nil }
    var found: Record?
    try read(Selection.allKinds, after: seq - 1, before: seq + 1, newestFirst: false) { record in
      found = copy record
      return false
    }
    return found
  }

  func forEach(
    in selection: Selection, newestFirst: Bool, _ body: (borrowing Record) -> Bool
  ) throws(StoreUnavailable) {
    try read(selection, after: selection.after, before: selection.before, newestFirst: newestFirst) { record in
      // The store returns more records than match.
      !selection.contains(record) || body(record)
    }
  }

  /// The number of records that are read although they are not wanted, rather than to ask the database once more.
  private static let maxGap = 16

  /// Calls `visit` with each of the records with these `seq` values, which must ascend, and with some between them.
  func forEach(in seqs: [Int], _ visit: (borrowing Record) -> Void) throws(StoreUnavailable) {
    var start = seqs.startIndex
    while start < seqs.endIndex {
      var end = start + 1
      while end < seqs.endIndex, seqs[end] - seqs[end - 1] <= Self.maxGap { end += 1 }
      try read(Selection.allKinds, after: seqs[start] - 1, before: seqs[end - 1] + 1, newestFirst: false) { record in
        visit(record)
        return true
      }
      start = end
    }
  }

  private func read(
    _ selection: Selection, after: Int, before: Int, newestFirst: Bool, _ visit: (borrowing Record) -> Bool
  ) throws(StoreUnavailable) {
    let (after, before) = (max(after, self.after), min(before, self.before))
    guard after < before - 1 else { return }
    try reading { store in
      let query = query(of: selection, after: after, before: before, newestFirst: newestFirst)
      guard !changes.isEmpty else { return try store.forEach(query, visit) }
      try store.forEach(query) { record in
        if let changed = changes.state(of: record) { return visit(changed) }
        return visit(record)
      }
    }
  }

  /// The number of `seq` values whose records the database counts without suspending: some ten milliseconds.
  private static let countingSpan = 65_536

  /// Returns the ranges whose matches the database counts one after the other, newest first.
  func countingRanges(of selection: Selection) -> [RecordSlice] {
    let (after, before) = (max(after, selection.after), min(before, selection.before))
    guard after < before - 1 else { return [] }
    return RecordSlice.parts(of: after + 1...before - 1, span: Self.countingSpan).reversed()
  }

  /// Returns the number of records that match, or `limit` if there are more.
  func count(of selection: Selection, limit: Int) throws(StoreUnavailable) -> Int {
    try reading { try $0.count(query(of: selection), limit: limit) }
  }

  /// Returns the query for the records of a selection.
  func query(of selection: Selection) -> StoreQuery {
    query(of: selection, after: selection.after, before: selection.before)
  }

  private func query(
    of selection: Selection, after: Int, before: Int, newestFirst: Bool = false
  ) -> StoreQuery {
    var query = StoreQuery(
      selection, after: after, before: before, newestFirst: newestFirst, usesResults: changes.isEmpty)
    if let skipped {
      query.skip = { [writer] seq, error in
        skipped.add(seq)
        writer.health.didLeaveOut(error)
      }
    }
    return query
  }

  /// Returns whether a record with this rule, profile or unusual reason was ever stored.
  func contains(name: String) throws(StoreUnavailable) -> Bool { try reading { try $0.contains(name: name) } }

  func slices(of selection: Selection) throws(StoreUnavailable) -> [RecordSlice] {
    let (after, before) = (max(after, selection.after), min(before, selection.before))
    guard after < before - 1 else { return [] }
    let span = min(Self.span, 8 * selection.filter.sliceSize)
    if let seqs = selection.filter.seqs { return seqs.slices(after: after, before: before, span: span) }
    return try reading { store in
      try store.parts(of: query(of: selection, after: after, before: before), span: span)
    }
  }

  /// Returns what `body` reads.
  ///
  /// - Throws: `StoreUnavailable` for any error, and if the inbox was emptied in the meantime.
  private func reading<Value>(_ body: (any RecordStore) throws -> Value) throws(StoreUnavailable) -> Value {
    BlockingCheck.checkThread()
    let value: Value
    do {
      value = try body(writer.store)
    } catch {
      writer.health.didFail(toRead: error)
      throw StoreUnavailable(error)
    }
    guard writer.emptiedThrough <= after else { throw StoreUnavailable.emptied }
    return value
  }
}

/// The store of the inbox cannot be read or written.
package struct StoreUnavailable: Error {
  /// What is wrong, for people: the row that cannot be read, or the error of the database.
  package let problem: String
  /// Whether the store works, but the inbox was emptied while its records were read.
  package let isByReset: Bool

  /// Creates the error.
  package init(problem: String) { (self.problem, isByReset) = (problem, false) }

  /// Creates the error from one of a store.
  init(_ error: any Error) { self = error as? StoreUnavailable ?? StoreUnavailable(problem: String(describing: error)) }

  private init(byReset problem: String) { (self.problem, isByReset) = (problem, true) }

  /// The inbox was emptied while its records were read.
  static let emptied = StoreUnavailable(byReset: "the inbox was emptied during the request")

  /// A change takes long to write.
  static let unwritten = StoreUnavailable(problem: "the change is not written yet; it will be")
}

extension Inbox {
  /// How often `repeatingAfterReset` begins again.
  private static let maxRepetitions = 8

  /// Returns the result of `read`, which depends on records of the store. If the inbox is emptied before `read` ends, its result or
  /// error may be wrong, and it is called again, up to eight times: after 10 milliseconds, and 10 more before each further call.
  ///
  /// - Throws: Any error that `read` throws; `StoreUnavailable` if the inbox is emptied all the time.
  package func repeatingAfterReset<Value>(_ read: () async throws -> Value) async throws -> Value {
    guard let writer else { return try await read() }
    for repetition in 0...Self.maxRepetitions {
      if repetition > 0 { try await Task.sleep(for: .milliseconds(10 * repetition)) }
      let emptiedThrough = writer.emptiedThrough
      let result: Result<Value, any Error>
      do { result = .success(try await read()) } catch { result = .failure(error) }
      let isOutdated = writer.emptiedThrough != emptiedThrough
      if case .failure(let error) = result, error is CancellationError { throw error }
      guard isOutdated else { return try result.get() }
    }
    throw StoreUnavailable.emptied
  }
}
