import APNSMockAdminAPI
import Foundation
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

/// Clients that are slow, or that disconnect before they get a response.
@Suite struct SlowClientTests {
  /// Runs `body` with a listener that has a short client timeout.
  private func run(_ body: (TestServer) async throws -> Void) async throws {
    try await TestServer.run { server in
      let admin = try await AdminServer.start(
        server.state, at: MockServer.Endpoint(host: "127.0.0.1", port: 0), version: "1",
        clientTimeout: .milliseconds(300))
      do {
        try await body(TestServer(server: server.server, admin: admin))
      } catch {
        await admin.stop()
        throw error
      }
      await admin.stop()
    }
  }

  @Test(arguments: [
    "", "GET /livez HTTP/1.1\r\nhost: loc", "GET /livez HTTP/1.1\r\nhost: localhost\r\n",
    "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "POST /api/v1/reset HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
    "POST /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n",
  ])
  func slowClientsAreDisconnected(beginning: String) async throws {
    try await run { server in
      server.recordPush()
      // Fails if the server does not close the connection.
      _ = await server.client.exchange(beginning)
      #expect(server.state.inbox.snapshot().count == 1)
    }
  }

  @Test(arguments: [
    ("GET /livez HTTP/1.1\r\nhost: localhost\r\n", "x-y: z\r\n"),
    (
      "POST /api/v1/reset HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n",
      " "
    ),
  ])
  func tricklingClientsAreDisconnected(beginning: String, more: String) async throws {
    try await run { server in
      let sent = await server.client.dribble(beginning, more, every: .milliseconds(50), atMost: 400)
      #expect(sent < 400)
      #expect(await server.client.get("/livez").status == 200)
    }
  }

  private static let verification = #"{"timeout":"5m","expect":[{"match":{"topic":"a"}}]}"#

  @Test(arguments: [
    "GET /api/v1/pushes/wait?timeout=5m HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "POST /api/v1/verify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      + "content-length: \(verification.utf8.count)\r\n\r\n\(verification)",
    "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n",
    // The announced body is never sent.
    "GET /api/v1/pushes/wait?timeout=5m HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n",
  ])
  func waitsEndWithTheirClients(request: String) async throws {
    try await TestServer.run { server in
      let client = server.client.open(request)
      try await eventually("the server waits for pushes") { server.state.inbox.listenerCount == 1 }
      client.close()
      try await eventually("the wait ends") {
        // The event log keeps listening for a while, for readers that reconnect.
        server.state.events.readerCount == 0 && server.state.inbox.waiterCount == 0
          && (request.contains("/events") || server.state.inbox.listenerCount == 0)
      }
    }
  }

  @Test func clientTimeoutDoesNotApplyToWaits() async throws {
    try await run { server in
      async let response = server.client.get("/api/v1/pushes/wait?timeout=1s")
      #expect(await response.status == 200)
      #expect(await response.object["satisfied"] as? Bool == false)
    }
  }

  @Test func headRequestLeavesNoReader() async throws {
    try await TestServer.run { server in
      #expect(await server.client.request("HEAD", "/api/v1/events").status == 200)
      try await eventually("the reader is disconnected") { server.state.events.readerCount == 0 }
    }
  }
}
