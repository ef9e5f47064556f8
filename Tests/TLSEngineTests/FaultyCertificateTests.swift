import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// Certificates that a client must reject, each for exactly one reason.
@Suite struct FaultyCertificateTests {
  private let now = SampleCertificates.now
  private let names = ["localhost", "*.apns.test", "127.0.0.1"].compactMap { CertificateName($0) }

  /// Returns the result of `openssl verify` for the first certificate of an identity.
  private func verify(
    _ identity: ServerIdentity, _ fixture: TLSFixture, authority: String = "ca.pem", _ options: String...
  ) async throws -> ChildProgram.Outcome {
    try fixture.tool.write("leaf.pem", try #require(identity.chain.first).pem)
    return try await fixture.tool.run(
      ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", authority] + options + ["leaf.pem"])
  }

  /// Returns the certificate fault that a client detects.
  private func fault(_ identity: ServerIdentity, _ fixture: TLSFixture) throws -> CertificateFault? {
    let looking = try TLSContext(clientTrusting: [fixture.path("ca.pem")], acceptsAnyCertificate: true)
    let pair = try TLSPair(server: fixture.server, client: looking)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    try pair.server.proceed(with: TLSContext(server: identity))
    #expect(try pair.shakeHands() == .done)
    return pair.client.peerCertificateFault
  }

  private func expectRefusal(of identity: ServerIdentity, _ fixture: TLSFixture, words: String) throws {
    let pair = try TLSPair(server: fixture.server, client: fixture.client)
    pair.server.stopsAfterClientHello = true
    #expect(try pair.shakeHands() == .clientHelloReceived)
    try pair.server.proceed(with: TLSContext(server: identity))
    pair.carryDown()
    let error = #expect(throws: TLSError.self) { try pair.client.handshake() }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test func expiredCertificateIsOtherwiseValid() async throws {
    let fixture = try TLSFixture()
    let identity = try fixture.samples.authority.issueExpiredServer(names: names, now: now)
    #expect(identity.chain.first?.notAfter == now - SampleCertificates.day)
    #expect(identity.chain.first?.names == names)
    let outcome = try await verify(identity, fixture)
    #expect(outcome.status != 0)
    #expect(outcome.output.contains("certificate has expired"), "\(outcome.output)")
    let timeless = try await verify(identity, fixture, "-no_check_time", "-verify_hostname", "localhost")
    #expect(timeless.status == 0, "\(timeless.output)")
    #expect(try fault(identity, fixture)?.kind == .expired)
    try expectRefusal(of: identity, fixture, words: "certificate has expired")
  }

  @Test func misnamedCertificateIsOtherwiseValid() async throws {
    let fixture = try TLSFixture()
    let identity = try fixture.samples.authority.issueMisnamedServer(names: names, now: now)
    // The sample authority may not issue certificates for `wrong.invalid`.
    #expect(identity.chain.first?.names == [.domain("wrong.localhost")])
    #expect(try await verify(identity, fixture).status == 0)
    let outcome = try await verify(identity, fixture, "-verify_hostname", "localhost")
    #expect(outcome.output.contains("hostname mismatch"), "\(outcome.output)")
    #expect(try fault(identity, fixture) == nil)
    try expectRefusal(of: identity, fixture, words: "hostname mismatch")
  }

  @Test func wrongNameUsesTheInvalidDomainIfPermitted() throws {
    var permitted = NameConstraints()
    permitted.add(.domain("invalid"))
    let valid = (now - SampleCertificates.day)...(now + SampleCertificates.day)
    let authority = try CertificateAuthority(commonName: "Wide CA", permitted: permitted, valid: valid)
    let identity = try authority.issueMisnamedServer(names: names, now: now)
    #expect(identity.chain.first?.names == [.domain("wrong.invalid")])
  }

  @Test func authorityForOneAddressHasNoWrongName() throws {
    var permitted = NameConstraints()
    permitted.add(.address([127, 0, 0, 1]))
    permitted.add(.domain("only.test"))
    let valid = (now - SampleCertificates.day)...(now + SampleCertificates.day)
    let authority = try CertificateAuthority(commonName: "Narrow CA", permitted: permitted, valid: valid)
    #expect(throws: TLSError.self) {
      try authority.issueMisnamedServer(names: [.address([127, 0, 0, 1])], now: now)
    }
  }

  @Test func untrustedCertificateIsOtherwiseValid() async throws {
    let fixture = try TLSFixture()
    let identity = try CertificateAuthority.issueUntrustedServer(names: names, now: now)
    #expect(identity.chain.count == 2)
    #expect(identity.chain.first?.names == names)
    #expect(try await verify(identity, fixture).status != 0)
    // A client that trusts this authority finds no fault.
    try fixture.tool.write("stranger.pem", try #require(identity.chain.last).pem)
    let trusted = try await verify(identity, fixture, authority: "stranger.pem", "-verify_hostname", "localhost")
    #expect(trusted.status == 0, "\(trusted.output)")
    #expect(try fault(identity, fixture)?.kind == .unknownAuthority)
    try expectRefusal(of: identity, fixture, words: "self-signed certificate in certificate chain")
  }

  @Test func certificateAndKeyMustMatch() throws {
    let samples = try SampleCertificates()
    #expect(throws: TLSError.self) {
      try TLSContext(server: ServerIdentity(chain: [samples.server.certificate], key: samples.provider.key))
    }
    #expect(throws: TLSError.self) { try TLSContext(server: ServerIdentity(chain: [], key: samples.server.key)) }
    #expect(TLSError("nothing failed").description == "nothing failed")
  }

  /// A context from memory has the same function as one from files, including client certificates.
  @Test func serverContextFromMemory() throws {
    let fixture = try TLSFixture()
    let samples = fixture.samples
    let server = try TLSContext(
      server: ServerIdentity(
        chain: [samples.server.certificate, samples.authority.certificate], key: samples.server.key),
      clientAuthorities: [fixture.path("ca.pem")])
    let client = try TLSContext(
      clientTrusting: [fixture.path("ca.pem")],
      certificate: (chain: fixture.path("client.pem"), key: fixture.path("client-key.pem")))
    let pair = try TLSPair(server: server, client: client)
    #expect(try pair.shakeHands() == .done)
    #expect(pair.server.negotiatedHTTP2)
    #expect(pair.server.peerCertificate != nil)
  }
}
