import Testing

@testable import TLSEngine

/// What the authority makes, judged by the openssl program's strict checks.
@Suite struct CertificateAuthorityTests {
  @Test(arguments: [("server.pem", "sslserver", "sslclient"), ("client.pem", "sslclient", "sslserver")])
  func strictVerificationForTheRightPurposeOnly(file: String, purpose: String, otherPurpose: String) throws {
    let tool = try OpenSSLTool()
    defer { tool.remove() }
    try SampleCertificates().write(to: tool)
    let right = try tool.run("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", file)
    #expect(right.status == 0, "\(right.output)")
    let wrong = try tool.run("verify", "-x509_strict", "-purpose", otherPurpose, "-CAfile", "ca.pem", file)
    #expect(wrong.status != 0)
    try tool.write("other-ca.pem", try SampleCertificates().authority.certificate.pem)
    let foreign = try tool.run("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "other-ca.pem", file)
    #expect(foreign.status != 0)
  }

  @Test func theAuthorityShowsItsLimits() throws {
    let tool = try OpenSSLTool()
    defer { tool.remove() }
    try SampleCertificates().write(to: tool)
    let text = try tool.run("x509", "-in", "ca.pem", "-noout", "-text").output
    for line in [
      "X509v3 Basic Constraints: critical", "CA:TRUE, pathlen:0", "X509v3 Key Usage: critical",
      "Certificate Sign, CRL Sign", "X509v3 Name Constraints: critical", "DNS:localhost", "DNS:test",
      "IP:127.0.0.0/255.0.0.0", "IP:10.0.0.0/255.0.0.0", "IP:172.16.0.0/255.240.0.0", "IP:192.168.0.0/255.255.0.0",
      "IP:0:0:0:0:0:0:0:1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF", "IP:FC00:0:0:0:0:0:0:0/FE00:0:0:0:0:0:0:0",
      "IP:FE80:0:0:0:0:0:0:0/FFC0:0:0:0:0:0:0:0", "X509v3 Subject Key Identifier", "prime256v1",
    ] {
      #expect(text.contains(line), "\(line)")
    }
  }

  @Test(arguments: [
    ("localhost", true), ("a.localhost", true), ("test", true), ("push.apns.test", true), ("*.apns.test", true),
    ("example.com", false), ("mytest", false), ("test.example.com", false), ("127.0.0.1", true), ("127.200.0.9", true),
    ("10.1.2.3", true), ("172.16.0.1", true), ("172.31.255.255", true), ("172.32.0.1", false), ("192.168.1.20", true),
    ("192.169.0.1", false), ("8.8.8.8", false), ("::1", true), ("::2", false), ("fd12::1", true), ("fe80::1", true),
    ("2001:db8::1", false), ("fec0::1", false),
  ])
  func nameConstraintsDecide(text: String, permitted: Bool) throws {
    let samples = try SampleCertificates()
    let name = try #require(CertificateName(text))
    #expect(try samples.authority.certificate.permits(name) == permitted)
    // What `permits` says is what a verifier says of a certificate with that name.
    let tool = try OpenSSLTool()
    defer { tool.remove() }
    try samples.write(to: tool)
    let names = [CertificateName.domain("localhost"), name]
    let issued = try samples.authority.issueServer(names: names, valid: samples.valid)
    try tool.write("named.pem", try issued.certificate.pem)
    let outcome = try tool.run("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", "ca.pem", "named.pem")
    #expect((outcome.status == 0) == permitted, "\(outcome.output)")
  }

  @Test func partsThatDoNotFitMakeNoAuthority() throws {
    let samples = try SampleCertificates()
    #expect(throws: TLSError.self) {
      try CertificateAuthority(certificate: samples.authority.certificate, key: samples.server.key)
    }
    #expect(throws: TLSError.self) {
      try CertificateAuthority(certificate: samples.server.certificate, key: samples.server.key)
    }
  }

  @Test func everySerialNumberIsAnother() throws {
    let tool = try OpenSSLTool()
    defer { tool.remove() }
    try SampleCertificates().write(to: tool)
    let serials = try ["ca.pem", "server.pem", "client.pem"].map {
      try tool.run("x509", "-in", $0, "-noout", "-serial").output
    }
    #expect(Set(serials).count == 3)
  }
}
