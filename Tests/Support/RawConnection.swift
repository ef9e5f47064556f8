#if canImport(Glibc)
  import Glibc

  private let streamSocket = Int32(SOCK_STREAM.rawValue)
#else
  import Darwin

  private let streamSocket = SOCK_STREAM
#endif

/// A TCP connection to this machine; its calls block for at most two minutes.
package struct RawConnection: Sendable {
  /// The socket; negative if the connection failed.
  private let descriptor: Int32

  package init(port: Int) {
    signal(SIGPIPE, SIG_IGN)
    let descriptor = socket(AF_INET, streamSocket, 0)
    var timeout = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    if !isConnected { release(descriptor) }
    self.descriptor = isConnected ? descriptor : -1
  }

  /// Sends a text.
  ///
  /// - Returns: Whether all of it was sent.
  @discardableResult
  package func write(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, 0) }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// Returns the bytes that arrive until the server closes; nil if nothing arrives for two minutes.
  package func readToEnd() -> [UInt8]? {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0 && errno == EAGAIN { return nil }
      guard count > 0 else { return received }
      received += buffer[..<count]
    }
  }

  /// Whether the server has closed the connection and everything it sent has been read.
  package var isClosedByPeer: Bool {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    return count == 0 || (count < 0 && errno != EAGAIN)
  }

  /// Closes the sending side.
  package func closeOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

  package func close() { release(descriptor) }
}

private func release(_ descriptor: Int32) {
  #if canImport(Glibc)
    _ = Glibc.close(descriptor)
  #else
    _ = Darwin.close(descriptor)
  #endif
}
