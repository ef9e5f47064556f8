import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// The pause between the ClientHello and the server's response.
@Suite struct ClientHelloPauseTests {
  @Test func handshakeDoesNotPauseByDefault() throws {
    let fixture = try TLSFixture()
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    #expect(try pair.shakeHands() == .done)
    #expect(pair.server.offeredProtocols.isEmpty)
    #expect(try pair.say("hello") == "hello")
  }

  @Test func handshakePausesAfterClientHello() throws {
    let fixture = try TLSFixture()
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.server.handshake() == .waiting, "no greeting yet")
    #expect(try pair.shakeHands() == .clientHelloReceived)
    #expect(pair.fromServer.isEmpty)
    #expect(pair.server.serverName == "localhost")
    #expect(pair.server.offeredProtocols == ["h2"])
    #expect(try pair.server.handshake() == .clientHelloReceived, "it does not continue without being resumed")
    #expect(try pair.server.proceed() == .waiting)
    #expect(try pair.shakeHands() == .done)
    #expect(pair.server.protocolVersion == "TLSv1.3")
    #expect(pair.server.negotiatedHTTP2)
    #expect(try pair.say("hello") == "hello")
  }

  /// Returns a server that received this ClientHello and paused its handshake without sending anything.
  private func greeted(_ greeting: RawClientHello, _ context: TLSContext) throws -> TLSConnection {
    let server = try TLSConnection(server: context)
    server.stopsAfterClientHello = true
    greeting.bytes.withUnsafeBytes { server.receive($0) }
    #expect(try server.handshake() == .clientHelloReceived)
    #expect(output(of: server).isEmpty)
    return server
  }

  private func output(of connection: TLSConnection) -> [UInt8] {
    var output: [UInt8] = []
    connection.takeOutput { output = Array($0) }
    return output
  }

  @Test func handshakePausesInTLS12() throws {
    let fixture = try TLSFixture()
    let server = try greeted(RawClientHello(protocols: ["h2"]), fixture.server)
    #expect(server.serverName == "localhost")
    #expect(try server.proceed() == .waiting)
    let answer = output(of: server)
    #expect(answer.starts(with: [22, 3, 3]) && answer.dropFirst(5).first == 2, "a ServerHello")
    #expect(server.protocolVersion == "TLSv1.2")
    #expect(server.negotiatedHTTP2)
  }

  /// The ClientHello arrives byte by byte.
  @Test func clientHelloInPieces() throws {
    let fixture = try TLSFixture()
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    _ = try pair.client.handshake()
    let greeting = output(of: pair.client)
    var states: [TLSConnection.Handshake] = []
    for byte in greeting {
      withUnsafeBytes(of: byte) { pair.server.receive($0) }
      states.append(try pair.server.handshake())
    }
    #expect(states.last == .clientHelloReceived)
    #expect(states.dropLast().allSatisfy { $0 == .waiting })
  }

  /// A HelloRetryRequest is a response too.
  @Test func handshakePausesBeforeAHelloRetryRequest() throws {
    let fixture = try TLSFixture()
    let server = try greeted(RawClientHello(asksForRetry: true), fixture.server)
    #expect(try server.proceed() == .waiting)
    #expect(output(of: server).starts(with: [22, 3, 3]))
    #expect(server.protocolVersion == "TLSv1.3")
  }

  @Test func offeredProtocolsAreTruncated() throws {
    let fixture = try TLSFixture()
    let server = try greeted(RawClientHello(protocols: [String](repeating: "x", count: 5000)), fixture.server)
    #expect(server.offeredProtocols == [String](repeating: "x", count: 64))
  }

  @Test(
    arguments: [
      nil, ["http/1.1"], ["h2"], ["spdy/3", "h2", "http/1.1"], ["\u{e9}", String(repeating: "x", count: 255)],
    ] as [[String]?])
  func offeredProtocolsAndNameAreRead(names: [String]?) throws {
    let fixture = try TLSFixture()
    let server = try greeted(RawClientHello(serverName: nil, protocols: names), fixture.server)
    #expect(server.serverName == nil)
    #expect(server.offeredProtocols == names ?? [])
    try server.proceed()
    #expect(!output(of: server).isEmpty)
    #expect(server.negotiatedProtocol == (names?.contains("h2") == true ? "h2" : nil))
  }

  @Test func certificateIsReplaced() throws {
    let fixture = try TLSFixture()
    let other = try fixture.samples.authority.issueServer(
      names: [.domain("localhost"), .domain("other.test")], valid: fixture.samples.valid)
    let context = try TLSContext(
      server: ServerIdentity(chain: [other.certificate, fixture.samples.authority.certificate], key: other.key))
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    try pair.server.proceed(with: context)
    #expect(try pair.shakeHands() == .done)
    #expect(pair.client.peerCertificateContains("other.test"))
    #expect(try pair.say("hello") == "hello")
    // The context itself is unchanged.
    let next = try TLSPair(server: fixture.server, client: fixture.client)
    #expect(try next.shakeHands() == .done)
    #expect(!next.client.peerCertificateContains("other.test"))
  }

  /// The requirements of the connection's own context for client certificates apply with another server certificate
  /// too.
  @Test(arguments: [true, false]) func clientCertificatesAreStillVerified(isOurs: Bool) throws {
    let fixture = try TLSFixture()
    if !isOurs {
      let stranger = try SampleCertificates()
      try fixture.tool.write("client.pem", try stranger.provider.certificate.pem)
      try fixture.tool.write("client-key.pem", try stranger.provider.key.pem)
    }
    let client = try TLSContext(
      clientTrusting: [fixture.path("ca.pem")],
      certificate: (chain: fixture.path("client.pem"), key: fixture.path("client-key.pem")))
    let other = try fixture.samples.authority.issueServer(names: [.domain("localhost")], valid: fixture.samples.valid)
    let context = try TLSContext(server: ServerIdentity(chain: [other.certificate], key: other.key))
    let pair = try TLSPair(server: fixture.server, client: client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    try pair.server.proceed(with: context)
    if isOurs {
      #expect(try pair.shakeHands() == .done)
      let shown = try PeerCertificate(der: try #require(pair.server.peerCertificate))
      #expect(shown.subjectUID == "com.example.app")
    } else {
      #expect(throws: TLSError.self) { try pair.shakeHands() }
      #expect(pair.server.peerCertificateFault?.kind == .unknownAuthority)
    }
  }

  /// If the connection's own context has a certificate of another key type, that certificate must not be used.
  @Test func rsaCertificateIsReplaced() async throws {
    let fixture = try TLSFixture()
    try await fixture.tool.run(
      "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "rsa-key.pem", "-out", "rsa.pem", "-days", "3",
      "-subj", "/CN=rsa.test")
    let context = try TLSContext(
      serverCertificateChain: fixture.path("rsa.pem"), privateKey: fixture.path("rsa-key.pem"), clientAuthorities: [])
    let samples = fixture.samples
    let other = try TLSContext(server: ServerIdentity(chain: [samples.server.certificate], key: samples.server.key))
    func shown(_ proceed: (TLSConnection) throws -> Void) throws -> String {
      let server = try greeted(RawClientHello(), context)
      try proceed(server)
      return String(decoding: output(of: server), as: UTF8.self)
    }
    #expect(try shown { try $0.proceed() }.contains("rsa.test"))
    let answer = try shown { try $0.proceed(with: other) }
    #expect(!answer.contains("rsa.test"))
    #expect(answer.contains("Sample CA"))
    // A client of TLS 1.3 accepts the certificate as well.
    let pair = try TLSPair(server: context, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    try pair.server.proceed(with: other)
    #expect(try pair.shakeHands() == .done)
  }

  @Test func contextWithoutCertificateIsRejected() throws {
    let fixture = try TLSFixture()
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    #expect(throws: TLSError.self) { try pair.server.proceed(with: fixture.client) }
    #expect(TLSError("nothing failed").description == "nothing failed")
  }

  /// A ClientHello with one altered byte results in an error or a response, never in a crash.
  @Test func alteredClientHellosAreSurvived() throws {
    let fixture = try TLSFixture()
    let client = try TLSConnection(client: fixture.client, serverName: "localhost")
    _ = try client.handshake()
    let modern = output(of: client)
    var greeted = 0
    for greeting in [modern, RawClientHello(protocols: ["h2", "http/1.1"]).bytes] {
      for (index, flip) in greeting.indices.flatMap({ index in [0x01, 0x80, 0xFF].map { (index, UInt8($0)) } }) {
        var altered = greeting
        altered[index] ^= flip
        let server = try TLSConnection(server: fixture.server)
        server.stopsAfterClientHello = true
        altered.withUnsafeBytes { server.receive($0) }
        guard (try? server.handshake()) == .clientHelloReceived else { continue }
        greeted += 1
        _ = try? server.proceed()
      }
    }
    #expect(greeted > 0)
  }

  @Test func connectionReleasedDuringThePause() throws {
    let fixture = try TLSFixture()
    weak var left: TLSConnection?
    do {
      let pair = try TLSPair(server: fixture.server, client: fixture.client)
      pair.server.stopsAfterClientHello = true
      #expect(try pair.shakeHands() == .clientHelloReceived)
      pair.server.close()
      left = pair.server
    }
    #expect(left == nil)
  }
}
