import MockAPNS
import NIOCore
import NIOPosix
import APNSMockPlatformLibc
import APNSMockTestSupport
import Testing

/// Socket options of the connections that providers open.
@Suite struct AcceptedSocketTests {
  /// Without TCP_NODELAY, a response waits until the provider has acknowledged the previous one.
  @Test func smallResponsesAreNotDelayed() async throws {
    try await TestServer.run { test in
      let port = test.server.addresses[0].port
      let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .connect(host: "127.0.0.1", port: port).get()
      try await eventually("the connection is accepted") { test.state.connections.openCount > 0 }
      let accepted = (0..<1024).filter { Self.localPort($0) == port && Self.option(SOL_SOCKET, SO_ACCEPTCONN, $0) == 0 }
      #expect(accepted.count == 1)
      for descriptor in accepted {
        #expect(Self.option(Int32(IPPROTO_TCP), TCP_NODELAY, descriptor) != 0)
        #expect(Self.option(SOL_SOCKET, SO_DEBUG, descriptor) == 0, "it has the number of TCP_NODELAY")
      }
      try await client.close()
    }
  }

  private static func localPort(_ descriptor: Int32) -> Int? {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutableBytes(of: &address) { bytes in
      bytes.baseAddress.map { getsockname(descriptor, $0.assumingMemoryBound(to: sockaddr.self), &size) }
    }
    guard result == 0, Int32(address.sin_family) == AF_INET else { return nil }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  private static func option(_ level: Int32, _ name: Int32, _ descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, level, name, &value, &size) == 0 ? value : nil
  }
}
