import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// The contents of a provider's certificate (Protocol.md, section 4.1).
@Suite struct PeerCertificateTests {
  @Test func ownCertificateHasTheFormOfApples() throws {
    let samples = try SampleCertificates(topics: ["com.example.app", "com.example.app.voip"])
    let certificate = PeerCertificate(samples.provider.certificate)
    #expect(certificate.subjectUID == "com.example.app")
    #expect(certificate.commonName == "Apple Push Services: com.example.app")
    #expect(certificate.topics == ["com.example.app", "com.example.app.voip"])
    #expect(certificate.development)
    #expect(certificate.production)
    #expect(certificate.notAfter == samples.valid.upperBound)
    #expect(certificate.fingerprint == samples.provider.certificate.fingerprint)
  }

  @Test(arguments: [(true, false), (false, true)])
  func oneEnvironmentOnly(development: Bool, production: Bool) throws {
    let samples = try SampleCertificates()
    var request = CertificateAuthority.ProviderRequest(topics: ["com.acme.app"], teamID: "MOCKTEAM01")
    request.development = development
    request.production = production
    let certificate = PeerCertificate(
      try samples.authority.issueProvider(request, valid: samples.valid).certificate)
    #expect(certificate.development == development)
    #expect(certificate.production == production)
  }

  @Test func certificateWithoutPushExtensionsHasNoTopics() throws {
    let certificate = PeerCertificate(try SampleCertificates().server.certificate)
    #expect(certificate.subjectUID == nil)
    #expect(certificate.topics.isEmpty)
    #expect(!certificate.development)
    #expect(!certificate.production)
  }

  /// An RSA certificate like Apple's, made by the openssl program, with the labels of a real certificate.
  @Test func foreignCertificateInDER() async throws {
    let tool = try OpenSSLTool()
    try tool.write(
      "extensions.cnf",
      """
      [req]
      distinguished_name = name
      x509_extensions = push
      prompt = no
      [name]
      CN = Apple Push Services: com.acme.app
      UID = com.acme.app
      [push]
      1.2.840.113635.100.6.3.1 = ASN1:NULL
      1.2.840.113635.100.6.3.6 = ASN1:SEQUENCE:topics
      [topics]
      topic1 = UTF8:com.acme.app
      labels1 = SEQUENCE:app
      topic2 = UTF8:com.acme.app.voip
      labels2 = SEQUENCE:voip
      [app]
      label = UTF8:app
      [voip]
      label = UTF8:voip
      other = UTF8:complication
      """)
    try await tool.run(
      "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-config", "extensions.cnf", "-outform",
      "DER", "-out", "cert.der", "-days", "3")
    let der = try tool.bytes("cert.der")
    let certificate = try PeerCertificate(der: der)
    #expect(certificate.subjectUID == "com.acme.app")
    #expect(certificate.topics == ["com.acme.app", "com.acme.app.voip"])
    #expect(certificate.development)
    #expect(!certificate.production)
    // A truncated certificate is an error, and so are bytes after the certificate.
    for count in 0..<der.count {
      #expect(throws: TLSError.self) { try PeerCertificate(der: Array(der.prefix(count))) }
    }
    #expect(throws: TLSError.self) { try PeerCertificate(der: der + [0]) }
  }

  /// Bundle id (…6.3.3) and VoIP topics (…6.3.4), with and without the list (…6.3.6).
  @Test(
    arguments: [
      ("1.2.840.113635.100.6.3.4 = ASN1:UTF8:com.acme.app.voip", ["com.acme.app", "com.acme.app.voip"]),
      ("1.2.840.113635.100.6.3.3 = ASN1:UTF8:com.acme.app", ["com.acme.app"]),
      (
        """
        1.2.840.113635.100.6.3.3 = ASN1:UTF8:com.acme.app
        1.2.840.113635.100.6.3.4 = ASN1:IA5:com.acme.app.voip
        1.2.840.113635.100.6.3.6 = ASN1:SEQUENCE:list
        """, ["com.acme.app", "com.acme.app.complication", "com.acme.app.voip"]
      ),
      ("1.2.840.113635.100.6.3.4 = ASN1:INTEGER:1", []),
    ])
  func otherExtensionsWithTopics(extensions: String, topics: [String]) async throws {
    let tool = try OpenSSLTool()
    try tool.write(
      "extensions.cnf",
      """
      [req]
      distinguished_name = name
      x509_extensions = push
      prompt = no
      [name]
      CN = Apple Push Services: com.acme.app
      UID = com.acme.app
      [push]
      1.2.840.113635.100.6.3.1 = ASN1:NULL
      \(extensions)
      [list]
      topic1 = UTF8:com.acme.app
      labels1 = SEQUENCE:app
      topic2 = UTF8:com.acme.app.complication
      labels2 = SEQUENCE:app
      [app]
      label = UTF8:app
      """)
    try await tool.run(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem",
      "-config", "extensions.cnf", "-outform", "DER", "-out", "cert.der", "-days", "3")
    let certificate = try PeerCertificate(der: try tool.bytes("cert.der"))
    #expect(certificate.subjectUID == "com.acme.app")
    #expect(certificate.topics == topics)
  }

  /// A certificate with one altered byte never crashes the parser.
  @Test func alteredCertificatesAreSurvived() async throws {
    let tool = try OpenSSLTool()
    try SampleCertificates().write(to: tool)
    try await tool.run("x509", "-in", "client.pem", "-outform", "DER", "-out", "client.der")
    let der = try tool.bytes("client.der")
    var read = 0
    for index in der.indices {
      for flip: UInt8 in [0x01, 0x80, 0xFF] {
        var altered = der
        altered[index] ^= flip
        if (try? PeerCertificate(der: altered)) != nil { read += 1 }
      }
    }
    #expect(read > 0)
  }

  @Test func topicLongerThanACommonName() throws {
    let topic = "com." + String(repeating: "x", count: 200)
    let certificate = PeerCertificate(try SampleCertificates(topics: [topic]).provider.certificate)
    #expect(certificate.subjectUID == topic)
    #expect(certificate.topics == [topic])
    #expect(certificate.commonName?.count == 64)
  }
}
