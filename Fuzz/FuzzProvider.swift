import APNSMockRules
import NIOCore
import NIOEmbedded
import APNSMockTLSEngine

@testable import MockAPNS

/// The client of an in-memory connection to the server.
final class FuzzProvider {
  let server: FuzzServer
  let state: ServerState
  private let channel = EmbeddedChannel()
  private let tls: TLSConnection
  /// Whether the handshake is complete.
  private var isSafe = false
  private var unsaid: [UInt8] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 14, alignment: 16)

  init(_ server: FuzzServer, _ state: ServerState, hasCertificate: Bool) throws {
    self.server = server
    self.state = state
    tls = try TLSConnection(
      client: hasCertificate ? server.clientContexts.1 : server.clientContexts.0, serverName: "localhost")
    let log = ConnectionLog(
      number: state.nextConnectionNumber(), listener: 0, client: MockServer.Endpoint(host: "127.0.0.1", port: 50000),
      events: state.events)
    try state.connections.add(channel, log: log)
    let listener = Listener(
      index: 0, kind: .tls, environment: .sandbox, state: state, logger: server.logger)
    try channel.pipeline.syncOperations.addHandler(try listener.secureHandler(log))
  }

  deinit { buffer.deallocate() }

  var isOpen: Bool { channel.isActive }

  /// Connects without sending anything.
  func connect() throws {
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 2197), promise: nil)
  }

  /// Sends bytes, encrypted; queues them until the handshake is complete.
  func write(_ bytes: [UInt8]) throws {
    unsaid += bytes
    for _ in 0..<4 where isOpen && !isSafe {
      if case .done = try tls.handshake() { isSafe = true }
      try carry()
    }
    guard isSafe, !unsaid.isEmpty else { return }
    try unsaid.withUnsafeBytes { try tls.write($0) }
    unsaid = []
    try carry()
  }

  /// Sends bytes without TLS.
  func shout(_ bytes: [UInt8]) throws { try write(bytes[...]) }

  /// Advances the time.
  func wait(_ time: TimeAmount) throws {
    channel.embeddedEventLoop.advanceTime(by: time)
    try readOutput()
  }

  /// Fires a user event in the server's pipeline, as other parts of the server do.
  func fire(_ event: any Sendable) throws {
    channel.pipeline.fireUserInboundEventTriggered(event)
    try readOutput()
  }

  /// Announces the server's shutdown.
  func sendClosingGoAway() throws { try fire(Connections.ShutdownRequested()) }

  /// Closes the connection without waiting for actions that the server has scheduled.
  func hangUp() {
    try? readOutput()
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }

  private func carry() throws {
    var output: [UInt8] = []
    tls.takeOutput { output += Array($0) }
    try write(output[...])
  }

  private func write(_ bytes: ArraySlice<UInt8>) throws {
    if !bytes.isEmpty, isOpen { try channel.writeInbound(channel.allocator.buffer(bytes: bytes)) }
    try readOutput()
  }

  /// Decrypts the server's output, which also checks its integrity.
  private func readOutput() throws {
    while let output = try channel.readOutbound(as: ByteBuffer.self) {
      output.withUnsafeReadableBytes { tls.receive($0) }
    }
    while isSafe, case .bytes = try tls.read(into: buffer) {}
  }
}
