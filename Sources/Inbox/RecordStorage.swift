internal import APNSRules
internal import HTTPMessage

/// Records in the order of their `seq`, in chunks.
///
/// Appending and evicting cost the same however many there are, and copying the whole is one retain: that is how readers
/// get a snapshot which no push can change under them and which holds no push up. The next append then copies the chunk
/// it writes to, at most `chunkSize` records.
struct RecordStorage: Sendable {
  static let chunkSize = 512

  /// No chunk is empty. All but `head` records of the first one are alive.
  private var chunks: [[Record]] = []
  /// How many records of the first chunk were evicted.
  private var head = 0
  /// How many records there are.
  private(set) var count = 0
  /// What they keep in memory.
  private(set) var bytes = 0

  /// What a record takes beside its bytes: its place, the two words of each object, what is known about it, and a word of
  /// the allocator's.
  static let overhead = MemoryLayout<Record>.stride + 16 + MemoryLayout<RecordHead>.stride + 8

  /// What a record keeps in memory.
  static func cost(_ record: borrowing Record) -> Int { overhead + record.byteCount }

  /// Adds records whose numbers are larger than all that are there, and ascend.
  mutating func append(_ records: [Record]) {
    count += records.count
    for index in records.indices { bytes += Self.cost(records[index]) }
    var rest = records[...]
    while !rest.isEmpty {
      let room = Self.chunkSize - (chunks.last?.count ?? Self.chunkSize)
      if room <= 0 {
        var chunk: [Record] = []
        chunk.reserveCapacity(Self.chunkSize)
        chunks.append(chunk)
      } else {
        chunks[chunks.count - 1].append(contentsOf: rest.prefix(room))
        rest = rest.dropFirst(room)
      }
    }
  }

  /// Drops the oldest record.
  ///
  /// - Returns: its number; nil if there is none.
  mutating func removeFirst() -> Int? {
    guard let size = chunks.first?.count else { return nil }
    // Its place stays until the chunk goes, what it keeps must not.
    var dropped = Record.gone
    swap(&dropped, &chunks[0][head])
    bytes -= Self.cost(dropped)
    count -= 1
    head += 1
    if head == size {
      chunks.removeFirst()
      head = 0
    }
    return dropped.seq
  }

  /// Drops the records with these numbers, which ascend.
  ///
  /// - Returns: how many of them were there.
  mutating func remove(_ seqs: [Int]) -> Int {
    let before = count
    var kept: [[Record]] = []
    var next = seqs.startIndex
    for (index, chunk) in chunks.enumerated() {
      let alive = index == 0 ? chunk[head...] : chunk[...]
      guard let last = alive.last?.seq else { continue }
      while next < seqs.endIndex, let first = alive.first?.seq, seqs[next] < first { next += 1 }
      if next == seqs.endIndex || seqs[next] > last {
        kept.append(Array(alive))
        continue
      }
      var survivors: [Record] = []
      for record in alive {
        while next < seqs.endIndex, seqs[next] < record.seq { next += 1 }
        if next < seqs.endIndex, seqs[next] == record.seq {
          bytes -= Self.cost(record)
          count -= 1
        } else {
          survivors.append(record)
        }
      }
      if !survivors.isEmpty { kept.append(survivors) }
    }
    chunks = kept
    head = 0
    return before - count
  }

  /// The record with this number.
  func record(_ seq: Int) -> Record? {
    let position = position(from: seq)
    guard position.chunk < chunks.count else { return nil }
    let record = chunks[position.chunk][position.index]
    return record.seq == seq ? record : nil
  }

  /// Changes the record with this number, but not its number.
  ///
  /// - Returns: what it is then; nil if it is not there.
  mutating func update(_ seq: Int, _ change: (inout Record) -> Void) -> Record? {
    let position = position(from: seq)
    guard position.chunk < chunks.count, chunks[position.chunk][position.index].seq == seq else { return nil }
    change(&chunks[position.chunk][position.index])
    return chunks[position.chunk][position.index]
  }

  /// Calls `body` with each selected record, in order or newest first, until it returns false.
  func forEach(in selection: Selection, newestFirst: Bool = false, _ body: (borrowing Record) -> Bool) {
    guard selection.after < .max else { return }
    let start = position(from: selection.after + 1)
    let end = position(from: selection.before)
    guard start.chunk < end.chunk || (start.chunk == end.chunk && start.index < end.index) else { return }
    let visited = start.chunk...min(end.chunk, chunks.count - 1)
    func indices(_ chunk: Int) -> Range<Int> {
      (chunk == start.chunk ? start.index : 0)..<(chunk == end.chunk ? end.index : chunks[chunk].count)
    }
    func visit(_ record: borrowing Record) -> Bool { selection.filter.matches(record) ? body(record) : true }
    if newestFirst {
      for chunk in visited.reversed() {
        for index in indices(chunk).reversed() where !visit(chunks[chunk][index]) { return }
      }
    } else {
      for chunk in visited {
        for index in indices(chunk) where !visit(chunks[chunk][index]) { return }
      }
    }
  }

  /// Where the first record stands whose number is not below `seq`; the end if there is none.
  private func position(from seq: Int) -> (chunk: Int, index: Int) {
    let chunk = Self.firstIndex(in: chunks.indices) { (chunks[$0].last?.seq ?? 0) >= seq }
    guard chunk < chunks.count else { return (chunk, 0) }
    let alive = chunk == 0 ? head..<chunks[0].count : chunks[chunk].indices
    return (chunk, Self.firstIndex(in: alive) { chunks[chunk][$0].seq >= seq })
  }

  /// The first index for which `isAfter` holds, which from there on holds for all.
  private static func firstIndex(in range: Range<Int>, where isAfter: (Int) -> Bool) -> Int {
    var low = range.lowerBound
    var high = range.upperBound
    while low < high {
      let middle = low + (high - low) / 2
      if isAfter(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension Record {
  /// What stands where a record was.
  fileprivate static let gone = Record(
    request: HTTPRequest(), verdict: nil, facts: PushFacts(HeaderList()),
    generatedID: [],
    connection: ConnectionFacts(id: "", listener: 0, client: "", sni: nil, tls: ""), receivedAt: 0,
    end: End(outcome: .aborted, accepted: false, served: Served(), finishedAt: nil))
}
