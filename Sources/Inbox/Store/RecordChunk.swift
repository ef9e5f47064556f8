internal import APNSMockRules

/// Records in ascending order, each with a 16-bit hash of its device token. The hashes find the few records of
/// one device among a million without reading the other records.
struct RecordChunk: Sendable {
  private(set) var records: [Record] = []
  private var tokenHashes: [UInt16] = []
  /// Whether some of the records are not pushes. Usually none is, and the default `kind:push` then costs nothing.
  private var hasOtherKinds = false

  init(capacity: Int) {
    records.reserveCapacity(capacity)
    tokenHashes.reserveCapacity(capacity)
  }

  init(_ records: some Collection<Record>) {
    self.init(capacity: records.count)
    for record in records { append(record) }
  }

  var count: Int { records.count }

  @inline(__always)
  mutating func append(_ record: consuming Record) {
    let tokenHash = Self.tokenHash(of: record)
    // The kind of a push to a device token need not be determined.
    if tokenHash == 0, record.kind != .push { hasOtherKinds = true }
    tokenHashes.append(tokenHash)
    records.append(record)
  }

  /// Changes a record, but neither its `seq` nor its request.
  mutating func update(at index: Int, _ change: (inout Record) -> Void) { change(&records[index]) }

  /// Calls `visit` with each record at `indices` that matches `filter`, until it returns false.
  ///
  /// - Parameters:
  ///   - isOfPushesOnly: Whether only pushes are visited.
  ///   - devices: The hashes of the tokens of the only devices whose records can match; nil for all.
  /// - Returns: Whether `visit` never returned false.
  func forEach(
    at indices: Range<Int>, newestFirst: Bool, _ filter: borrowing Filter, isOfPushesOnly: Bool, devices: [UInt16]?,
    _ visit: (borrowing Record) -> Bool
  ) -> Bool {
    let size = FilterBatch.size
    return records.withUnsafeBufferPointer { records in
      var rest = indices
      while !rest.isEmpty {
        let indices = newestFirst ? rest.suffix(size) : rest.prefix(size)
        rest = newestFirst ? rest.dropLast(size) : rest.dropFirst(size)
        var batch = FilterBatch(records, at: indices)
        if let devices { batch.keep(bits(of: indices, with: devices)) }
        if isOfPushesOnly, hasOtherKinds { batch.keep { _, record in record.kind == .push } }
        if batch.remaining == 0 { continue }
        filter.removeNonMatching(&batch)
        guard batch.visit(newestFirst: newestFirst, visit) else { return false }
      }
      return true
    }
  }

  // MARK: - Hashes of device tokens

  /// The memory of a record's token hash, in bytes.
  static let tokenHashSize = MemoryLayout<UInt16>.size

  /// Returns a bit for each index whose record has one of these token hashes.
  private func bits(of indices: Range<Int>, with devices: [UInt16]) -> UInt64 {
    var bits: UInt64 = 0
    tokenHashes.withUnsafeBufferPointer { tokenHashes in
      for device in devices {
        for (bit, index) in indices.enumerated() where tokenHashes[index] == device { bits |= 1 << UInt64(bit) }
      }
    }
    return bits
  }

  private static func tokenHash(of record: borrowing Record) -> UInt16 {
    record.withOptionalBytes(record.head { $0.byteRange($0.verdict.facts.deviceToken) }) { $0.map(tokenHash) ?? 0 }
  }

  /// Returns the hash of a device token. One in 65536 other device tokens has the same hash, so the filter is evaluated nevertheless.
  static func tokenHash(ofDeviceToken token: String) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }

  /// Returns the hash of a device token, the same for tokens that differ only in case.
  private static func tokenHash(of token: UnsafeRawBufferPointer) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }
}
