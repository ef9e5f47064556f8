import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

@Suite struct X509CertificateTests {
  @Test func issuedCertificateRoundTrips() throws {
    let samples = try SampleCertificates(serverNames: ["localhost", "127.0.0.1", "::1", "*.apns.test"])
    let text = try samples.server.certificate.pem + samples.authority.certificate.pem
    let chain = try X509Certificate.chain(pem: "a comment\n" + text)
    #expect(chain.count == 2)
    let leaf = chain[0]
    #expect(leaf.names.map(\.description) == ["localhost", "127.0.0.1", "::1", "*.apns.test"])
    #expect(leaf.subject == "CN=localhost,O=apns-mock")
    #expect(leaf.issuer == "CN=Sample CA,O=apns-mock")
    #expect(leaf.issuerOrganization == "apns-mock")
    #expect(leaf.notBefore...leaf.notAfter == samples.valid)
    #expect(leaf.fingerprint == samples.server.certificate.fingerprint)
    #expect(leaf.isIssued(by: chain[1]))
    #expect(!leaf.isIssued(by: try SampleCertificates().authority.certificate))
    #expect(leaf.matches(samples.server.key))
    #expect(!leaf.matches(samples.provider.key))
    #expect(chain[1].isAuthority)
    #expect(!leaf.isAuthority)
    #expect(chain[1].names.isEmpty)
  }

  @Test func fingerprintMatchesOpenSSL() async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    try samples.write(to: tool)
    let shown = try await tool.run("x509", "-in", "ca.pem", "-noout", "-fingerprint", "-sha256").output
    let digits = shown.split(separator: "=").last.map { $0.filter(\.isHexDigit).lowercased() }
    #expect(digits == samples.authority.certificate.fingerprint)
  }

  @Test(arguments: [
    ("", "empty"), ("hello", "not a PEM text"), ("-----BEGIN PRIVATE KEY-----\n", "a private key"),
    ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 of the text is damaged"),
    ("-----BEGIN CERTIFICATE-----\n", "certificate 1 of the text has no line -----END: it was cut"),
  ])
  func invalidCertificateIsDescribed(pem: String, words: String) {
    let error = #expect(throws: TLSError.self) { try X509Certificate.chain(pem: pem) }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test func damagedSecondCertificateIsReported() throws {
    let pem = try SampleCertificates().server.certificate.pem
    let error = #expect(throws: TLSError.self) {
      try X509Certificate.chain(pem: pem + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    }
    #expect(error?.description.contains("certificate 2") == true)
  }
}

@Suite struct CertificateNameTests {
  @Test(arguments: [
    ("localhost", "localhost"), ("API.Push.Apple.com", "api.push.apple.com"), ("*.example.test", "*.example.test"),
    ("a-b.c1", "a-b.c1"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[fd00::12]", "fd00::12"),
    ("0:0:0:0:0:0:0:1", "::1"), ("5f2a8c7d1e0b", "5f2a8c7d1e0b"),
  ])
  func names(text: String, description: String) throws {
    #expect(try #require(CertificateName(text)).description == description)
  }

  @Test(arguments: [
    "", ".", "a..b", ".a", "a.", "-a", "a-", "*", "a.*.b", "**.a", "a b", "a_b", "https://a", "a:80", "a/b",
    "127.0.0.256", "1.2.3", "::g", "a,DNS:evil.com", "a\nb", "é.test", "a\u{0}b", String(repeating: "a", count: 64),
    String(repeating: "a.", count: 127) + "b",
  ])
  func invalidNames(text: String) {
    #expect(CertificateName(text) == nil)
  }
}
