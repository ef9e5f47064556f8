/// An error after which a session cannot continue.
public struct HTTP2Failure: Error, CustomStringConvertible, Sendable, Equatable {
  /// The kinds of failure that callers distinguish.
  public enum Kind: Sendable, Equatable {
    /// The first bytes were not the HTTP/2 connection preface; usually an HTTP/1.1 request.
    case badPreface
    /// Any other fatal error, such as flooding by the peer or lack of memory.
    case fatal
  }
  /// The kind of failure.
  public let kind: Kind
  /// A description for the log.
  public let description: String
}
