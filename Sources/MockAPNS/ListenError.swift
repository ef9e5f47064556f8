#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif
import NIOCore

/// An address that could not be listened on.
public struct ListenError: Error, CustomStringConvertible {
  /// The requested address.
  public let endpoint: Endpoint
  /// Whether the address is already in use.
  public let isInUse: Bool
  /// The problem, and how to solve it.
  public let description: String

  /// - Parameters:
  ///   - purpose: The users of the address, for the message.
  ///   - flag: The command-line flag that selects another address.
  public init(endpoint: Endpoint, purpose: String, flag: String, cause: any Error) {
    self.endpoint = endpoint
    isInUse = (cause as? IOError)?.errnoCode == EADDRINUSE
    let choice = "choose another address with \(flag) HOST:PORT"
    description =
      isInUse
      ? "\(endpoint) (for \(purpose)) is already in use by another program or another listener of this one: stop it, or \(choice) (port 0 selects a free one)"
      : "cannot listen on \(endpoint) (for \(purpose)): \(Self.reason(cause, endpoint)); \(choice)"
  }

  private static func reason(_ cause: any Error, _ endpoint: Endpoint) -> String {
    switch cause {
    case let error as IOError where error.errnoCode == EACCES && endpoint.port < 1024:
      "permission denied, as ports below 1024 are root's on most systems"
    case let error as IOError where error.errnoCode == EADDRNOTAVAIL: "this machine has no such address"
    case let error as IOError: String(cString: strerror(error.errnoCode)).lowercased()
    case let error as SocketAddressError.UnknownHost: "the host \(error.host) is unknown"
    default: "\(cause)"
    }
  }
}
