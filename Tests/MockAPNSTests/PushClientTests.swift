import APNSMockRules
import APNSMockHTTPMessage
import APNSMockInbox
import MockAPNS
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

/// Errors of the client when a push cannot be sent, and what it does not send to an untrusted server.
@Suite struct PushClientTests {
  private static func certificate(
    _ test: TestServer, _ environments: Set<PushEnvironment> = [.sandbox], expired: Bool = false
  ) throws -> PushClient {
    let made = try test.state.certificates.makeClientCertificate(
      topics: ["com.example.app"], environments: environments, expired: expired)
    var client = test.provider()
    client.certificate = (made.certificate, made.key)
    return client
  }

  @Test func wrongEnvironmentCertificateIsReported() async throws {
    try await TestServer.run { test in
      let outcomes = try await Self.certificate(test, [.production]).send([test.push(token: nil)])
      #expect(
        outcomes == [.disconnected(reason: #"GOAWAY NO_ERROR (0x0): {"reason":"BadCertificateEnvironment"}"#)])
    }
  }

  @Test func expiredCertificateFailsTheConnection() async throws {
    try await TestServer.run { test in
      let client = try Self.certificate(test, expired: true)
      let error = try await #require(throws: PushClientError.self) { try await client.send([test.push(token: nil)]) }
      #expect(error.wasConnected)
      #expect(error.description.contains("certificate expired"))
    }
  }

  @Test func connectionRefused() async throws {
    // Port 1 is tcpmux, and nothing listens on it here.
    let client = PushClient(endpoint: MockServer.Endpoint(host: "127.0.0.1", port: 1), authorities: [])
    let error = try await #require(throws: PushClientError.self) { try await client.send([]) }
    #expect(!error.wasConnected)
    #expect(error.description.contains("127.0.0.1:1"))
  }

  @Test func untrustedServerIsRejectedOrProbed() async throws {
    try await TestServer.run { test in
      let push = test.push(token: try test.providerToken())
      var stranger = test.provider()
      stranger.authorities = []
      var misnamed = test.provider()
      misnamed.serverName = "push.example.com"
      for client in [stranger, misnamed] {
        await #expect(throws: PushClientError.self) { try await client.send([push]) }
        let probeResult = try await client.probe(sending: push)
        #expect(!probeResult.isTrusted)
        #expect(probeResult.outcomes == [nil])
        #expect(probeResult.settings?.areAsAPNs == true)
        #expect(probeResult.termination == .complete)
      }
      #expect(try await stranger.probe(sending: nil).certificateFault?.kind == .unknownAuthority)
      #expect(try await stranger.probe(sending: nil).certificateMatchesName)
      #expect(try await misnamed.probe(sending: nil).certificateFault == nil)
      #expect(try await misnamed.probe(sending: nil).certificateMatchesName == false)
      #expect(try test.state.inbox.record(seq: 1) == nil, "the push was not sent")
      let probeResult = try await test.provider().probe(sending: push)
      #expect(probeResult.isTrusted)
      #expect(probeResult.negotiatedProtocol == "h2")
      #expect(try test.state.inbox.record(seq: 1)?.accepted == true)
    }
  }
}
