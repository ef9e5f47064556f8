/// Records in ascending order of `seq`, in chunks.
///
/// Appending and evicting take constant time, and a copy of the whole storage costs one retain: readers take a
/// snapshot that no push can change and that delays no push. The next append then copies the chunk it writes to, at
/// most `chunkSize` records.
struct RecordStorage: Sendable {
  static let chunkSize = 512

  /// The chunks, none empty. The first `head` records of the first chunk were evicted, all others are present.
  private var chunks: [RecordChunk] = []
  /// The number of evicted records in the first chunk.
  private var head = 0
  /// The number of records.
  private(set) var count = 0
  /// The memory the records use, in bytes.
  private(set) var bytes = 0

  /// The memory a record uses in addition to its bytes: its slot and token hash in the chunk, its head, and the largest
  /// padding before the next record.
  static let overhead =
    MemoryLayout<Record>.stride + RecordChunk.tokenHashSize + RecordContent.size(bytes: 0) + RecordContent.alignment - 1

  /// Returns the memory a record uses, in bytes.
  static func cost(_ record: borrowing Record) -> Int { overhead + record.byteCount }

  /// How many evictions ahead memory is prefetched: enough for the load to complete in time.
  private static let prefetchDistance = 8

  /// Appends records whose `seq` values ascend and exceed all existing ones. Leaves `records` empty and keeps its
  /// capacity.
  mutating func append(moving records: inout [Record]) {
    // Removing elements from the end of an array does not copy them. Measured: 1.5 % of CPU per push (`make bench`),
    // together with sending responses from their template without a copy.
    records.withUnsafeMutableBufferPointer { $0.reverse() }
    while let record = records.popLast() { append(record) }
  }

  /// Appends a record whose `seq` exceeds all existing ones.
  mutating func append(_ record: consuming Record) {
    count += 1
    bytes += Self.cost(record)
    if chunks.last?.count ?? Self.chunkSize >= Self.chunkSize {
      chunks.append(RecordChunk(capacity: Self.chunkSize))
    }
    chunks[chunks.count - 1].append(record)
  }

  /// The `seq` of the oldest record; nil if there is none.
  var first: Int? { chunks.first.map { $0.records[head].seq } }

  /// The `seq` of the newest record; nil if there is none.
  var last: Int? { chunks.last?.records.last?.seq }

  /// Drops the oldest record. Its memory is freed with its whole chunk.
  ///
  /// - Returns: The record's `seq`; nil if there is none.
  mutating func removeFirst() -> Int? {
    guard let size = chunks.first?.count else { return nil }
    let seq = chunks[0].records[head].seq
    bytes -= Self.cost(chunks[0].records[head])
    // `cost` reads the record's head, which was last used some hundred thousand pushes ago. Prefetch the heads of
    // the records that are evicted soon.
    if head + Self.prefetchDistance < size {
      let next = chunks[0].records[head + Self.prefetchDistance].content.head
      CacheLines.prefetch(UnsafeRawBufferPointer(start: next, count: 1))
    }
    count -= 1
    head += 1
    if head == size {
      chunks.removeFirst()
      head = 0
    }
    return seq
  }

  /// Drops the records with these `seq` values, which must ascend.
  ///
  /// - Returns: The number of records dropped.
  mutating func remove(_ seqs: [Int]) -> Int {
    let before = count
    var kept: [RecordChunk] = []
    var next = seqs.startIndex
    for (index, chunk) in chunks.enumerated() {
      let present = chunk.records[(index == 0 ? head : 0)...]
      guard let last = present.last?.seq else { continue }
      while next < seqs.endIndex, let first = present.first?.seq, seqs[next] < first { next += 1 }
      if next == seqs.endIndex || seqs[next] > last {
        kept.append(present.count == chunk.count ? chunk : RecordChunk(present))
        continue
      }
      // Move the surviving records together: a single one would keep the whole slab of its neighbors present.
      let arena = RecordArena()
      var survivors: [Record] = []
      for record in present {
        while next < seqs.endIndex, seqs[next] < record.seq { next += 1 }
        if next < seqs.endIndex, seqs[next] == record.seq {
          bytes -= Self.cost(record)
          count -= 1
        } else {
          var survivor = record
          survivor.move(to: arena)
          survivors.append(survivor)
        }
      }
      if !survivors.isEmpty { kept.append(RecordChunk(survivors)) }
    }
    chunks = kept
    head = 0
    return before - count
  }

