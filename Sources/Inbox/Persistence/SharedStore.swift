internal import APNSRules
internal import NIOConcurrencyHelpers

/// What other servers that share a store announce.
package enum StoreSignal: Sendable {
  /// The store has changed.
  case changed
  /// A server waits until the pushes that were answered so far are written. `reply` tells it that they are.
  case flush(reply: @Sendable () -> Void)
}

/// A server that uses a shared store.
package struct StoreServer: Sendable {
  /// Its number, which no other server ever has.
  package let id: Int
  /// When its answers leave.
  package let durability: String

  /// Creates the description of a server.
  package init(id: Int, durability: String) { (self.id, self.durability) = (id, durability) }
}

/// A command that all servers execute, in the same order.
package struct StoreCommand: Sendable {
  /// How long a command has an effect.
  package enum Kind: String, Sendable {
    /// Only on the servers that run now.
    case once
    /// Until a command that supersedes it.
    case state
    /// Always.
    case lasting
  }

  package let number: Int
  package let text: String
  /// Whether this server has sent it, and waits for its response.
  package let isOwn: Bool
  /// How long ago it was sent when this server received it, in nanoseconds by the clock of the store.
  package let age: Int64

  /// Creates a command.
  package init(number: Int, text: String, isOwn: Bool, age: Int64) {
    (self.number, self.text, self.isOwn, self.age) = (number, text, isOwn, max(0, age))
  }
}

/// A message between servers that share a store.
package enum StoreMessage: Sendable {
  /// A command.
  case command(StoreCommand)
  /// What rules of another server have counted.
  case counts(String)
}

/// What a store that servers share contains in addition to a batch of this server: the changes of the others since the
/// last batch.
package struct SharedChanges: Sendable {
  /// New records of other servers, in ascending order. Their `seq` is smaller than that of the batch's new records.
  package var appended: [Record] = []
  /// Whether changes may have been missed, or are many: then no record in memory can be relied on.
  package var hasGap = false
  /// The `seq` of the batch's first new record; the others follow without a gap.
  package var firstSeq = 0
  /// The positions of the batch's new records that are not kept, because they arrived before the inbox was emptied.
  /// Ascending.
  package var outdated: [Int] = []
  /// The current state of changed records.
  package var changed: [Record] = []
  /// The `seq` of removed records.
  package var deleted: [Int] = []
  /// Records up to this `seq` were removed because of a limit.
  package var removedThrough = 0
  /// New messages, in their order.
  package var messages: [StoreMessage] = []
  /// The connections of other servers that have ended.
  package var ended: [ConnectionEnd] = []
  /// What the store contains after the batch.
  package var contents = StoredContents()

  /// Creates the description of no changes.
  package init() {}

  /// The number of the newest command; nil without one.
  var lastCommand: Int? {
    messages.reversed().lazy.compactMap { message in
      guard case .command(let command) = message else { return nil }
      return command.number
    }.first
  }
}

/// The new records of this server that a shared store has not numbered yet. They have provisional numbers, by which the
/// parts of the server that have seen them continue to name them.
struct Outbox: Sendable {
  /// The first provisional number. No `seq` is that large.
  private static let base = 1 << 52
  /// The maximum number of records whose provisional number is remembered after they are written.
  private static let capacity = 1 << 20
  /// The size of the records of a batch, in bytes, after which it gets no more: a slow network transmits them within the time
  /// that the database has to execute a command.
  private static let batchBytes = 4 << 20
  /// The maximum number of ends of connections to announce.
  private static let endedLimit = 16_384

  /// The records that wait for a batch; nil for one that is not kept.
  private var waiting: [Record?] = []
  /// Those of the batch that is being written, in their current state.
  private var beingWritten: [Record?] = []
  /// The provisional number of the first record of the batch that is being written, or else of the first that waits.
  private var first = Self.base
  /// The provisional numbers of records that have changed since their batch was taken.
  private var changed: Set<Int> = []
  /// The `seq` of written records that are still pending, or whose delivery may change.
  private var seqs: [Int: Int] = [:]
  /// The provisional numbers of these records by their `seq`.
  private(set) var numbers: [Int: Int] = [:]
  /// These `seq` values, oldest first.
  private var order: [Int] = []
  /// The provisional numbers of other records whose `seq` is asked for.
  private var awaited: Set<Int> = []
  /// Written records that are pending, so that their end needs no database.
  private var pending: [Int: Record] = [:]
  /// The number of lost records, which count as evicted when the store can be written again.
  private var lost = 0
  /// Commands to announce.
  var commands: [String] = []
  /// Connections that have ended, to announce.
  var ended: [ConnectionEnd] = []
  /// Findings about deliveries that name provisional numbers of records without a `seq`.
  var findings: [(kind: Finding.Kind, number: Int, other: Int?)] = []

  /// Adds the end of a connection to announce. While the store fails, only some are kept.
  mutating func add(_ end: ConnectionEnd) {
    if ended.count < Self.endedLimit { ended.append(end) }
  }

  /// The number of records that are not written.
  var count: Int { waiting.count + beingWritten.count }

  /// The oldest received record that is not written.
  var oldest: Record? {
    func isReceived(_ record: Record?) -> Bool { record.map { !$0.isImported } ?? false }
    return (beingWritten.first(where: isReceived) ?? waiting.first(where: isReceived)) ?? nil
  }

