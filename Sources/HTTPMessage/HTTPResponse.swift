/// A complete HTTP/2 response as received by a client.
public struct HTTPResponse: Sendable, Equatable {
  /// `:status` and the header fields in the order received.
  public var headers = HeaderList()
  /// The body, truncated to `bodyLimit` bytes.
  public var body: [UInt8] = []

  /// The maximum number of body bytes kept; further bytes are discarded. APNs' own bodies are under 100 bytes.
  public static let bodyLimit = 65536

  /// Creates an empty response.
  public init() {}

  /// The status code; 0 if absent or invalid.
  public var status: Int { headers[":status"].flatMap { Int($0) } ?? 0 }
}
