internal import APNSRules
package import HTTPMessage

/// Access to the bytes of a record.
extension Record {
  /// The kept part of the body.
  package var body: [UInt8] { withBody { Array($0) } }

  /// The recorded request with the kept part of its body; the signature of its provider token is zeros.
  package var request: HTTPRequest {
    var headers = HeaderList()
    withHeaders { packed in
      HeaderList.forEachField(in: packed) { name, value in
        headers.append(
          name: UnsafeRawBufferPointer(rebasing: packed[name.indices]),
          value: UnsafeRawBufferPointer(rebasing: packed[value.indices]))
      }
    }
    var request = HTTPRequest(stream: stream, headers: headers, body: body)
    request.bodySize = bodySize
    return request
  }

  /// Returns the verdict's description for display.
  func detail(of verdict: Verdict) -> String {
    withHeaders { verdict.detail(headers: $0, bodySize: bodySize) }
  }

  /// Whether the body was longer than the kept part.
  package var isBodyCut: Bool { bodySize > keptBodySize }

  /// The size of the kept part of the body, in bytes.
  var keptBodySize: Int { head { Int($0.keptBodySize) } }

  /// The number of bytes stored for the record.
  var byteCount: Int { head { $0.size } }

  /// Prefetches the head and the bytes behind it, without reading the head.
  ///
  /// - Parameter byteCount: The expected number of bytes; at most 4 KB are prefetched.
  @inline(__always)
  func prefetchContents(byteCount: Int) {
    let size = RecordContent.size(bytes: min(byteCount, 4096))
    CacheLines.prefetch(UnsafeRawBufferPointer(start: content.head, count: size))
  }

  /// Returns a part of the record's head. Reads through a pointer, without a copy of the head and without the
  /// run-time check for overlapping access: heads are never modified.
  @inline(__always)
  func head<Part>(_ part: (borrowing RecordHead) -> Part) -> Part {
    content.with { head, _ in part(head.pointee) }
  }

  /// Calls `read` with the packed header fields.
  func withHeaders<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withBytes(0..<head { Int($0.headerSize) }, read)
  }

  /// Calls `read` with the kept part of the body.
  func withBody<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withBytes(head { $0.bodyRange }, read)
  }

  /// Calls `read` with the packed header fields and the kept part of the body in one buffer, and with the body alone.
  func withContents<Result>(_ read: (UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) -> Result) -> Result {
    let body = head { $0.bodyRange }
    return withBytes(0..<body.upperBound) { read($0, UnsafeRawBufferPointer(rebasing: $0[body])) }
  }

  /// Calls `read` with the header bytes at `range`, or nil without one.
  func withHeader<Result>(_ range: ByteRange?, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withOptionalBytes(head { $0.byteRange(range) }, read)
  }

  /// Calls `read` with the push's `apns-id`: the generated one if there is one, else the client's. Nil without an
  /// ID.
  func withID<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withOptionalBytes(head { $0.wholeIDRange }, read)
  }

  /// Calls `read` with the topic: that of the header, else the only one that the provider certificate allows.
  func withTopic<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    if var topic = connection.defaultTopic(facts) {
      return topic.withUTF8 { read(UnsafeRawBufferPointer($0)) }
    }
    return withHeader(facts.topic, read)
  }

  /// Returns the header text at `range`, with invalid UTF-8 replaced; nil without a range.
  func text(_ range: ByteRange?) -> String? {
    withHeader(range) { $0.map { String(decoding: $0, as: UTF8.self) } }
  }

  /// Calls `read` with the bytes at `range`, or nil without one.
  ///
  /// - Parameter range: A range within the stored bytes.
  func withOptionalBytes<Result>(_ range: Range<Int>?, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    guard let range else { return read(nil) }
    return withBytes(range) { read($0) }
  }

  /// Calls `read` with the bytes at `range`.
  ///
  /// - Parameter range: A range within the stored bytes.
  func withBytes<Result>(_ range: Range<Int>, _ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    content.with { _, bytes in read(UnsafeRawBufferPointer(start: bytes + range.lowerBound, count: range.count)) }
  }
}

/// Records in ascending order, each with a mark: a 16-bit hash of its device token. Marks find the few records of
/// one device among a million without reading the other records.
struct RecordChunk: Sendable {
  private(set) var records: [Record] = []
  private var marks: [UInt16] = []
  /// Whether some of the records are not pushes. Usually none is, and the default `kind:push` then costs nothing.
  private var hasOtherKinds = false

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
    let mark = Self.mark(of: record)
    // The kind of a push to a device token need not be determined.
    if mark == 0, record.kind != .push { hasOtherKinds = true }
    marks.append(mark)
    records.append(record)
  }

  /// Changes a record, but neither its `seq` nor its request.
  mutating func update(at index: Int, _ change: (inout Record) -> Void) { change(&records[index]) }

  /// Calls `visit` with each record at `indices` that matches `filter`, until it returns false.
  ///
  /// - Parameters:
  ///   - isOfPushesOnly: Whether only pushes are visited.
  ///   - devices: The marks of the only devices whose records can match; nil for all.
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

  // MARK: - Marks

  /// The memory of a record's mark, in bytes.
  static let markSize = MemoryLayout<UInt16>.size

  /// Returns a bit for each index whose record has one of these marks.
  private func bits(of indices: Range<Int>, with devices: [UInt16]) -> UInt64 {
    var bits: UInt64 = 0
    marks.withUnsafeBufferPointer { marks in
      for device in devices {
        for (bit, index) in indices.enumerated() where marks[index] == device { bits |= 1 << UInt64(bit) }
      }
    }
    return bits
  }

  private static func mark(of record: borrowing Record) -> UInt16 {
    record.withOptionalBytes(record.head { $0.byteRange($0.verdict.facts.deviceToken) }) { $0.map(mark) ?? 0 }
  }

  /// Returns the mark of a device token. One in 65536 other device tokens has the same
  /// mark, so the filter is evaluated nevertheless.
  static func mark(ofDeviceToken token: String) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }

  /// Returns the mark of a device token, the same for tokens that differ only in case.
  private static func mark(of token: UnsafeRawBufferPointer) -> UInt16 {
    UInt16(truncatingIfNeeded: PushKey(deviceToken: token).number)
  }
}

extension PushKey {
  /// Computes a key of a device token only, the same for tokens that differ only in case.
  init(deviceToken token: String) {
    var token = token
    self = token.withUTF8 { PushKey(deviceToken: UnsafeRawBufferPointer($0)) }
  }
}

extension Record {
  /// The key of the device token only; nil if the path has none.
  var deviceTokenKey: PushKey? {
    withOptionalBytes(head { $0.byteRange($0.verdict.facts.deviceToken) }) { $0.map(PushKey.init(deviceToken:)) }
  }
}
