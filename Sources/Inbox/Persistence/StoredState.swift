internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// What a store has of an inbox, and what is not written yet. Protected by the lock of the inbox.
struct StoredState: Sendable {
  /// The number of all records of the inbox, in memory or not.
  private(set) var count: Int
  /// Their size in bytes.
  private(set) var bytes: Int
  /// Records up to this `seq` were removed when the inbox was emptied.
  private(set) var emptiedThrough: Int
  /// All records up to this `seq` were written.
  private(set) var written: Int
  /// The number of the batch that changes made now belong to.
  private(set) var batch = 1

  /// All records up to this `seq` belong to a batch that is being written, or to an earlier one.
  private var taken: Int
  /// What has changed in records since they were taken.
  private var changes = StoredChanges()
  /// What the batch that is being written changes.
  private var beingWritten = StoredChanges()
  private var deleted: [Int] = []
  /// Whether the batch that is being written removes records.
  private var beingDeleted = false
  private var isEmptied = false

  init(_ contents: StoredContents) {
    count = contents.count
    bytes = contents.bytes
    emptiedThrough = contents.emptiedThrough
    written = contents.lastSeq
    taken = contents.lastSeq
  }

  /// Notes new records.
  mutating func add(_ records: [Record]) {
    count += records.count
    for record in records { bytes += record.storedSize }
  }

  /// Notes that a record has changed.
  mutating func change(_ record: Record) { if record.seq <= taken { changes.set(record) } }

  /// Notes that the delivery of a record has changed, which does not have to be in memory, nor in the inbox.
  mutating func setDelivery(_ seq: Int, _ delivery: DeliveryState) {
    if seq <= taken, seq > emptiedThrough { changes.set(delivery, of: seq) }
  }

  /// Returns the state of a record that is not in memory, if all of it is known here.
  func changedRecord(_ seq: Int) -> Record? {
    changes.records[seq] ?? beingWritten.records[seq].map { changes.state(of: $0) ?? $0 }
  }

  /// What has changed in records with a `seq` below `first` and is not written yet.
  func unwrittenChanges(before first: Int) -> StoredChanges {
    beingWritten.part(before: first).followed(by: changes.part(before: first))
  }

  /// Whether a record with a `seq` below `first` was changed or removed and that is not written yet.
  func hasChanges(before first: Int) -> Bool {
    !deleted.isEmpty || beingDeleted || changes.concern(before: first) || beingWritten.concern(before: first)
  }

  /// Notes that records are removed from memory and are to be removed from the store.
  ///
  /// - Parameter records: The records in memory, before the removal.
  mutating func remove(_ seqs: [Int], from records: RecordStorage) {
    for seq in seqs {
      if seq <= taken {
        deleted.append(seq)
        changes.remove(seq)
      } else if let record = records.record(seq) {
        count -= 1
        bytes -= record.storedSize
      }
    }
  }

  mutating func empty(through seq: Int) {
    count = 0
    bytes = 0
    emptiedThrough = seq
    taken = seq
    changes = StoredChanges()
    beingWritten = StoredChanges()
    deleted = []
    isEmptied = true
  }

  private mutating func takeChanges(for result: inout StoreBatch) {
    result.changed = Array(changes.records.values)
    result.deliveries = changes.deliveries
    result.deleted = deleted
    result.isEmptied = isEmptied
    beingWritten = changes
    changes = StoredChanges()
    beingDeleted = !deleted.isEmpty
    deleted = []
    isEmptied = false
  }

