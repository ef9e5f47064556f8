import Testing

@testable import TLSEngine

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
