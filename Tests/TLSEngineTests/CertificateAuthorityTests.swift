import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// Issued certificates, verified by the openssl program's strict checks.
@Suite struct CertificateAuthorityTests {
  @Test(arguments: [("server.pem", "sslserver", "sslclient"), ("client.pem", "sslclient", "sslserver")])
  func strictVerificationSucceedsOnlyForItsPurpose(file: String, purpose: String, otherPurpose: String) async throws {
    let tool = try OpenSSLTool()
    try SampleCertificates().write(to: tool)
    let right = try await tool.run("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", file)
    #expect(right.status == 0, "\(right.output)")
    let wrong = try await tool.run("verify", "-x509_strict", "-purpose", otherPurpose, "-CAfile", "ca.pem", file)
    #expect(wrong.status != 0)
    try tool.write("other-ca.pem", try SampleCertificates().authority.certificate.pem)
    let foreign = try await tool.run("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "other-ca.pem", file)
    #expect(foreign.status != 0)
  }

  @Test func authorityHasNameConstraints() async throws {
    let tool = try OpenSSLTool()
    try SampleCertificates().write(to: tool)
    let text = try await tool.run("x509", "-in", "ca.pem", "-noout", "-text").output
    for line in [
      "X509v3 Basic Constraints: critical", "CA:TRUE, pathlen:0", "X509v3 Key Usage: critical",
      "Certificate Sign, CRL Sign", "X509v3 Name Constraints: critical", "DNS:localhost", "DNS:test",
      "X509v3 Subject Key Identifier", "prime256v1",
    ] {
      #expect(text.contains(line), "\(line)")
    }
    // BoringSSL rejects a chain with name constraints on IP addresses.
    #expect(!text.contains("IP:"))
    #expect(try !X509Certificate.chain(pem: tool.text("ca.pem"))[0].constrainsAddresses)
  }

  @Test(arguments: [
    ("localhost", true), ("a.localhost", true), ("test", true), ("push.apns.test", true), ("*.apns.test", true),
    ("example.com", false), ("mytest", false), ("test.example.com", false), ("127.0.0.1", true), ("8.8.8.8", true),
    ("::1", true), ("2001:db8::1", true),
  ])
  func nameConstraintsAreEnforced(text: String, permitted: Bool) async throws {
    let samples = try SampleCertificates()
    let name = try #require(CertificateName(text))
    #expect(try samples.authority.certificate.permits(name) == permitted)
    // `permits` agrees with a verifier's result for a certificate with that name.
    let tool = try OpenSSLTool()
    try samples.write(to: tool)
    let names = [CertificateName.domain("localhost"), name]
    let issued = try samples.authority.issueServer(names: names, valid: samples.valid)
    try tool.write("named.pem", try issued.certificate.pem)
    let outcome = try await tool.run(
      "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", "ca.pem", "named.pem")
    #expect((outcome.status == 0) == permitted, "\(outcome.output)")
  }

  /// Re-issues a CA that has, as in earlier versions, IP addresses among its name constraints.
  @Test(arguments: ["permitted;DNS:localhost,permitted;IP:127.0.0.0/255.0.0.0", "permitted;IP:127.0.0.0/255.0.0.0"])
  func reissuedAuthorityDiffersInConstraintsAndSerialNumberOnly(constraints: String) async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    try samples.write(to: tool)
    try tool.write("ca-key.pem", try samples.authority.key.pem)
    let made = try await tool.run(
      "req", "-x509", "-new", "-key", "ca-key.pem", "-subj", "/O=apns-mock/CN=Sample CA", "-days", "100",
      "-addext", "nameConstraints=critical," + constraints, "-addext", "keyUsage=critical,keyCertSign",
      "-out", "old.pem")
    #expect(made.status == 0, "\(made.output)")
    let old = try X509Certificate.chain(pem: tool.text("old.pem"))[0]
    #expect(old.constrainsAddresses)
    let authority = try CertificateAuthority(certificate: old, key: samples.authority.key).withoutAddressConstraints()
    try tool.write("new.pem", try authority.certificate.pem)
    #expect(!authority.certificate.constrainsAddresses)
    #expect(authority.certificate.subject == old.subject)
    #expect(authority.certificate.notBefore == old.notBefore && authority.certificate.notAfter == old.notAfter)
    #expect(authority.certificate.fingerprint != old.fingerprint)
    func shown(_ file: String) async throws -> String {
      try await tool.run("x509", "-in", file, "-noout", "-ext", "subjectKeyIdentifier,basicConstraints,keyUsage").output
    }
    let (new, former) = (try await shown("new.pem"), try await shown("old.pem"))
    #expect(Set(new.split(separator: "\n")) == Set(former.split(separator: "\n")))
    let isLimited = constraints.contains("DNS")
    #expect(try authority.certificate.permits(.domain("example.com")) == !isLimited)
    let text = try await tool.run("x509", "-in", "new.pem", "-noout", "-text").output
    #expect(text.contains("DNS:localhost") == isLimited)
    // Leaves issued under the old certificate verify with the new one, and new leaves with the old one.
    let leaf = try authority.issueServer(names: [.domain("localhost")], valid: samples.valid)
    try tool.write("leaf.pem", try leaf.certificate.pem)
    for (trusted, file) in [("new.pem", "server.pem"), ("old.pem", "leaf.pem"), ("new.pem", "leaf.pem")] {
      let outcome = try await tool.run("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", trusted, file)
      #expect(outcome.status == 0, "\(outcome.output)")
    }
  }

  @Test func mismatchedKeyAndCertificateAreRejected() throws {
    let samples = try SampleCertificates()
    #expect(throws: TLSError.self) {
      try CertificateAuthority(certificate: samples.authority.certificate, key: samples.server.key)
    }
    #expect(throws: TLSError.self) {
      try CertificateAuthority(certificate: samples.server.certificate, key: samples.server.key)
    }
  }

  @Test func serialNumbersAreUnique() async throws {
    let tool = try OpenSSLTool()
    try SampleCertificates().write(to: tool)
    var serials: Set<String> = []
    for file in ["ca.pem", "server.pem", "client.pem"] {
      serials.insert(try await tool.run("x509", "-in", file, "-noout", "-serial").output)
    }
    #expect(serials.count == 3)
  }
}