  /// Adds records, and numbers them provisionally. Leaves `records` empty.
  ///
  /// - Parameter isKept: Whether a record is kept. The others only have a number.
  /// - Returns: The number of the first one.
  mutating func append(_ records: inout [Record], keeping isKept: (borrowing Record) -> Bool = { _ in true }) -> Int {
    let next = first + count
    for index in records.indices { records[index].seq = next + index }
    for record in records { waiting.append(isKept(record) ? record : nil) }
    records.removeAll(keepingCapacity: true)
    return next
  }

  /// Remembers the `seq` of a record that waits, when it is written.
  mutating func rememberSeq(of number: Int) { awaited.insert(number) }

  /// Takes records for a batch.
  ///
  /// - Parameter limit: The maximum number of records.
  /// - Returns: The records, the number of those that are not kept, and whether more remain.
  mutating func take(limit: Int) -> (records: [Record], unkept: Int, isPartial: Bool) {
    var (size, bytes) = (0, 0)
    while size < min(waiting.count, limit), bytes < Self.batchBytes {
      bytes += waiting[size]?.storedSize ?? 0
      size += 1
    }
    let isPartial = waiting.count > size
    beingWritten = isPartial ? Array(waiting.prefix(size)) : waiting
    if isPartial { waiting.removeFirst(size) } else { waiting = [] }
    let records = beingWritten.compactMap(\.self)
    defer { lost = 0 }
    return (records, beingWritten.count - records.count + lost, isPartial)
  }

  /// Notes that the batch was written.
  ///
  /// - Parameter outdated: The positions of records that were not, among those of the batch.
  /// - Returns: The records with their `seq`, and those of them that have changed in the meantime.
  mutating func didWrite(from seq: Int, except outdated: Set<Int> = []) -> (records: [Record], changed: [Record]) {
    var records: [Record] = []
    var late: [Record] = []
    var position = -1
    for (index, record) in beingWritten.enumerated() {
      guard var record = copy record else { continue }
      position += 1
      guard !outdated.contains(position) else { continue }
      let number = first + index
      record.seq = seq + records.count
      if record.outcome == .pending || record.delivery != nil || record.kind == .broadcast
        || awaited.remove(number) != nil
      {
        remember(number, record.seq)
      }
      if record.outcome == .pending { pending[record.seq] = record }
      if changed.contains(number) { late.append(record) }
      records.append(record)
    }
    finish()
    return (records, late)
  }

  private mutating func remember(_ number: Int, _ seq: Int) {
    seqs[number] = seq
    numbers[seq] = number
    order.append(seq)
    guard order.count > 2 * Self.capacity else { return }
    // The oldest are forgotten, except for pending records.
    let oldest = order.prefix(Self.capacity)
    for seq in oldest where pending[seq] == nil {
      if let number = numbers.removeValue(forKey: seq) { seqs[number] = nil }
    }
    order = oldest.filter { pending[$0] != nil } + order.dropFirst(Self.capacity)
  }

  /// Notes that the batch was given up.
  ///
  /// - Parameter unkept: The number of its records that are not kept.
  /// - Returns: The number of lost records.
  mutating func didLose(unkept: Int) -> Int {
    let count = beingWritten.count { $0 != nil }
    lost += unkept + count
    finish()
    return count
  }

  private mutating func finish() {
    first += beingWritten.count
    beingWritten = []
    changed = []
  }

  /// Whether the record with a number is not written yet.
  func isWaiting(_ number: Int) -> Bool { number >= first }

  /// Changes a written record that was pending; returns nil for another one.
  mutating func updatePending(_ seq: Int, _ change: (inout Record) -> Void) -> Record? {
    guard var record = pending[seq] else { return nil }
    change(&record)
    pending[seq] = record.outcome == .pending ? record : nil
    return record
  }

  /// Forgets records up to a `seq`, because the inbox was emptied.
  mutating func removePending(through seq: Int) { pending = pending.filter { $0.key > seq } }

  /// Where a record with a provisional number is.
  enum Place {
    case outbox(Record)
    case store(seq: Int)
  }

  /// Returns where the record with a number is; nil if it is unknown.
  func place(of number: Int) -> Place? {
    guard number >= Self.base else { return .store(seq: number) }
    guard number >= first else { return seqs[number].map { .store(seq: $0) } }
    let index = number - first
    if index < beingWritten.count { return beingWritten[index].map { .outbox($0) } }
    let position = index - beingWritten.count
    return position < waiting.count ? waiting[position].map { .outbox($0) } : nil
  }

  /// Changes a record that is not written; returns nil if there is none with this number.
  mutating func update(_ number: Int, _ change: (inout Record) -> Void) -> Record? {
    guard number >= first else { return nil }
    let index = number - first
    if index < beingWritten.count {
      guard var record = beingWritten[index] else { return nil }
      change(&record)
      beingWritten[index] = record
      changed.insert(number)
      return record
    }
    let position = index - beingWritten.count
    guard position < waiting.count, var record = waiting[position] else { return nil }
    change(&record)
    waiting[position] = record
    return record
  }
}

extension Inbox.State {
  /// Returns the `seq` of a record for the number that `append` returned; nil while it has none.
  func seq(of number: Int) -> Int? {
    guard let outbox else { return number }
    guard case .store(let seq) = outbox.place(of: number) else { return nil }
    return seq
  }
}
