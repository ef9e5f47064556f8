internal import APNSMockNotation
internal import APNSMockPushQuery

/// The content of an inbox at one moment. Copies are cheap; a snapshot keeps its records alive.
package struct InboxSnapshot: Sendable {
  private(set) var records: SnapshotRecords
  /// The `seq` of the newest record ever appended; 0 before the first.
  package let lastSeq: Int
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  let lastEvicted: Int

  /// The number of records.
  package var count: Int { records.count }
  /// The memory of the records, in bytes.
  package var bytes: Int { records.bytes }

  /// No record with a smaller `seq` is left; above `lastSeq` if none is.
  var firstSeq: Int {
    let removed = records.stored?.after ?? records.recent.first.map { $0 - 1 } ?? lastSeq
    return max(removed, lastEvicted) + 1
  }

  /// The same content, of which reading leaves out the records whose rows in the store are damaged. Otherwise they are an error.
  package var leavingOutDamage: InboxSnapshot {
    var snapshot = self
    snapshot.records.stored?.skipped = StoredRecords.Skipped()
    return snapshot
  }

  /// Whether reading has left out records.
  var hasLeftOut: Bool { records.stored?.skipped?.last ?? 0 > 0 }

  /// Returns whether no record with a `seq` above `seq` was evicted, or was left out so far.
  package func isComplete(after seq: Int) -> Bool { max(lastEvicted, records.stored?.skipped?.last ?? 0) <= seq }

  /// Returns one page of the records that `query` selects.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func page(_ query: PageQuery) throws(StoreUnavailable) -> InboxPage {
    var page = PageBuilder(query)
    try page.add(query.selection, of: records)
    return page.page(of: self)
  }

  /// Returns one page of the records that `query` selects, like `page(_:)`, suspending after at most 512 records.
  ///
  /// - Parameter maxBytes: The maximum size of the records that the page keeps in memory if the inbox has a store, in
  ///   bytes. It has only the `seq` of the records after these.
  /// - Throws: `FilterError` if the query exceeds the work limit; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read.
  package func pageInSlices(_ query: PageQuery, maxBytes: Int = .max) async throws -> InboxPage {
    let isCountable = records.canCount(query.selection)
    var page = PageBuilder(query, maxBytes: maxBytes, stopsWhenFull: isCountable)
    let isLong = records.stored != nil && !query.countsExactly
    var deadline: ContinuousClock.Instant?
    if !page.hasStopped {
      try await forEachSlice(
        // A time limit bounds the work.
        of: query.selection, newestFirst: query.order == .descending, checksWork: query.timeLimit == nil
      ) { part in
        // A page that ends after an empty part would have the same next page again.
        guard part.after < part.before - 1 else { return true }
        deadline = deadline ?? query.timeLimit.map { .now + $0 }
        try page.add(part, of: records)
        if page.hasStopped { return false }
        page.examined += 1
        if page.isFull {
          guard isLong, page.matched > PageQuery.quickCount || page.examined > Self.quickSlices else { return true }
        } else {
          guard query.limit > 0, let deadline, deadline <= .now else { return true }
        }
        page.stop(after: part)
        return false
      }
    }
    if page.hasStopped {
      let found = try await records.count(
        // A page without records is asked for its count.
        of: page.rest,
        limit: query.countsExactly || query.limit == 0 ? nil : PageQuery.quickCount + 1 - page.matched)
      page.matched += found.count
      page.isCounted = found.isComplete
    }
    return page.page(of: self)
  }

  /// The number of slices that are examined to count the matches in a store although the page is full: some hundred
  /// milliseconds.
  private static let quickSlices = 64

  /// Calls `body` with consecutive parts of `selection` until it returns false, suspending after each.
  ///
  /// - Parameter checksWork: Whether the work must not exceed its limit.
  /// - Throws: `FilterError` if the selection exceeds the work limit; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read. Any error that `body` throws.
  func forEachSlice(
    of selection: Selection, newestFirst: Bool = false, checksWork: Bool = true, _ body: (Selection) throws -> Bool
  ) async throws {
    if checksWork { try await checkWork(of: selection) }
    let slices = try records.slices(of: selection)
    for slice in newestFirst ? slices.reversed() : slices {
      try Task.checkCancellation()
      guard try body(slice.part(of: selection)) else { return }
      await Task.yield()
    }
  }

  /// The work allowed for a query whatever the size of the inbox, in bytes: 16 conditions on the text of all records
  /// in an inbox of the default size.
  static let minWorkLimit = 4 << 30

  /// The work allowed for a query over these records, in bytes.
  var workLimit: Int { max(Self.minWorkLimit, bytes.multipliedReportingOverflow(by: 4).partialValue) }

  /// Checks that a query does not exceed the work limit, before running it.
  ///
  /// The work is the size of the records that match the conditions on other fields, multiplied by the number of
  /// conditions on the text, the payload and the findings.
  ///
  /// - Parameter limit: The maximum work, in bytes; nil for `workLimit`.
  /// - Throws: `FilterError` if the work is greater; `CancellationError` if the task was cancelled; `StoreUnavailable` if the
  ///   store cannot be read.
  package func checkWork(of selection: Selection, limit: Int? = nil) async throws {
    let conditions = selection.filter.expensiveConditionCount
    let limit = limit ?? workLimit
    // The usual case: all records together are within the limit.
    guard conditions > 0, bytes > limit / conditions else { return }
    var quick = selection
    quick.filter = selection.filter.withoutExpensiveConditions
    var size = 0
    for slice in try records.slices(of: quick) {
      try Task.checkCancellation()
      try records.forEach(in: slice.part(of: quick)) { record in
        size += RecordStorage.cost(record)
        return true
      }
      guard size <= limit / conditions else {
        throw FilterError(
          name: "text",
          message: "the query compares \(conditions) conditions on text, payload or findings with too many records",
          hint: "Use fewer of these conditions, or select fewer records with conditions on other fields, such as "
            + "topic, status or since, or with after and before. At most \(limit >> 20) MiB are compared: the size of "
            + "the selected records multiplied by the number of such conditions.")
      }
      await Task.yield()
    }
  }

  /// Collects the records of a page.
  private struct PageBuilder {
    let query: PageQuery
    private let maxBytes: Int
    private var items: [Record] = []
    /// The size of the records so far if the inbox has a store, in bytes.
    private var bytes = 0
    private var unread: [Int] = []
    var matched = 0
    /// Whether the records after those of the page are not added, because the database counts them.
    private let stopsWhenFull: Bool
    /// The number of slices that were examined.
    var examined = 0
    /// Whether `matched` is the number of all matches.
    var isCounted = true

    /// The cursor from which records were not examined, although the page is not full; nil if all were.
    private var end: Int?

    /// Whether the page has as many records as it may.
    var isFull: Bool { query.limit > 0 && count >= query.limit }

    init(_ query: PageQuery, maxBytes: Int = .max, stopsWhenFull: Bool = false) {
      self.query = query
      self.maxBytes = maxBytes
      self.stopsWhenFull = stopsWhenFull
    }

    private var count: Int { items.count + unread.count }
    private var lastSeq: Int? { unread.last ?? items.last?.seq }

    /// Notes that the search ends after the records of `part`.
    mutating func stop(after part: Selection) {
      isCounted = false
      guard !isFull else { return }
      end = query.order == .descending ? part.after + 1 : part.before - 1
    }

    /// Whether only the number of the remaining matches is missing.
    var hasStopped: Bool { stopsWhenFull && count >= query.limit }

    /// The records after those of the page.
    var rest: Selection {
      var rest = query.selection
      guard let last = lastSeq else { return rest }
      if query.order == .descending { rest.before = last } else { rest.after = last }
      return rest
    }

    mutating func add(_ selection: Selection, of records: SnapshotRecords) throws(StoreUnavailable) {
      try records.forEach(in: selection, newestFirst: query.order == .descending) { record in
        matched += 1
        if count < query.limit { append(record, isShared: records.stored == nil) }
        return !hasStopped
      }
    }

    /// - Parameter isShared: Whether the record is in the inbox's memory anyway.
    private mutating func append(_ record: borrowing Record, isShared: Bool) {
      guard !isShared else { return items.append(copy record) }
      bytes += RecordStorage.cost(record)
      guard unread.isEmpty, bytes <= maxBytes else { return unread.append(record.seq) }
      var item = copy record
      // Otherwise it would keep all records in memory that were read with it.
      item.move(to: .ofOne())
      items.append(item)
    }

    func page(of snapshot: InboxSnapshot) -> InboxPage {
      InboxPage(
        items: items, unread: unread, next: end ?? (matched > count || !isCounted ? lastSeq : nil),
        matched: isCounted ? matched : nil,
        total: snapshot.count, evicted: snapshot.evicted, firstSeq: snapshot.firstSeq,
        lastSeq: snapshot.lastSeq,
        isComplete: snapshot.isComplete(after: query.selection.after))
    }
  }

  /// Returns the records with these `seq` values, which ascend or descend, in the same order. Those that are not in the
  /// inbox are omitted.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func records(_ seqs: some BidirectionalCollection<Int>) throws(StoreUnavailable) -> [Record] {
    guard let first = seqs.first, let last = seqs.last else { return [] }
    var selection = Selection.allKinds
    (selection.after, selection.before) = (min(first, last) - 1, max(first, last) + 1)
    selection.filter.seqs = first <= last ? SeqRanges(seqs) : SeqRanges(seqs.reversed())
    var found: [Record] = []
    do throws(StoreUnavailable) {
      for slice in try records.slices(of: selection) {
        try records.forEach(in: slice.part(of: selection)) { record in
          found.append(copy record)
          return true
        }
      }
    } catch {
      // Deleted while they were read.
      if let stored = records.stored, stored.writer.emptiedThrough >= max(first, last) { return [] }
      throw error
    }
    return first <= last ? found : found.reversed()
  }

  /// Returns all attempts with this `apns-id`, compared without case, in order of arrival. Suspends after at most
  /// 512 records.
  ///
  /// - Throws: `CancellationError` if the task was cancelled; `StoreUnavailable` if the store cannot be read.
  package func attempts(apnsID: String) async throws -> [Record] {
    var found: [Record] = []
    var selection = Selection.allKinds
    try selection.add(literal: apnsID, of: .apnsID)
    try await forEachSlice(of: selection) { part in
      try records.forEach(in: part) { record in
        found.append(copy record)
        return true
      }
      return true
    }
    return found
  }

  /// Returns the records for which `isWanted` returns true, in order of arrival. Suspends after at most 512 records.
  ///
  /// - Throws: `CancellationError` if the task was cancelled; `StoreUnavailable` if the store cannot be read.
  package func records(where isWanted: (borrowing Record) -> Bool) async throws -> [Record] {
    var found: [Record] = []
    try await forEachSlice(of: .allKinds) { part in
      try records.forEach(in: part) { record in
        if isWanted(record) { found.append(copy record) }
        return true
      }
      return true
    }
    return found
  }
}

/// A page of the records of an inbox.
package struct InboxPage: Sendable {
  /// The records, in the requested order, without those of `unread`.
  package let items: [Record]
  /// The `seq` of the records after `items`, which would need too much memory together.
  package let unread: [Int]
  /// The cursor for the next page: `after` in ascending order, `before` in descending order. Nil on the last page. With a
  /// time limit, there may be a next page although this one has fewer records than it may.
  package let next: Int?
  /// The number of matching records between the cursors, on this page or not; nil if counting them would take long.
  package let matched: Int?
  /// The number of records in the inbox.
  package let total: Int
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  /// No record of the inbox has a smaller `seq`.
  package let firstSeq: Int
  /// The `seq` of the newest record ever appended; 0 before the first.
  package let lastSeq: Int
  /// Whether no record after the cursor was evicted, so that none can be missing.
  package let isComplete: Bool
}
