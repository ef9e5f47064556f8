internal import APNSRules
internal import HTTPMessage

/// The bytes a record keeps, and reading them.
extension Record {
  /// Header fields, body and generated id in one array of exactly their size: the one allocation of a record.
  static func pack(
    _ request: borrowing HTTPRequest, _ facts: PushFacts, _ generatedID: UnsafeRawBufferPointer
  ) -> [UInt8] {
    let headerSize = request.headers.bytes.count
    let bodyEnd = headerSize + request.body.count
    let size = bodyEnd + generatedID.count
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
      let target = UnsafeMutableRawBufferPointer(buffer)
      let headers = UnsafeMutableRawBufferPointer(rebasing: target[..<headerSize])
      let body = UnsafeMutableRawBufferPointer(rebasing: target[headerSize..<bodyEnd])
      request.headers.bytes.withUnsafeBytes { headers.copyMemory(from: $0) }
      facts.blankSignatures(in: headers)
      request.body.withUnsafeBytes { body.copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: target[bodyEnd...]).copyMemory(from: generatedID)
      filled = size
    }
  }

  /// The body, as far as it was kept.
  public var body: ArraySlice<UInt8> { bytes[bodyRange] }

  /// Whether the body was longer than what is kept of one.
  public var isBodyCut: Bool { bodySize > bodyRange.count }

  var bodyRange: Range<Int> { Int(headerSize)..<bytes.count - Int(idSize) }

  /// Calls `read` with the packed header fields.
  func withHeaders<Result>(_ read: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[..<Int(headerSize)])) }
  }

  /// Calls `read` with the body, as far as it was kept.
  func withBody<Result>(_ read: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[bodyRange])) }
  }

  /// Calls `read` with the header bytes at `range`, or nil without one.
  func withHeader<Result>(_ range: ByteRange?, _ read: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
    guard let range, range.indices.upperBound <= Int(headerSize) else { return try read(nil) }
    return try bytes.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[range.indices])) }
  }

  /// Calls `read` with the push's `apns-id`: the server's where it made one, else the client's. Nil if there is none.
  func withID<Result>(_ read: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
    guard idSize > 0 else { return try withHeader(facts.apnsID, read) }
    return try bytes.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[bodyRange.upperBound...])) }
  }

  /// Calls `read` with the topic: of the header, else the only one that the provider certificate permits.
  func withTopic<Result>(_ read: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
    if facts.topic == nil, var topic = connection.certificate?.defaultTopic {
      return try topic.withUTF8 { try read(UnsafeRawBufferPointer($0)) }
    }
    return try withHeader(facts.topic, read)
  }

  /// The header text at `range`, with what is not UTF-8 replaced; nil without a range.
  func text(_ range: ByteRange?) -> String? {
    withHeader(range) { $0.map { String(decoding: $0, as: UTF8.self) } }
  }
}
