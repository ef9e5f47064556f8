import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// The TLS connections of a server and a client, connected in memory.
final class TLSPair {
  let server: TLSConnection
  let client: TLSConnection
  /// All cipher text the server has sent.
  private(set) var fromServer: [UInt8] = []

  init(server: TLSContext, client: TLSContext, serverName: String = "localhost") throws {
    self.server = try TLSConnection(server: server)
    self.client = try TLSConnection(client: client, serverName: serverName)
  }

  /// Calls `body` with a pair that has completed its handshake.
  static func withOpenOne(_ body: (TLSPair) throws -> Void) throws {
    let fixture = try TLSFixture()
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    #expect(try pair.shakeHands() == .done)
    try body(pair)
  }

  /// Transfers the client's output to the server.
  func carryUp() {
    client.takeOutput { server.receive($0) }
  }

  /// Transfers the server's output to the client.
  func carryDown() {
    server.takeOutput {
      fromServer += Array($0)
      client.receive($0)
    }
  }

  /// Continues both handshakes as far as possible and returns the state of the server's.
  @discardableResult
  func shakeHands() throws -> TLSConnection.Handshake {
    var state = TLSConnection.Handshake.waiting
    for _ in 0..<4 {
      _ = try client.handshake()
      carryUp()
      state = try server.handshake()
      carryDown()
    }
    return state
  }

  /// Sends a short text from the server and returns what the client reads.
  func say(_ text: String) throws -> String {
    try Array(text.utf8).withUnsafeBytes { try server.write($0) }
    carryDown()
    var heard = [UInt8](repeating: 0, count: 100)
    let result = try heard.withUnsafeMutableBytes { try client.read(into: $0) }
    guard case .bytes(let count) = result else { return "" }
    return String(decoding: heard.prefix(count), as: UTF8.self)
  }
}

/// Contexts made from sample certificates, and their files.
struct TLSFixture {
  let samples: SampleCertificates
  let tool: OpenSSLTool
  let server: TLSContext
  let client: TLSContext

  init() throws {
    samples = try SampleCertificates()
    tool = try OpenSSLTool()
    try samples.write(to: tool)
    try tool.write("server-key.pem", try samples.server.key.pem)
    try tool.write("client-key.pem", try samples.provider.key.pem)
    server = try TLSContext(
      serverCertificateChain: tool.path("server.pem"), privateKey: tool.path("server-key.pem"),
      clientAuthorities: [tool.path("ca.pem")])
    client = try TLSContext(clientTrusting: [tool.path("ca.pem")])
  }

  func path(_ name: String) -> String { tool.path(name) }
}