  /// Returns the record with this `seq`.
  func record(_ seq: Int) -> Record? {
    let position = position(from: seq)
    guard position.chunk < chunks.count else { return nil }
    let record = chunks[position.chunk].records[position.index]
    return record.seq == seq ? record : nil
  }

  /// Changes the record with this `seq`, but not its `seq`.
  ///
  /// - Returns: The changed record; nil if there is none.
  mutating func update(_ seq: Int, _ change: (inout Record) -> Void) -> Record? {
    let position = position(from: seq)
    guard position.chunk < chunks.count, chunks[position.chunk].records[position.index].seq == seq else {
      return nil
    }
    chunks[position.chunk].update(at: position.index, change)
    return chunks[position.chunk].records[position.index]
  }

  /// Calls `body` with each selected record, in order or newest first, until it returns false.
  func forEach(in selection: Selection, newestFirst: Bool = false, _ body: (borrowing Record) -> Bool) {
    guard selection.after < .max else { return }
    let start = position(from: selection.after + 1)
    let end = position(from: selection.before)
    guard start.chunk < end.chunk || (start.chunk == end.chunk && start.index < end.index) else { return }
    let visited = start.chunk...min(end.chunk, chunks.count - 1)
    let devices = selection.filter.deviceTokens?.map(RecordChunk.tokenHash)
    let isOfPushesOnly = selection.isOfPushesOnly
    for chunk in newestFirst ? Array(visited.reversed()) : Array(visited) {
      let indices = (chunk == start.chunk ? start.index : 0)..<(chunk == end.chunk ? end.index : chunks[chunk].count)
      guard
        chunks[chunk].forEach(
          at: indices, newestFirst: newestFirst, selection.filter, isOfPushesOnly: isOfPushesOnly, devices: devices,
          body)
      else { return }
    }
  }

  /// The bounds of `selection` cut into parts of at most `Filter.sliceSize` records, in ascending order.
  func slices(of selection: Selection) -> [RecordSlice] {
    guard selection.after < .max else { return [] }
    let size = selection.filter.sliceSize
    let (first, last) = (position(from: selection.after + 1), position(from: selection.before))
    guard first.chunk < chunks.count, first.chunk <= last.chunk else { return [] }
    return (first.chunk...min(last.chunk, chunks.count - 1)).flatMap { index in
      let chunk = chunks[index]
      let start = index == first.chunk ? first.index : 0
      return stride(from: start, to: chunk.count, by: size).compactMap { start in
        let first = chunk.records[start].seq
        let last = chunk.records[min(start + size, chunk.count) - 1].seq
        let after = max(selection.after, first - 1)
        let before = last < selection.before ? last + 1 : selection.before
        return after < before ? RecordSlice(after: after, before: before) : nil
      }
    }
  }

  /// Returns the position of the first record whose `seq` is at least `seq`; the end if there is none.
  private func position(from seq: Int) -> (chunk: Int, index: Int) {
    let chunk = chunks.indices.partitioningIndex { (chunks[$0].records.last?.seq ?? 0) >= seq }
    guard chunk < chunks.count else { return (chunk, 0) }
    let present = chunk == 0 ? head..<chunks[0].count : 0..<chunks[chunk].count
    return (chunk, present.partitioningIndex { chunks[chunk].records[$0].seq >= seq })
  }
}

/// A range of `seq` values that is read without suspending.
package struct RecordSlice: Sendable, Equatable {
  /// Only records with a larger `seq`.
  package let after: Int
  /// Only records with a smaller `seq`.
  package let before: Int

  /// Creates a range.
  package init(after: Int, before: Int) { (self.after, self.before) = (after, before) }

  /// The maximum number of `seq` values of a range that is read part by part although records may be missing in it.
  package static let longestPart = 1 << 16

  /// The maximum number of parts of a range. With more, a part covers more values: those of a range with few records are far
  /// from each other.
  private static let maxCount = 1 << 18

  /// Returns the parts of a range of `seq` values, in ascending order.
  ///
  /// - Parameter span: The number of values that a part covers at most, unless there would be some hundred thousand parts.
  package static func parts(of range: ClosedRange<Int>, span: Int) -> [RecordSlice] {
    let (first, last) = (range.lowerBound, range.upperBound)
    let span = max(span, (last - first) / maxCount)
    return stride(from: first, through: last, by: span).map { start in
      RecordSlice(after: start - 1, before: min(start + span, last + 1))
    }
  }

  /// The part of `selection` in this range.
  func part(of selection: Selection) -> Selection {
    var part = selection
    part.after = max(after, selection.after)
    part.before = min(before, selection.before)
    return part
  }
}
