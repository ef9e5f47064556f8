internal import APNSRules
internal import HTTPMessage

/// Records in ascending order, each with a mark: a 16-bit hash of its device token. Marks find the few records of
/// one device among a million without reading the other records.
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

  /// Changes a record, but neither its `seq` nor its request.
  mutating func update(at index: Int, _ change: (inout Record) -> Void) { change(&records[index]) }

  /// Calls `visit` with each record at `indices` that matches `filter`, until it returns false.
  ///
  /// - Parameter devices: The marks of the only devices whose records can match; nil for all.
  /// - Returns: Whether `visit` never returned false.
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

  /// The memory of a record's mark, in bytes.
  static let markSize = MemoryLayout<UInt16>.size

  /// Returns a bit for each index whose record has one of these marks.
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

  /// Returns the mark of a device token. One in 65536 other device tokens has the same mark.
  static func mark(ofDeviceToken token: String) -> UInt16 {
    var token = token
    return token.withUTF8 { mark(of: UnsafeRawBufferPointer($0)) }
  }

  /// Returns the mark of a device token, the same for tokens that differ only in case.
  private static func mark(of token: UnsafeRawBufferPointer) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }
}
