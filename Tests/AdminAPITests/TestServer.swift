import APNSRules
import AdminAPI
import Foundation
import HTTPMessage
import Inbox
import MockAPNS

/// A complete server on free ports, with its admin listener.
struct TestServer {
  let state: ServerState
  let admin: AdminServer

  var client: RawClient { RawClient(port: admin.address.port) }

  /// Runs `body` with a server that is ready, and stops the server afterwards.
  static func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apns-mock-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var configuration = Configuration()
    configuration.apns = [Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder
    configuration.threads = 1
    configuration.seed = 7
    configuration.shutdownTimeout = .milliseconds(100)
    change(&configuration)
    let server = try await MockServer.start(configuration)
    let admin = try await AdminServer.start(server.state, at: Endpoint(host: "127.0.0.1", port: 0), version: "9.8.7")
    server.state.phase = .ready
    do {
      try await body(TestServer(state: server.state, admin: admin))
    } catch {
      await admin.stop()
      await server.stop()
      throw error
    }
    await admin.stop()
    await server.stop()
  }

  /// Adds a push to the inbox without a TLS connection, and returns its number. Its provider token is invalid, so the
  /// rules reject it.
  @discardableResult
  func push(topic: String = "com.acme.app", id: String? = nil, body: String = #"{"aps":{}}"#, bodySize: Int? = nil)
    -> Int
  {
    let fields = [
      (":method", "POST"), (":path", "/3/device/ab12"), ("authorization", "bearer a.b.SECRET"), ("apns-topic", topic),
    ]
    var request = HTTPRequest(
      headers: HeaderList(fields + (id.map { [("apns-id", $0)] } ?? [])), body: Array(body.utf8))
    if let bodySize { request.bodySize = bodySize }
    var authentication = ConnectionAuthentication(certificate: nil)
    let verdict = state.rulebook.judge(
      request, authentication: &authentication, keys: state.keys.load(), devices: state.devices.load(),
      now: state.clock.now)
    return state.inbox.append(
      Record(
        request: request, verdict: verdict, generatedID: [],
        connection: ConnectionFacts(id: "c1", listener: 0, client: "127.0.0.1:9", sni: nil, tls: "TLSv1.3"),
        receivedAt: state.clock.now,
        end: Record.End(
          outcome: .rejected, accepted: false,
          served: Record.Served(status: verdict.status, reason: verdict.reason, latencyNanoseconds: 1),
          finishedAt: state.clock.now)))
  }
}
