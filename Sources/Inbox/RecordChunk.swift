internal import APNSRules
internal import HTTPMessage

/// Some of an inbox's records in their order, and beside each a mark of its device token: so the few records of one
/// device are found among a million without a look at all the others.
struct RecordChunk: Sendable {
  private(set) var records: [Record] = []
  private var marks: [UInt16] = []

  init(capacity: Int) {
    records.reserveCapacity(capacity)
    marks.reserveCapacity(capacity)
  }

  init(_ records: ArraySlice<Record>) {
    self.init(capacity: records.count)
    append(records)
  }

  var count: Int { records.count }

  mutating func append(_ records: ArraySlice<Record>) {
    for index in records.indices { marks.append(Self.mark(of: records[index])) }
    self.records.append(contentsOf: records)
  }

  /// Puts `record` in a place and gives back what was there.
  mutating func exchange(at index: Int, for record: Record) -> Record {
    var other = record
    swap(&other, &records[index])
    return other
  }

  /// Changes a record, but neither its number nor what came.
  mutating func update(at index: Int, _ change: (inout Record) -> Void) { change(&records[index]) }

  /// Calls `visit` with each record at one of these places until it returns false.
  ///
  /// - Parameter marks: only with records that have one of these marks; nil for all.
  /// - Returns: whether `visit` never returned false.
  func forEach(
    at indices: Range<Int>, newestFirst: Bool, marks wanted: [UInt16]?, _ visit: (borrowing Record) -> Bool
  ) -> Bool {
    // Mostly it is one, and then there is no list to go through for each record.
    let only = wanted?.count == 1 ? wanted?.first : nil
    return records.withUnsafeBufferPointer { records in
      marks.withUnsafeBufferPointer { marks in
        for offset in 0..<indices.count {
          let index = newestFirst ? indices.upperBound - 1 - offset : indices.lowerBound + offset
          if let only {
            if marks[index] != only { continue }
          } else if let wanted, !wanted.contains(marks[index]) {
            continue
          }
          guard Self.borrow(records, at: index, visit) else { return false }
        }
        return true
      }
    }
  }

  /// Calls `read` with an element where it stands: a copy of each record would touch what it keeps in memory, whatever is
  /// asked of it. The compiler makes none only where it does not know that it could.
  private static func borrow<Element: ~Copyable, Result>(
    _ elements: UnsafeBufferPointer<Element>, at index: Int, _ read: (borrowing Element) -> Result
  ) -> Result {
    read(elements[index])
  }

  // MARK: - Marks

  private static func mark(of record: borrowing Record) -> UInt16 {
    record.withHeader(record.facts.deviceToken) { $0.map(mark) ?? 0 }
  }

  /// The mark of the records to a device, of which other devices have one in 65536 too.
  static func mark(ofDeviceToken token: String) -> UInt16 {
    var token = token
    return token.withUTF8 { mark(of: UnsafeRawBufferPointer($0)) }
  }

  /// Equal for tokens that differ in case alone. Eight bytes at a time, for it is worked out for each push.
  private static func mark(of token: UnsafeRawBufferPointer) -> UInt16 {
    var hash = UInt64(truncatingIfNeeded: token.count)
    var position = 0
    func mix(_ bytes: UInt64) {
      hash = (hash ^ (bytes | 0x2020_2020_2020_2020)) &* 0x9E37_79B9_7F4A_7C15
      hash ^= hash >> 32
    }
    while position + 8 <= token.count {
      mix(token.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      position += 8
    }
    while position < token.count {
      mix(UInt64(token[position]))
      position += 1
    }
    // The upper bits of a product depend on all bits of its factors.
    return UInt16(truncatingIfNeeded: hash >> 48)
  }
}