  /// Takes what is not written yet.
  ///
  /// - Parameters:
  ///   - records: The records in memory.
  ///   - evicted: The number of evicted records, and the `seq` of the last one.
  ///   - limit: The maximum number of new records.
  ///   - byteLimit: The size of new records in bytes after which the batch gets no more.
  /// - Returns: The batch, and whether more new records remain, which belong to the batch of the same number.
  mutating func takeBatch(
    of records: RecordStorage, lastSeq: Int, evicted: (count: Int, last: Int), limit: Int, byteLimit: Int
  ) -> (batch: StoreBatch, isPartial: Bool) {
    var result = StoreBatch()
    var new = Selection.allKinds
    new.after = taken
    var size = 0
    records.forEach(in: new) { record in
      result.appended.append(copy record)
      size += record.storedSize
      return result.appended.count < limit && size < byteLimit
    }
    let isPartial = result.appended.count >= limit || size >= byteLimit
    let lastSeq = isPartial ? result.appended.last?.seq ?? lastSeq : lastSeq
    result.contents.count = count
    result.contents.bytes = bytes
    if isPartial {
      new.after = lastSeq
      records.forEach(in: new) { record in
        result.contents.count -= 1
        result.contents.bytes -= record.storedSize
        return true
      }
    }
    takeChanges(for: &result)
    result.contents.lastSeq = lastSeq
    result.contents.emptiedThrough = emptiedThrough
    result.contents.evicted = evicted.count
    result.contents.lastEvicted = evicted.last
    taken = max(taken, lastSeq)
    if !isPartial { batch += 1 }
    return (result, isPartial)
  }

  /// Notes that a batch was written.
  mutating func didWrite(through seq: Int, _ result: StoreBatch.Result) {
    written = max(written, seq)
    beingWritten = StoredChanges()
    beingDeleted = false
    didRemove(result.deleted)
    didRemove(result.evicted)
  }

  /// Notes that a batch was given up: its new records are lost. Its other changes remain to be made.
  mutating func didLose(_ batch: borrowing StoreBatch) {
    written = max(written, batch.contents.lastSeq)
    // After the inbox was emptied in the meantime, the batch does not count any more.
    if emptiedThrough < batch.contents.lastSeq {
      changes = beingWritten.followed(by: changes)
      // Those that were removed in the meantime too: the store has no row of them to remove.
      var lost: Set<Int> = []
      for record in batch.appended {
        changes.remove(record.seq)
        lost.insert(record.seq)
        count -= 1
        bytes -= record.storedSize
      }
      deleted = batch.deleted + deleted.filter { !lost.contains($0) }
    }
    isEmptied = isEmptied || batch.isEmptied
    beingWritten = StoredChanges()
    beingDeleted = false
  }

  private mutating func didRemove(_ removed: RemovedRecords) {
    // After the inbox was emptied in the meantime, these are not counted any more.
    guard removed.lastSeq > emptiedThrough else { return }
    // The totals of a file that another program has changed may be smaller.
    count = max(0, count - removed.count)
    bytes = max(0, bytes - removed.bytes)
  }
}

/// What has changed in records of a store since they were written.
struct StoredChanges: Sendable {
  /// The current state of records.
  private(set) var records: [Int: Record] = [:]
  /// The deliveries of other records, whose state is not known here.
  private(set) var deliveries: [Int: DeliveryState] = [:]

  var isEmpty: Bool { records.isEmpty && deliveries.isEmpty }

  mutating func set(_ record: Record) {
    records[record.seq] = record
    deliveries[record.seq] = nil
  }

  mutating func set(_ delivery: DeliveryState, of seq: Int) {
    if records[seq] == nil { deliveries[seq] = delivery } else { records[seq]?.delivery = delivery }
  }

  mutating func remove(_ seq: Int) {
    records[seq] = nil
    deliveries[seq] = nil
  }

  /// Returns these changes and then newer ones.
  func followed(by newer: StoredChanges) -> StoredChanges {
    if isEmpty { return newer }
    var result = self
    for record in newer.records.values { result.set(record) }
    for (seq, delivery) in newer.deliveries { result.set(delivery, of: seq) }
    return result
  }

  /// Returns the changes of records with a `seq` below `first`: nearly always none, because newer ones are in memory.
  func part(before first: Int) -> StoredChanges {
    guard concern(before: first) else { return StoredChanges() }
    var part = StoredChanges()
    part.records = records.filter { $0.key < first }
    part.deliveries = deliveries.filter { $0.key < first }
    return part
  }

