import Testing

@testable import TLSEngine

/// A server's and a client's TLS connection joined in memory.
final class TLSPair {
  let server: TLSConnection
  let client: TLSConnection
  /// Everything the server said so far, in cipher text.
  private(set) var fromServer: [UInt8] = []

  init(server: TLSContext, client: TLSContext, serverName: String = "localhost") throws {
    self.server = try TLSConnection(server: server)
    self.client = try TLSConnection(client: client, serverName: serverName)
  }

  /// Calls `body` with a pair whose handshake is done.
  static func withOpenOne(_ body: (TLSPair) throws -> Void) throws {
    let fixture = try TLSFixture()
    defer { fixture.remove() }
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    #expect(try pair.shakeHands() == .done)
    try body(pair)
  }

  /// Carries what the client has to say.
  func carryUp() {
    client.takeOutput { server.receive($0) }
  }

  /// Carries what the server has to say.
  func carryDown() {
    server.takeOutput {
      fromServer += Array($0)
      client.receive($0)
    }
  }

  /// Goes on with both handshakes until nothing moves any more; where the server's stands.
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

  /// A few bytes from the server to the client.
  func say(_ text: String) throws -> String {
    try Array(text.utf8).withUnsafeBytes { try server.write($0) }
    carryDown()
    var heard = [UInt8](repeating: 0, count: 100)
    let result = try heard.withUnsafeMutableBytes { try client.read(into: $0) }
    guard case .bytes(let count) = result else { return "" }
    return String(decoding: heard.prefix(count), as: UTF8.self)
  }
}

/// Contexts made of sample certificates, with the files they need.
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

  func remove() { tool.remove() }
}
