internal import APNSRules
public import HTTPMessage

/// Reading the bytes a record keeps.
extension Record {
  /// The body, as far as it was kept.
  public var body: [UInt8] { withBody { Array($0) } }

  /// The request it is about, as far as it was kept: the signature of its provider token is zeros.
  public var request: HTTPRequest {
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

  /// What its verdict says in words for people.
  func detail(of verdict: Verdict) -> String {
    withHeaders { verdict.detail(headers: $0, bodySize: bodySize) }
  }

  /// Whether the body was longer than what is kept of one.
  public var isBodyCut: Bool { bodySize > keptBodySize }

  /// How many bytes of the body were kept.
  var keptBodySize: Int { head { Int($0.keptBodySize) } }

  /// How many bytes it keeps.
  var byteCount: Int { head { $0.size } }

  /// A part of what is known about its bytes. By a pointer, without a copy of the whole and without the run-time check for
  /// overlapping access: nobody writes to a head.
  @inline(__always)
  func head<Part>(_ part: (borrowing RecordHead) -> Part) -> Part {
    content.with { head, _ in part(head.pointee) }
  }

  /// Calls `read` with the packed header fields.
  func withHeaders<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withBytes(0..<head { Int($0.headerSize) }, read)
  }

  /// Calls `read` with the body, as far as it was kept.
  func withBody<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withBytes(head { $0.bodyRange }, read)
  }

  /// Calls `read` with the header bytes at `range`, or nil without one.
  func withHeader<Result>(_ range: ByteRange?, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withPlace(head { $0.place(range) }, read)
  }

  /// Calls `read` with the push's `apns-id`: the server's where it made one, else the client's. Nil if there is none.
  func withID<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    withPlace(head { $0.idPlace }, read)
  }

  /// Calls `read` with the topic: of the header, else the only one that the provider certificate permits.
  func withTopic<Result>(_ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    if var topic = connection.defaultTopic(facts) {
      return topic.withUTF8 { read(UnsafeRawBufferPointer($0)) }
    }
    return withHeader(facts.topic, read)
  }

  /// The header text at `range`, with what is not UTF-8 replaced; nil without a range.
  func text(_ range: ByteRange?) -> String? {
    withHeader(range) { $0.map { String(decoding: $0, as: UTF8.self) } }
  }

  /// - Parameter range: within the bytes that are kept; nil for nothing.
  func withPlace<Result>(_ range: Range<Int>?, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    guard let range else { return read(nil) }
    return withBytes(range) { read($0) }
  }

  /// - Parameter range: within the bytes that are kept.
  func withBytes<Result>(_ range: Range<Int>, _ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    content.with { _, bytes in read(UnsafeRawBufferPointer(start: bytes + range.lowerBound, count: range.count)) }
  }
}
