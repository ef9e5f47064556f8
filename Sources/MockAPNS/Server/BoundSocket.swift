import NIOCore
import APNSMockPlatformLibc

/// A TCP socket that is bound to an address and does not listen yet.
package struct BoundSocket: Sendable {
  package let descriptor: CInt
  /// The port actually bound.
  package let port: Int

  /// The type of a socket for TCP, whose constant has another Swift type on each platform.
  private static let stream: CInt = 1

  /// Resolves and binds an address. The caller must close the descriptor.
  ///
  /// - Throws: `SocketAddressError` if there is no such host; `IOError` if the address cannot be bound.
  package init(_ endpoint: MockServer.Endpoint) throws {
    let address = try SocketAddress.makeAddressResolvingHost(endpoint.host, port: endpoint.port)
    descriptor = socket(address.protocol.rawValue, Self.stream, 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var isOn: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<CInt>.size))
    let isBound = address.withSockAddr { [descriptor] pointer, size in
      bind(descriptor, pointer, socklen_t(size)) == 0
    }
    guard isBound else {
      let code = errno
      APNSMockPlatformLibc.close(descriptor)
      throw IOError(errnoCode: code, reason: "bind")
    }
    port = Self.port(of: descriptor) ?? endpoint.port
  }

  /// Closes the socket, which releases the address.
  package func close() { _ = APNSMockPlatformLibc.close(descriptor) }

  /// Returns the port of a bound socket.
  private static func port(of descriptor: CInt) -> Int? {
    var address = [UInt8](repeating: 0, count: 128)
    var size = socklen_t(address.count)
    let result = address.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { $0.baseAddress.map { getsockname(descriptor, $0, &size) } }
    }
    // Addresses of IPv4 and of IPv6 have the port at the same place.
    return result == 0 ? Int(address[2]) << 8 | Int(address[3]) : nil
  }
}

extension IOError {
  /// What the system says about the error, such as `connection refused`.
  package var reason: String { String(cString: strerror(errnoCode)).lowercased() }
}
