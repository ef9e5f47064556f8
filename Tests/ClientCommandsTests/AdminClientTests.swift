import APNSMockAdminAPI
import APNSMockInbox
import ArgumentParser
import MockAPNS
import HTTPTypes
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// Requests that commands send to a running server.
@Suite struct AdminClientTests {
  /// Runs `body` with a server on free ports that has its own certificates.
  private static func withServer(
    adminToken: String? = nil, _ body: (MockServer, _ admin: MockServer.Endpoint) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    var configuration = MockServer.Configuration()
    configuration.apns = [MockServer.Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder.path
    configuration.adminToken = adminToken
    configuration.threads = 1
    let server = try await MockServer.start(configuration)
    let admin = try await AdminServer.start(
      server.state, at: MockServer.Endpoint(host: "127.0.0.1", port: 0), version: "1.0.0")
    server.state.phase = .ready
    do {
      try await body(server, admin.address)
    } catch {
      await admin.stop()
      await server.stop()
      throw error
    }
    await admin.stop()
    await server.stop()
  }

  private static func running(at admin: MockServer.Endpoint, _ environment: [String: String] = [:]) throws
    -> ServerLocation
  {
    try ServerLocation(ServerFlags.parse(["--admin", admin.description]), environment: environment)
  }

  @Test func providerAddressComesFromTheServer() async throws {
    try await Self.withServer { server, admin in
      server.state.clock.freeze(at: 1_700_000_000_123)
      let target = try await ProviderTarget(of: Self.running(at: admin), named: nil)
      #expect(target.endpoint == server.addresses.first)
      #expect(target.serverTime == 1_700_000_000_123, "provider tokens are dated by the server's clock")
    }
  }

  @Test func namedProviderAddressNeedsNoServer() async throws {
    let named = MockServer.Endpoint(host: "0.0.0.0", port: 9)
    let nobody = try Self.running(at: MockServer.Endpoint(host: "127.0.0.1", port: 1))
    let target = try await ProviderTarget(of: nobody, named: named)
    #expect(target.endpoint == MockServer.Endpoint(host: "127.0.0.1", port: 9))
    await #expect(throws: CommandFailure.self) { try await ProviderTarget(of: nobody, named: nil) }
  }

  @Test func serverErrorsBecomeCommandErrors() async throws {
    try await Self.withServer { _, admin in
      let client = try Self.running(at: admin).client
      let unknownField = try await client.request(.get, "/api/v1/pushes?statsu=200")
      let wrong = #expect(throws: CommandFailure.self) { try unknownField.succeeded() }
      #expect(wrong?.status == .usage)
      #expect(wrong?.description.contains("statsu") == true)
      #expect(wrong?.description.contains("did you mean status?") == true, "the hint is there too")
      let missing = try await client.request(.get, "/api/v1/pushes/99")
      #expect(throws: CommandFailure.self) { try missing.succeeded() }
    }
  }

  @Test func tokenIsPrinted() async throws {
    try await Self.withServer(adminToken: "s3cret") { _, admin in
      let refused = try await Self.running(at: admin).client.request(.get, "/api/v1/clock")
      #expect(refused.status == 401)
      let error = #expect(throws: CommandFailure.self) { try refused.succeeded() }
      #expect(error?.description.contains("APNS_MOCK_ADMIN_TOKEN") == true, "it says what to set")
      let known = try Self.running(at: admin, ["APNS_MOCK_ADMIN_TOKEN": "s3cret"])
      #expect(try await known.client.request(.get, "/api/v1/clock").status == 200)
    }
  }

  @Test func inboxPageIsDecoded() async throws {
    try await Self.withServer { server, admin in
      let certificates = server.state.certificates
      let jwt = try ProviderTokenRequest(
        keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID, issuedAt: server.state.clock.now / 1000
      ).signed(withKeyAt: certificates.providerKeyPath)
      let client = PushClient(
        endpoint: try #require(server.addresses.first), serverName: "localhost", authorities: [certificates.caPath])
      let headers = [("authorization", "bearer \(jwt)"), ("apns-topic", "com.example.app")]
      _ = try await client.send([
        PushClient.Push(deviceToken: String(repeating: "ab", count: 32), headers: headers, payload: Array("{}".utf8)),
        PushClient.Push(deviceToken: "short", headers: headers, payload: Array("{}".utf8)),
      ])
      let answer = try await Self.running(at: admin).client.request(.get, "/api/v1/pushes?order=desc")
      let page = try answer.decoded(PushPage.self)
      #expect(page.items.map(\.seq.description) == ["2", "1"])
      #expect(page.items.map(\.served.reason) == ["BadDeviceToken", nil])
      #expect((page.matched, page.evicted) == (2, 0))
      #expect(JSONLayout.elements(of: "items", in: answer.body).count == 2)
    }
  }
}
