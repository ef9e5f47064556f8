/// Some records that stand side by side, and which of them are still meant: what a filter is put to at a time.
///
/// One condition goes through all of them before the next does, so what it takes to get at a condition is done once for
/// all of them, and the records' memory is asked for ahead.
struct RecordBatch {
  /// As many as a word has bits.
  static let size = 64

  private let records: UnsafeBufferPointer<Record>
  /// A bit for each record that is still meant.
  private(set) var meant: UInt64

  /// All records at these places, of which there are at most `size`.
  init(_ records: UnsafeBufferPointer<Record>, at indices: Range<Int>) {
    self.records = UnsafeBufferPointer(rebasing: records[indices])
    meant = indices.isEmpty ? 0 : UInt64.max >> UInt64(Self.size - indices.count)
  }

  /// One record.
  init(_ record: UnsafePointer<Record>) {
    records = UnsafeBufferPointer(start: record, count: 1)
    meant = 1
  }

  var count: Int { records.count }

  /// The number of the first record.
  var firstSeq: Int { records.borrow(0) { $0.seq } }

  /// Leaves out those whose bit is not set.
  mutating func keep(_ bits: UInt64) { meant &= bits }

  /// Leaves out the records of which `holds` does not say so.
  @inline(__always)
  mutating func keep(_ holds: (_ index: Int, borrowing Record) -> Bool) {
    var kept: UInt64 = 0
    forEach { index, record in kept |= (holds(index, record) ? 1 : 0) << UInt64(index) }
    meant = kept
  }

  /// Leaves out the records of which `holds` does not say so, when it is told where something stands in them.
  ///
  /// First all places are looked up, and then what is there: reading one place waits for no other, so the memory of many
  /// records comes at once.
  @inline(__always)
  mutating func keep(
    reading place: (borrowing Record) -> Range<Int>?, _ holds: (borrowing Record, Range<Int>?) -> Bool
  ) {
    let batch = self
    let kept = withUnsafeTemporaryAllocation(of: Range<Int>?.self, capacity: Self.size) { places in
      batch.forEach { index, record in places.initializeElement(at: index, to: place(record)) }
      var kept: UInt64 = 0
      batch.forEach { index, record in kept |= (holds(record, places[index]) ? 1 : 0) << UInt64(index) }
      return kept
    }
    meant = kept
  }

  /// Calls `body` with each record that is meant, and its place.
  @inline(__always)
  private func forEach(_ body: (_ index: Int, borrowing Record) -> Void) {
    var rest = meant
    while rest != 0 {
      let index = rest.trailingZeroBitCount
      rest &= rest - 1
      records.borrow(index) { body(index, $0) }
    }
  }

  /// Calls `visit` with each record that is meant until it returns false.
  ///
  /// - Returns: whether `visit` never returned false.
  @inline(__always)
  func visit(newestFirst: Bool, _ visit: (borrowing Record) -> Bool) -> Bool {
    var rest = meant
    while rest != 0 {
      let index = newestFirst ? Self.size - 1 - rest.leadingZeroBitCount : rest.trailingZeroBitCount
      rest &= ~(1 << UInt64(index))
      guard records.borrow(index, visit) else { return false }
    }
    return true
  }
}
