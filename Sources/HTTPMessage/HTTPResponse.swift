/// One answer as a client gets it, complete.
public struct HTTPResponse: Sendable, Equatable {
  /// `:status` and the other header fields, in the order they came.
  public var headers = HeaderList()
  /// The body, at most `bodyLimit` bytes of it.
  public var body: [UInt8] = []

  /// More than this of an answer's body is thrown away; APNs' own are under 100 bytes.
  public static let bodyLimit = 65536

  /// An empty answer.
  public init() {}

  /// The status code, 0 if there is none.
  public var status: Int { headers[":status"].flatMap { Int($0) } ?? 0 }
}
