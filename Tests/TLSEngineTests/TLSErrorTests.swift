import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// OpenSSL's error queue of the thread must be empty after each call: remaining errors would be attributed to the
/// next TLS call. An error created while the queue is empty describes no OpenSSL errors.
@Suite struct TLSErrorTests {
  private func expectEmptyQueue(_ location: SourceLocation = #_sourceLocation) {
    #expect(TLSError("nothing failed").description == "nothing failed", sourceLocation: location)
  }

  @Test func errorContainsOpenSSLReasons() throws {
    expectEmptyQueue()
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    let error = #expect(throws: TLSError.self) { try X509Certificate.chain(pem: pem) }
    #expect(error?.description.contains("(OpenSSL: ") == true)
    expectEmptyQueue()
  }

  @Test func failuresLeaveTheErrorQueueEmpty() throws {
    let key = try ES256PrivateKey()
    let garbage = [UInt8](repeating: 0x30, count: 70)
    #expect(!garbage.withUnsafeBytes { key.publicKey.isValid(signature: $0, for: $0) })
    expectEmptyQueue()
    #expect(throws: TLSError.self) { try PeerCertificate(der: garbage) }
    expectEmptyQueue()
    #expect(throws: TLSError.self) { try ES256PrivateKey(pem: "-----BEGIN PRIVATE KEY-----") }
    expectEmptyQueue()
  }

  @Test func comparisonsLeaveTheErrorQueueEmpty() throws {
    let samples = try SampleCertificates()
    let certificate = samples.server.certificate
    #expect(!certificate.matches(samples.provider.key))
    expectEmptyQueue()
    #expect(!certificate.isIssued(by: certificate))
    expectEmptyQueue()
    #expect(!samples.provider.key.publicKey.isSame(as: samples.server.key.publicKey))
    expectEmptyQueue()
    #expect(try !samples.authority.certificate.permits(.domain("example.com")))
    expectEmptyQueue()
    #expect(try X509Certificate.chain(pem: certificate.pem).count == 1)
    expectEmptyQueue()
  }
}

@Suite struct TLSAlertTests {
  /// OpenSSL's names of the alerts that a client receives instead of a ServerHello.
  @Test(arguments: [
    ("handshake_failure", "handshake failure"), ("internal_error", "internal error"),
    ("unrecognized_name", "unrecognized name"), ("protocol_version", "protocol version"),
    ("access_denied", "access denied"), ("bad_certificate", "bad certificate"),
    ("no_application_protocol", "no application protocol"), ("insufficient_security", "insufficient security"),
  ])
  func clientReadsTheAlert(name: String, words: String) throws {
    let fixture = try TLSFixture()
    let client = try TLSConnection(client: fixture.client, serverName: "localhost")
    #expect(try client.handshake() == .waiting)
    let code = try #require(TLSAlert.code(named: name))
    TLSAlert.record(code: code).withUnsafeBytes { client.receive($0) }
    let error = #expect(throws: TLSError.self) { try client.handshake() }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test func namesAndCodes() {
    #expect(TLSAlert.names.count == 28)
    #expect(Set(TLSAlert.names).count == 28)
    let codes = TLSAlert.names.compactMap { TLSAlert.code(named: $0) }
    #expect(codes == codes.sorted())
    #expect(codes.compactMap { TLSAlert.name(of: $0) } == TLSAlert.names)
    #expect(TLSAlert.code(named: "handshake_failure") == 40)
    #expect(TLSAlert.code(named: "handshake failure") == nil)
    #expect(TLSAlert.name(of: 41) == nil)
  }

  @Test(arguments: [(40, 2), (0, 1), (90, 1), (255, 2)] as [(UInt8, UInt8)])
  func alertRecord(code: UInt8, level: UInt8) {
    #expect(TLSAlert.record(code: code) == [21, 3, 3, 0, 2, level, code])
  }
}
