import NIOCore
import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The reason why a TCP connection failed.
struct ConnectFailure: Sendable {
  /// The kinds of failures that need different repairs.
  enum Kind: Sendable {
    /// The host is reachable, but nothing listens on the port.
    case refused
    /// The host is unreachable.
    case noRoute
    case other
  }

  let kind: Kind
  /// The description for people.
  let text: String

  /// Creates a failure from an error of NIO's bootstrap.
  init(_ error: any Error) {
    guard let error = error as? NIOConnectionError else {
      (kind, text) = Self.reading(error)
      return
    }
    // If several addresses failed, report the first one's error.
    (kind, text) =
      error.connectionErrors.first.map { Self.reading($0.error) } ?? (.other, "unknown host \(error.host)")
  }

  private static func reading(_ error: any Error) -> (Kind, String) {
    switch error {
    case let error as IOError where error.errnoCode == ECONNREFUSED: (.refused, "connection refused")
    case let error as IOError where [ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL].contains(error.errnoCode):
      (.noRoute, String(cString: strerror(error.errnoCode)).lowercased())
    case ChannelError.connectTimeout: (.noRoute, "timed out while connecting")
    default: (.other, "\(error)")
    }
  }
}
