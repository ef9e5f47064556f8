internal import NIOConcurrencyHelpers

/// Every push that came in, in the order it came, as far as the limits allow.
///
/// Any thread may call it. Writers hold the lock for the time of an append; readers hold it to take a snapshot, whatever
/// its size, and look for records outside.
public final class Inbox: Sendable {
  private struct State {
    var records = RecordStorage()
    var nextSeq = 1
    var evicted = 0
    var lastEvicted = 0
    var counts = PushCounts()
  }

  /// How many records are kept at most.
  public let maxRecords: Int
  /// How much memory the records may take, in bytes.
  public let maxBytes: Int

  // Not Synchronization's Mutex: ThreadSanitizer does not see its futex on Linux and takes every waiting thread for a race.
  private let state: NIOLockedValueBox<State>
  /// Tells retries from new pushes.
  public let attempts: Attempts
  /// Tells those who wait for pushes.
  let watch = InboxWatch()
  /// Judges the provider when somebody asks.
  let conduct = Conduct()
  /// The server's clock, in milliseconds since 1970; nil for an inbox that was imported.
  let now: (@Sendable () -> Int64)?

  /// An empty inbox. The limits are at least one record; the newest record is kept however large it is.
  ///
  /// - Parameter now: the server's clock, in milliseconds since 1970, for findings about what did not follow in time.
  public init(
    maxRecords: Int = 100_000, maxBytes: Int = 256 << 20, attempts: Attempts = Attempts(),
    now: (@Sendable () -> Int64)? = nil
  ) {
    self.now = now
    self.maxRecords = max(1, maxRecords)
    self.maxBytes = maxBytes
    self.attempts = attempts
    state = NIOLockedValueBox(State())
  }

  /// The records of another inbox, with their numbers. It has no limits.
  init(imported records: RecordStorage, lastSeq: Int) {
    now = nil
    maxRecords = .max
    maxBytes = .max
    attempts = Attempts()
    state = NIOLockedValueBox(State(records: records, nextSeq: lastSeq + 1))
  }

  // MARK: - Writing

  /// Adds what one read from a connection brought, numbers it, and leaves `records` empty with its room kept.
  ///
  /// When it returns, every reader sees them; the answers may go out. Older records go when the limits say so.
  ///
  /// - Returns: the `seq` of the first one; the others follow without a gap. 0 if there were none.
  @discardableResult
  public func append(_ records: inout [Record]) -> Int {
    guard !records.isEmpty else { return 0 }
    let first = state.withLockedValue { state in
      let first = state.nextSeq
      for index in records.indices { records[index].seq = first + index }
      state.nextSeq += records.count
      state.counts.add(records)
      state.records.take(&records)
      evict(from: &state)
      return first
    }
    watch.appended(to: self)
    return first
  }

  /// Adds one record and returns its `seq`.
  @discardableResult
  public func append(_ record: Record) -> Int {
    var batch = [record]
    return append(&batch)
  }

  /// Says how the story of a pending record ended.
  ///
  /// - Returns: the record as it is now; nil if it is not there any more.
  @discardableResult
  public func finish(_ seq: Int, with ending: Record.End) -> Record? {
    let record = state.withLockedValue { state in
      state.counts.add(ending)
      return state.records.update(seq) { $0.end(ending) }
    }
    if record != nil { watch.finished(seq, in: self) }
    return record
  }

  private func evict(from state: inout State) {
    while state.records.count > maxRecords || (state.records.bytes > maxBytes && state.records.count > 1),
      let oldest = state.records.removeFirst()
    {
      state.evicted += 1
      state.counts.addEvicted()
      state.lastEvicted = oldest
    }
  }

  /// Empties the inbox, forgets attempts and the count of evicted records. Numbers go on where they were.
  ///
  /// - Parameter reset: what is set back together with the inbox, for those who follow what happens.
  /// - Returns: how many records there were.
  @discardableResult
  public func removeAll(reset: [String] = ["inbox"]) -> Int {
    // What was in it is freed after the lock is released: with a million records that takes a while.
    attempts.removeAll()
    let former = state.withLockedValue { state in
      let former = state
      state = State()
      state.nextSeq = former.nextSeq
      state.counts = former.counts
      return former
    }
    conduct.forget(through: former.nextSeq - 1)
    watch.emptied(self, through: former.nextSeq - 1, reset: reset)
    return former.records.count
  }

  /// Removes the selected records.
  ///
  /// - Returns: how many they were.
  @discardableResult
  public func remove(_ selection: Selection) -> Int {
    var seqs: [Int] = []
    snapshot().records.forEach(in: selection) { record in
      seqs.append(record.seq)
      return true
    }
    return state.withLockedValue { $0.records.remove(seqs) }
  }

  /// Removes the selected records like `remove(_:)`, looking for them in slices between which it suspends.
  ///
  /// - Returns: the number of records removed.
  /// - Throws: `FilterError` if the selection exceeds the work budget; `CancellationError` if the task was cancelled. No
  ///   record was removed then.
  public func removeInSlices(_ selection: Selection) async throws -> Int {
    var seqs: [Int] = []
    let snapshot = snapshot()
    try await snapshot.forEachSlice(of: selection) { part in
      snapshot.records.forEach(in: part) { record in
        seqs.append(record.seq)
        return true
      }
    }
    let found = seqs
    return state.withLockedValue { $0.records.remove(found) }
  }

  // MARK: - Reading

  /// All that is in it now; later pushes do not change it.
  public func snapshot() -> InboxSnapshot {
    state.withLockedValue {
      InboxSnapshot(
        records: $0.records, lastSeq: $0.nextSeq - 1, evicted: $0.evicted, lastEvicted: $0.lastEvicted)
    }
  }

  /// What was counted of all pushes until now.
  public var counts: PushCounts { state.withLockedValue { $0.counts } }

  /// The record with this number; nil if it is not there, or not any more.
  public func record(seq: Int) -> Record? {
    state.withLockedValue { $0.records.record(seq) }
  }
}
