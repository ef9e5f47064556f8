import APNSMockRules
package import APNSMockAdminAPI
import Foundation
package import APNSMockHTTPMessage
import APNSMockInbox
package import MockAPNS
import APNSMockTLSEngine

/// A complete server on free ports, with its admin listener and a certificate folder of its own, for one test.
package struct TestServer: Sendable {
  package let server: MockServer
  package let admin: AdminServer

  package static let deviceToken = String(repeating: "ab", count: 32)
  /// The version that the admin API reports.
  package static let version = "9.8.7"

  package init(server: MockServer, admin: AdminServer) {
    self.server = server
    self.admin = admin
  }

  package var state: ServerState { server.state }
  /// The address to which providers connect.
  package var apns: MockServer.Endpoint { server.addresses[0] }
  package var certificates: CertificateFolder { state.certificates }
  /// A client of the admin API.
  package var client: RawClient { RawClient(port: admin.address.port) }

  /// Runs `body` with a server that is ready, and stops the server afterwards.
  package static func run(
    _ change: (inout MockServer.Configuration) -> Void = { _ in }, _ body: (TestServer) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    var configuration = MockServer.Configuration()
    configuration.apns = [MockServer.Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder.path
    configuration.threads = 1
    configuration.seed = 7
    configuration.shutdownTimeout = .milliseconds(100)
    change(&configuration)
    let server = try await MockServer.start(configuration)
    let admin = try await AdminServer.start(
      server.state, at: MockServer.Endpoint(host: "127.0.0.1", port: 0), version: version)
    server.state.phase = .ready
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(TestServer(server: server, admin: admin)))
    } catch {
      result = .failure(error)
    }
    await admin.stop()
    await server.stop()
    try withExtendedLifetime(folder) { try result.get() }
  }

  // MARK: - Pushes over TLS

  /// Returns a client that trusts the server, with the server's own client certificate on request.
  package func provider(certificate: Bool = false) -> PushClient {
    let folder = certificates.path
    return PushClient(
      endpoint: apns, authorities: ["\(folder)/ca.pem"],
      certificate: certificate ? (chain: "\(folder)/client.pem", key: "\(folder)/client-key.pem") : nil)
  }

  /// Returns a provider token signed with the folder's own key, issued `age` seconds before the server's current
  /// time.
  package func providerToken(age: Int64 = 0) throws -> String {
    let pem = try String(contentsOfFile: certificates.providerKeyPath, encoding: .utf8)
    var token = TestToken(iat: "\(state.clock.now / 1000 - age)")
    token.signature = try ES256PrivateKey(pem: pem).sign(Array(token.message.utf8))
    return token.text
  }

  /// Returns a push that is accepted, unless `headers` change that.
  ///
  /// - Parameter token: The provider token; nil for a connection with a client certificate.
  package func push(
    token: String?, deviceToken: String = TestServer.deviceToken, _ headers: [String: String] = [:],
    payload: String = #"{"aps":{"alert":"Hello"}}"#
  ) -> PushClient.Push {
    var all = ["apns-topic": "com.example.app", "apns-push-type": "alert"]
    if let token { all["authorization"] = "bearer \(token)" }
    all.merge(headers) { _, new in new }
    return PushClient.Push(
      deviceToken: deviceToken, headers: all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
      payload: Array(payload.utf8))
  }

  /// Sends one push on a connection of its own and returns the response, or nil if there was none.
  package func send(_ push: PushClient.Push, certificate: Bool = false) async throws -> HTTPResponse? {
    guard case .response(let response)? = try await provider(certificate: certificate).send([push]).first else {
      return nil
    }
    return response
  }

  /// Returns the statuses of `count` different valid pushes over one connection: nil for a push without a response,
  /// an empty array without a connection.
  package func statuses(_ count: Int = 1, to deviceToken: String = TestServer.deviceToken) async -> [Int?] {
    let pushes = (0..<count).map {
      push(token: nil, deviceToken: deviceToken, payload: #"{"aps":{"alert":"Hello \#($0)"}}"#)
    }
    let outcomes = (try? await provider(certificate: true).send(pushes)) ?? []
    return outcomes.map { outcome in
      if case .response(let response) = outcome { response.status } else { nil }
    }
  }

  // MARK: - Records

  /// Adds a push to the inbox without a TLS connection, and returns its number. Its provider token is invalid, so the
  /// rules reject it.
  @discardableResult
  package func recordPush(topic: String = "com.acme.app", body: String = #"{"aps":{}}"#) -> Int {
    let fields = [
      (":method", "POST"), (":path", "/3/device/ab12"), ("authorization", "bearer a.b.SECRET"), ("apns-topic", topic),
    ]
    let request = HTTPRequest(headers: HeaderList(fields), body: Array(body.utf8))
    var authentication = ConnectionAuthentication(certificate: nil)
    let verdict = state.rulebook.validate(
      request, authentication: &authentication, keys: state.keys.load(), now: state.clock.now)
    return state.inbox.append(
      Record(
        request: request, verdict: verdict, generatedID: [],
        connection: ConnectionFacts(id: "c1", listener: 0, client: "127.0.0.1:9", sni: nil, tls: "TLSv1.3"),
        receivedAt: state.clock.now,
        result: Record.Result(
          outcome: .rejected, accepted: false,
          sentResponse: Record.SentResponse(status: verdict.status, reason: verdict.reason, latencyNanoseconds: 1),
          finishedAt: state.clock.now)))
  }
}

extension HTTPResponse {
  /// The body as text.
  package var text: String { String(decoding: body, as: UTF8.self) }
}