  /// Whether a record with a `seq` below `first` has changed.
  func concern(before first: Int) -> Bool {
    !isEmpty && (records.keys.contains { $0 < first } || deliveries.keys.contains { $0 < first })
  }

  /// Returns the current state of a record that was read; nil if it has not changed.
  func state(of record: borrowing Record) -> Record? {
    if let changed = records[record.seq] { return changed }
    guard let delivery = deliveries[record.seq] else { return nil }
    var changed = copy record
    changed.delivery = delivery
    return changed
  }
}

extension Record {
  /// The size of the record in a store, in bytes: its header fields and its payload, and the columns as an estimate.
  package var storedSize: Int { head { Int($0.headerSize) + Int($0.keptBodySize) } + Self.storedColumnsSize }

  /// The size of the columns without header fields and payload, as an estimate.
  package static let storedColumnsSize = 256
}

extension Inbox {
  /// The number of records that are not written to the store yet; 0 without one.
  package var waitingRecords: Int { state.withLockedValue(\.waitingRecords) }

  /// The age of the oldest received push that is not written to the store yet; zero if all are, and without a store.
  package var writingLag: Duration {
    let arrivedAt = state.withLockedValue { state -> Int64? in
      guard let stored = state.stored else { return nil }
      var waiting = Selection.allKinds
      waiting.after = stored.written
      var arrivedAt: Int64?
      state.records.forEach(in: waiting) { record in
        if !record.isImported { arrivedAt = record.arrivedAt }
        return arrivedAt == nil
      }
      return arrivedAt
    }
    return arrivedAt.map { .nanoseconds(max(0, MachineTime.nanoseconds - $0)) } ?? .zero
  }
}

extension Inbox.State {
  /// Creates the state of an inbox with the contents of its store; nil without a store.
  init(_ store: (any RecordStore)?) {
    if let store { self.init(store.initialContents) } else { self.init() }
  }

  /// Creates the state of an inbox with these contents of its store.
  init(_ contents: StoredContents, counts: PushCounts = PushCounts()) {
    self.counts = counts
    nextSeq = contents.lastSeq + 1
    evicted = contents.evicted
    lastEvicted = contents.lastEvicted
    stored = StoredState(contents)
  }

  /// The number of records that are not written to the store yet; 0 without one.
  var waitingRecords: Int { stored.map { nextSeq - 1 - $0.written } ?? 0 }

  /// The `seq` from which records are in memory.
  var firstInMemory: Int { records.first ?? nextSeq }

  /// Whether a record that is not in memory was changed or removed and that is not written yet.
  var hasOlderChanges: Bool { stored?.hasChanges(before: firstInMemory) ?? false }

  /// The records of the store, with the changes that are not written yet; nil without one.
  func storedRecords(of writer: RecordWriter) -> StoredRecords? {
    stored.map {
      StoredRecords(
        writer: writer, after: $0.emptiedThrough, before: firstInMemory, count: $0.count, bytes: $0.bytes,
        changes: $0.unwrittenChanges(before: firstInMemory))
    }
  }

  /// Counts records that are not in the inbox any more, unless it was emptied in the meantime.
  ///
  /// - Returns: Whether they count.
  @discardableResult
  mutating func countEvicted(_ removed: RemovedRecords) -> Bool {
    guard removed.count > 0, removed.lastSeq > stored?.emptiedThrough ?? 0 else { return false }
    evicted += removed.count
    lastEvicted = max(lastEvicted, removed.lastSeq)
    counts.addEvicted(removed.count)
    return true
  }

  /// Notes that the store has removed its oldest records.
  mutating func evict(_ removed: RemovedRecords) {
    guard countEvicted(removed) else { return }
    while let first = records.first, first <= removed.lastSeq { _ = records.removeFirst() }
  }
}
