internal import APNSMockRules
package import APNSMockHTTPMessage
internal import APNSMockNotation

/// Access to the bytes of a record.
extension Record {
  /// The kept part of the body.
  package var body: [UInt8] { withBody { Array($0) } }

  /// The recorded request with the kept part of its body; the signatures of JWTs in its header fields are zeros.
  package var request: HTTPRequest {
    var headers = HeaderList()
    withHeaders { packed in
      HeaderList.forEachField(in: packed) { name, value in
        headers.append(
          name: packed[name],
          value: packed[value])
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
  package func withContents<Result>(_ read: (UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) -> Result)
    -> Result
  {
    let body = head { $0.bodyRange }
    return withBytes(0..<body.upperBound) { read($0, $0.part(body)) }
  }

  /// Calls `read` with the header bytes at `range`, or nil without one.
  func withHeader<Result>(_ range: ByteRange?, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withOptionalBytes(head { $0.byteRange(range) }, read)
  }

  /// Calls `read` with the push's `apns-id`: the generated one if there is one, else the client's. Nil without an
  /// ID.
  func withID<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withOptionalBytes(head { $0.effectiveIDRange }, read)
  }

  /// Calls `read` with the topic: that of the header, else the only one that the provider certificate allows.
  func withTopic<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    if let topic = connection.defaultTopic(facts) {
      return topic.withBytes { read($0) }
    }
    return withHeader(facts.topic, read)
  }

  /// Returns the header text at `range`, with invalid UTF-8 replaced and removed signatures as an ellipsis; nil without
  /// a range.
  func text(_ range: ByteRange?) -> String? {
    withHeader(range) { $0.map { TokenRedaction.text($0) } }
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

extension Record {
  /// The key of the device token only; nil if the path has none.
  var deviceTokenKey: PushKey? {
    withOptionalBytes(head { $0.byteRange($0.verdict.facts.deviceToken) }) { $0.map(PushKey.init(deviceToken:)) }
  }
}
