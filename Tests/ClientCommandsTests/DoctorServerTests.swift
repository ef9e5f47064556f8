import APNSMockAdminAPI
import APNSMockInbox
import MockAPNS
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// Common problems with a server: certificate, name, HTTP/2.
@Suite struct DoctorServerTests {
  /// The first SETTINGS of APNs: 4096 / 1 / 16384 / 8000.
  private static let settingsOfAPNs: [UInt8] =
    [0, 0, 24, 4, 0, 0, 0, 0, 0]
    + [0, 1, 0, 0, 0x10, 0, 0, 3, 0, 0, 0, 1, 0, 5, 0, 0, 0x40, 0, 0, 6, 0, 0, 0x1F, 0x40]

  private static func examine(
    _ endpoint: MockServer.Endpoint, as name: String = "localhost", trusting authority: String?,
    timeout: Duration = .seconds(60)
  ) async throws -> DiagnosisReport {
    let token = try Credential(jwt: "e30.e30.")
    var diagnosis = Diagnosis(
      endpoint: endpoint, serverName: name, authority: authority, credential: token, topic: "com.example.app",
      timeout: timeout)
    try await diagnosis.run()
    return DiagnosisReport(results: diagnosis.results)
  }

  // MARK: - Chain

  @Test func untrustedCA() async throws {
    let other = try ServerCertificate()
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine { $0.authority = other.authority }
      #expect(diagnosis.failed == [.chain], "\(diagnosis)")
      #expect(diagnosis.seen(.chain).contains("which is not in \(other.authority)"))
      #expect(diagnosis.repair(.chain).contains("curl http://\(mock.admin.address)/ca.pem -o ca.pem"))
      #expect(diagnosis.skipped == [.push])
      #expect(diagnosis.seen(.push) == "no push is sent to an untrusted server")
      #expect(try mock.state.inbox.record(seq: 1) == nil, "the provider token is not sent")
      let unknown = try await mock.examine(isKnown: false) { $0.authority = nil }
      #expect(unknown.failed == [.chain])
      #expect(unknown.seen(.chain).contains("no trusted CA is specified"))
      #expect(unknown.repair(.chain).contains("ca.pem of that server's certificate folder"))
    }
  }

  @Test func certificateOfApple() async throws {
    let folder = try TemporaryFolder()
    let (chain, key) = (folder.path + "/cert.pem", folder.path + "/key.pem")
    try await OpenSSLTool.makeCertificate(
      subject: "/CN=Apple Public Server RSA CA 12 - G1/O=Apple Inc./C=US", name: "api.sandbox.push.apple.com",
      chain: chain, key: key)
    let context = try TLSContext(serverCertificateChain: chain, privateKey: key, clientAuthorities: [])
    try await ForeignServer.run(.tls(context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(endpoint, as: "api.sandbox.push.apple.com", trusting: nil)
      #expect(diagnosis.failed == [.chain], "\(diagnosis)")
      #expect(diagnosis.seen(.chain).contains("this is Apple's own server"))
      #expect(diagnosis.repair(.chain).contains("map api.sandbox.push.apple.com to the mock"))
      #expect(diagnosis.skipped.contains(.push))
    }
  }

  @Test func certificateOfAnotherService() async throws {
    let folder = try TemporaryFolder()
    let (chain, key) = (folder.path + "/cert.pem", folder.path + "/key.pem")
    try await OpenSSLTool.makeCertificate(
      subject: "/CN=proxy/O=Corporate", name: "localhost", chain: chain, key: key)
    let context = try TLSContext(serverCertificateChain: chain, privateKey: key, clientAuthorities: [])
    try await ForeignServer.run(.tls(context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(endpoint, trusting: nil)
      #expect(diagnosis.failed == [.chain], "\(diagnosis)")
      #expect(diagnosis.repair(.chain).contains("another service or a proxy"))
    }
  }

  /// The certificate's validity in days from now, and a part of the diagnosis.
  @Test(arguments: [(-10 as Int64, -1 as Int64, "expired"), (1, 10, "not yet valid")])
  func certificateOutsideItsValidity(from: Int64, to: Int64, words: String) async throws {
    let certificate = try ServerCertificate(days: from...to)
    try await ForeignServer.run(.tls(try certificate.context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(endpoint, trusting: certificate.authority)
      #expect(diagnosis.failed == [.chain], "\(diagnosis)")
      #expect(diagnosis.seen(.chain).contains(words))
      #expect(diagnosis.seen(.chain).contains("this machine's clock shows"))
      #expect(diagnosis.repair(.chain).contains("restart apns-mock serve"))
      #expect(diagnosis.repair(.chain).contains("set the clock"))
    }
  }

  @Test func nameOutsideTheCAsConstraints() async throws {
    let certificate = try ServerCertificate(permitted: ["internal"])
    try await ForeignServer.run(.tls(try certificate.context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(endpoint, trusting: certificate.authority)
      #expect(diagnosis.failed == [.chain], "\(diagnosis)")
      #expect(diagnosis.repair(.chain).contains("apns-mock certs --new-ca --san NAME"))
    }
  }

  /// A CA from an earlier version, which only some clients accept.
  @Test func caRejectedByBoringSSL() async throws {
    let certificate = try ServerCertificate()
    try await OpenSSLTool.run([
      "req", "-x509", "-new", "-key", certificate.folder.path + "/ca-key.pem", "-out", certificate.authority,
      "-subj", "/O=apns-mock/CN=Foreign CA", "-addext", "keyUsage=critical,keyCertSign",
      "-addext", "nameConstraints=critical,permitted;DNS:localhost,permitted;IP:127.0.0.0/255.0.0.0",
    ])
    try await ForeignServer.run(.tls(try certificate.context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(
        endpoint, trusting: certificate.authority, timeout: .seconds(10))
      #expect(diagnosis.failed.contains(.chain), "\(diagnosis)")
      #expect(diagnosis.seen(.chain).contains("\(certificate.authority) has IP addresses in its name constraints"))
      #expect(diagnosis.seen(.chain).contains("BoringSSL"))
      #expect(diagnosis.repair(.chain).contains("run apns-mock certs for its folder"))
      #expect(diagnosis.repair(.chain).contains("apns-mock certs --new-ca"))
    }
  }

  // MARK: - Name

  @Test(arguments: ["push.example.com", "10.1.2.3"])
  func nameMissingFromTheCertificate(name: String) async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine { $0.serverName = name }
      #expect(diagnosis.failed == [.name], "\(diagnosis)")
      #expect(diagnosis.seen(.name).contains("the certificate contains localhost, 127.0.0.1"))
      #expect(diagnosis.repair(.name).contains("--san \(name)"))
      #expect(diagnosis.skipped == [.push])
      #expect(try mock.state.inbox.record(seq: 1) == nil)
    }
  }

  @Test(arguments: ["127.0.0.1", "::1", "apns-mock", "api.push.apple.com"])
  func namesInTheCertificate(name: String) async throws {
    try await TestServer.run { mock in
      let diagnosis = try await mock.examine { $0.serverName = name }
      #expect(diagnosis.failed.isEmpty, "\(diagnosis)")
    }
  }

  // MARK: - HTTP/2

  /// The flags that make the server refuse h2, and a part of the diagnosis.
  @Test(arguments: [(["-alpn", "http/1.1"], "rejected h2"), ([], "selected no protocol")])
  func serverWithoutHTTP2(flags: [String], seen: String) async throws {
    let certificate = try ServerCertificate()
    try await OpenSSLTool.serve(["-cert", certificate.chain, "-key", certificate.key] + flags) { endpoint in
      let diagnosis = try await Self.examine(endpoint, trusting: certificate.authority)
      #expect(diagnosis.failed == [.alpn], "\(diagnosis)")
      #expect(diagnosis.seen(.alpn).contains(seen))
      #expect(diagnosis.repair(.alpn).contains("forward TCP, or offer h2 by ALPN"))
      #expect(diagnosis.skipped.contains(.settings))
      #expect(diagnosis.skipped.contains(.push))
    }
  }

  @Test func settingsOtherThanThoseOfAPNs() async throws {
    let certificate = try ServerCertificate()
    let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]
    try await ForeignServer.run(.tls(try certificate.context, settings)) { endpoint in
      let diagnosis = try await Self.examine(
        endpoint, trusting: certificate.authority, timeout: .seconds(3))
      #expect(diagnosis.failed.first == .settings, "\(diagnosis)")
      #expect(diagnosis.seen(.settings).contains("MAX_CONCURRENT_STREAMS 100, MAX_HEADER_LIST_SIZE unlimited"))
      #expect(diagnosis.repair(.settings).contains("connect directly to apns-mock"))
    }
  }

  @Test func noSettings() async throws {
    let certificate = try ServerCertificate()
    try await ForeignServer.run(.tls(try certificate.context, [])) { endpoint in
      let diagnosis = try await Self.examine(
        endpoint, trusting: certificate.authority, timeout: .seconds(3))
      #expect(diagnosis.failed == [.settings], "\(diagnosis)")
      #expect(diagnosis.seen(.settings) == "none received")
    }
  }

  @Test func noResponse() async throws {
    let certificate = try ServerCertificate()
    try await ForeignServer.run(.tls(try certificate.context, Self.settingsOfAPNs)) { endpoint in
      let diagnosis = try await Self.examine(
        endpoint, trusting: certificate.authority, timeout: .seconds(3))
      #expect(diagnosis.failed == [.push], "\(diagnosis)")
      #expect(diagnosis.seen(.push) == "no response within 3s")
    }
  }
}
