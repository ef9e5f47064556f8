/// What went wrong in a session so that it cannot go on.
public struct HTTP2Failure: Error, CustomStringConvertible, Sendable, Equatable {
  /// The kinds a caller treats differently.
  public enum Kind: Sendable, Equatable {
    /// The first bytes were not the HTTP/2 client preface: most often an HTTP/1.1 request.
    case badPreface
    /// nghttp2 gave up on the peer: flooding, or out of memory.
    case fatal
  }
  /// Which kind it is.
  public let kind: Kind
  /// For people.
  public let description: String
}
