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

  init(_ records: some Collection<Record>) {
    self.init(capacity: records.count)
    for record in records { append(record) }
  }

  var count: Int { records.count }

  @inline(__always)
  mutating func append(_ record: consuming Record) {
    marks.append(Self.mark(of: record))
    records.append(record)
  }

  /// Changes a record, but neither its number nor what came.
  mutating func update(at index: Int, _ change: (inout Record) -> Void) { change(&records[index]) }

  /// Calls `visit` with each record at one of these places that a filter means, until it returns false.
  ///
  /// - Parameter devices: the marks of the only devices whose records the filter can mean; nil for all.
  /// - Returns: whether `visit` never returned false.
  func forEach(
    at indices: Range<Int>, newestFirst: Bool, _ filter: borrowing Filter, devices: [UInt16]?,
    _ visit: (borrowing Record) -> Bool
  ) -> Bool {
    let size = RecordBatch.size
    return records.withUnsafeBufferPointer { records in
      var rest = indices
      while !rest.isEmpty {
        let places = newestFirst ? rest.suffix(size) : rest.prefix(size)
        rest = newestFirst ? rest.dropLast(size) : rest.dropFirst(size)
        var batch = RecordBatch(records, at: places)
        if let devices { batch.keep(bits(of: places, with: devices)) }
        if batch.meant == 0 { continue }
        filter.narrow(&batch)
        guard batch.visit(newestFirst: newestFirst, visit) else { return false }
      }
      return true
    }
  }

  // MARK: - Marks

  /// What the mark of a record takes in memory.
  static let markSize = MemoryLayout<UInt16>.size

  /// A bit for each place with a record to one of these devices.
  private func bits(of places: Range<Int>, with devices: [UInt16]) -> UInt64 {
    var bits: UInt64 = 0
    marks.withUnsafeBufferPointer { marks in
      for device in devices {
        for (bit, place) in places.enumerated() where marks[place] == device { bits |= 1 << UInt64(bit) }
      }
    }
    return bits
  }

  private static func mark(of record: borrowing Record) -> UInt16 {
    record.withPlace(record.head { $0.place($0.verdict.facts.deviceToken) }) { $0.map(mark) ?? 0 }
  }

  /// The mark of the records to a device, of which other devices have one in 65536 too.
  static func mark(ofDeviceToken token: String) -> UInt16 {
    var token = token
    return token.withUTF8 { mark(of: UnsafeRawBufferPointer($0)) }
  }

  /// Equal for tokens that differ in case alone.
  private static func mark(of token: UnsafeRawBufferPointer) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }
}
