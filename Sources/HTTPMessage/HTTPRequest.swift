/// One request as it came off the wire, complete: pseudo-header fields and header fields together, and the body.
public struct HTTPRequest: Sendable, Equatable {
  /// The HTTP/2 stream it came on.
  public var stream: Int32 = 0
  /// `:method`, `:path` and the others, in the order they came.
  public var headers = HeaderList()
  /// The body, at most `bodyLimit` bytes of it.
  public var body: [UInt8] = []
  /// How many body bytes came in all; more than `body` holds when the body was longer than anything APNs takes.
  public var bodySize = 0
  /// The header list was larger than the advertised limit; `headers` holds its beginning.
  public var headersTooLarge = false

  /// The largest payload of any push type (VoIP, 5120 bytes): what is beyond it is counted and thrown away.
  public static let bodyLimit = 5120

  /// An empty request.
  public init() {}

  /// A request from parts, for tests and clients.
  public init(stream: Int32 = 1, headers: HeaderList, body: [UInt8]) {
    self.stream = stream
    self.headers = headers
    self.body = Array(body.prefix(Self.bodyLimit))
    bodySize = body.count
  }

  /// Makes it ready for another stream and keeps its buffers.
  public mutating func reset() {
    stream = 0
    headers.removeAll()
    body.removeAll(keepingCapacity: true)
    bodySize = 0
    headersTooLarge = false
  }
}
