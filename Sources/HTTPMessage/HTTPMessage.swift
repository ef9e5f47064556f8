/// A complete HTTP/2 request: pseudo-header fields, header fields and body.
package struct HTTPRequest: Sendable, Equatable {
  /// The ID of the HTTP/2 stream.
  package var stream: Int32 = 0
  /// The pseudo-header fields, such as `:method` and `:path`, and the header fields in the order received.
  package var headers = HeaderList()
  /// The body, truncated to `bodyLimit` bytes.
  package var body: [UInt8] = []
  /// The total size of the received body in bytes; larger than `body.count` if the body was longer than `bodyLimit`.
  package var bodySize = 0
  /// Whether the header list exceeded the advertised limit; `headers` then contains only its beginning.
  package var headersTooLarge = false

  /// The maximum number of body bytes kept: 5120, the largest payload of any push type (VoIP). Further bytes are
  /// counted and discarded.
  package static let bodyLimit = 5120

  /// Creates an empty request.
  package init() {}

  /// Creates a request, for tests and clients.
  package init(stream: Int32 = 1, headers: HeaderList, body: [UInt8]) {
    self.stream = stream
    self.headers = headers
    self.body = Array(body.prefix(Self.bodyLimit))
    bodySize = body.count
  }

  /// Clears the request for reuse with another stream, keeping its buffers.
  package mutating func reset() {
    stream = 0
    headers.removeAll()
    body.removeAll(keepingCapacity: true)
    bodySize = 0
    headersTooLarge = false
  }
}

/// A complete HTTP/2 response as received by a client.
package struct HTTPResponse: Sendable, Equatable {
  /// `:status` and the header fields in the order received.
  package var headers = HeaderList()
  /// The body, of `bodyLimit` bytes at most.
  package var body: [UInt8] = []

  /// The maximum number of bytes of a body; clients reset the stream of a longer one. APNs' own bodies are under 100 bytes.
  package static let bodyLimit = 65536

  /// Creates an empty response.
  package init() {}

  /// The status code; 0 if absent or invalid.
  package var status: Int { headers[":status"].flatMap { Int($0) } ?? 0 }
}

/// HTTP status codes.
package enum HTTPStatus {
  // Not generic: modules call it unspecialized then. Measured: 650 more instructions per rejected push.

  /// Returns whether a response with this status reports success (RFC 9110 section 15.3).
  package static func isSuccess(_ status: Int) -> Bool { (200..<300).contains(status) }
}
