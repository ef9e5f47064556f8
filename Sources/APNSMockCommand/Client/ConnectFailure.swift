import NIOCore
import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Why no TCP connection came about.
struct ConnectFailure: Sendable {
  /// The cases that have repairs of their own.
  enum Kind: Sendable {
    /// The machine is there, and nothing listens on the port.
    case refused
    /// The way there is closed, or leads nowhere.
    case noRoute
    case other
  }

  let kind: Kind
  /// For people.
  let text: String

  /// - Parameter error: what NIO's bootstrap threw.
  init(_ error: any Error) {
    guard let error = error as? NIOConnectionError else {
      (kind, text) = Self.reading(error)
      return
    }
    // Of several addresses the first one's error is told.
    (kind, text) =
      error.connectionErrors.first.map { Self.reading($0.error) } ?? (.other, "the host \(error.host) is unknown")
  }

  private static func reading(_ error: any Error) -> (Kind, String) {
    switch error {
    case let error as IOError where error.errnoCode == ECONNREFUSED: (.refused, "connection refused")
    case let error as IOError where [ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL].contains(error.errnoCode):
      (.noRoute, String(cString: strerror(error.errnoCode)).lowercased())
    case ChannelError.connectTimeout: (.noRoute, "no answer to the attempt to connect")
    default: (.other, "\(error)")
    }
  }
}
