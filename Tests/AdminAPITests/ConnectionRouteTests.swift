import Foundation
import MockAPNS
import TestSupport
import Testing

@Suite struct ConnectionRouteTests {
  /// Runs `body` while `count` connections are open, each with a delayed push, and ends them all afterwards.
  ///
  /// - Parameter body: Receives the server, the connections' ids in order, and tasks that return how the pushes
  ///   ended.
  static func run(
    _ count: Int, listeners: Int = 1,
    _ body: @Sendable (TestServer, [String], [Task<[PushClient.Outcome], any Error>]) async throws -> Void
  ) async throws {
    let endpoints = (0..<listeners).map { _ in Endpoint(host: "127.0.0.1", port: 0) }
    try await TestServer.run({ $0.apns = endpoints }) { server in
      let client = server.client
      let rule = #"{"do":{"hang":{"for":"60s","end_with":"close"}}}"#
      #expect(await client.send("PUT", "/api/v1/rules/hold", rule).status == 201)
      var pushes: [Task<[PushClient.Outcome], any Error>] = []
      for number in 0..<count {
        var provider = server.provider(certificate: true)
        provider.endpoint = server.state.apnsAddresses[number % listeners]
        provider.timeout = .seconds(30)
        pushes.append(Task { [provider] in try await provider.send([server.push(token: nil)]) })
        // One after the other, so that the connection numbers are known.
        #expect(
          await TestServer.eventually {
            let open = await client.get("/api/v1/connections?state=open").items
            return open.count == number + 1 && open.allSatisfy { $0["pushes"] as? Int == 1 }
          })
      }
      let ids = await client.get("/api/v1/connections").items.compactMap { $0["id"] as? String }
      do {
        try await body(server, ids, pushes)
      } catch {
        for push in pushes { push.cancel() }
        throw error
      }
      _ = await client.send("POST", "/api/v1/connections/close", #"{"all":true}"#)
      for push in pushes { _ = await push.result }
    }
  }

  /// Waits until a connection is closed and returns whether it was.
  static func closes(_ id: String, _ server: TestServer) async -> Bool {
    await TestServer.eventually {
      await server.client.get("/api/v1/connections/\(id)").object["state"] as? String == "closed"
    }
  }

  static func events(_ id: String, _ server: TestServer) async -> [String] {
    let object = await server.client.get("/api/v1/connections/\(id)").object
    return (object["events"] as? [[String: Any]] ?? []).compactMap { event in
      (event["event"] as? String).map { "\($0) \(event["detail"] as? String ?? "")" }
    }
  }

  @Test func openAndClosedConnectionsAreListed() async throws {
    try await TestServer.run { server in
      let client = server.client
      #expect(await client.get("/api/v1/connections").text == #"{"items":[],"total":0,"open":0}"#)
      #expect(await server.statuses(2) == [200, 200])
      #expect(await Self.closes("c1", server))
      let list = await client.get("/api/v1/connections")
      #expect(list.object["total"] as? Int == 1)
      #expect(list.object["open"] as? Int == 0)
      let item = try #require(list.items.first)
      #expect(item["id"] as? String == "c1")
      #expect(item["number"] as? Int == 1)
      #expect(item["state"] as? String == "closed")
      #expect(item["listener"] as? Int == 0)
      #expect((item["client"] as? String)?.hasPrefix("127.0.0.1:") == true)
      #expect(item["tls"] as? String == "TLSv1.3")
      #expect(item["certificate"] as? String == "com.example.app")
      #expect(item["pushes"] as? Int == 2)
      #expect(item["events_dropped"] as? Int == 0)
      let events = try #require(item["events"] as? [[String: Any]])
      #expect(events.first?["event"] as? String == "accepted")
      #expect(events.last?["event"] as? String == "closed")
      #expect((events.first?["at"] as? String)?.hasSuffix("Z") == true)
      #expect(await client.get("/api/v1/connections?state=closed").text == list.text)
      #expect(await client.get("/api/v1/connections?state=open").object["total"] as? Int == 0)
    }
  }

  @Test(arguments: [
    ("/api/v1/connections?state=opne", 400, "open or closed"), ("/api/v1/connections?stat=open", 400, "state"),
    ("/api/v1/connections/c1", 404, "None is open."), ("/api/v1/connections/1", 404, "None is open."),
  ])
  func invalidListQueryIsExplained(path: String, status: Int, hint: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get(path)
      #expect(answer.status == status)
      #expect(answer.hint.contains(hint), "\(answer.hint)")
    }
  }

  @Test func goAwayReachesOnlyTheSelectedConnection() async throws {
    try await Self.run(3) { server, ids, pushes in
      #expect(ids == ["c1", "c2", "c3"])
      let body = #"{"connection":"c2","code":"ENHANCE_YOUR_CALM","debug":{"reason":"Shutdown"},"close_after":"1ms"}"#
      let answer = await server.client.send("POST", "/api/v1/connections/goaway", body)
      #expect(answer.status == 200)
      #expect(answer.text == #"{"connections":["c2"]}"#)
      #expect(await Self.closes("c2", server))
      let events = await Self.events("c2", server)
      #expect(
        events.contains { $0.hasPrefix("goaway ENHANCE_YOUR_CALM") && $0.hasSuffix(#"{"reason":"Shutdown"}"#) },
        "\(events)")
      let open = await server.client.get("/api/v1/connections?state=open").items
      #expect(open.map { $0["id"] as? String } == ["c1", "c3"])
      for id in ["c1", "c3"] {
        let events = await Self.events(id, server)
        #expect(!events.contains { $0.hasPrefix("goaway") }, "\(events)")
      }
      let outcomes = try await pushes[1].value
      guard case .disconnected? = outcomes.first else {
        Issue.record("the push on c2 was not cut off")
        return
      }
    }
  }

  @Test(arguments: [("reset", "reset TCP RST"), ("close", "closed ")])
  func selectedConnectionsAreClosed(word: String, event: String) async throws {
    try await Self.run(3, listeners: 2) { server, _, _ in
      let path = "/api/v1/connections/\(word)"
      let answer = await server.client.send("POST", path, #"{"connection":["c1","c2"],"listener":0}"#)
      #expect(answer.text == #"{"connections":["c1"]}"#)
      #expect(await Self.closes("c1", server))
      #expect(await Self.events("c1", server).contains(event))
      #expect(await server.client.send("POST", path, #"{"listener":1}"#).text == #"{"connections":["c2"]}"#)
      #expect(
        await server.client.send("POST", path, #"{"client":"127.0.0.2"}"#).text == #"{"connections":[]}"#)
      let address = try #require(await server.client.get("/api/v1/connections/c3").object["client"] as? String)
      #expect(await Self.closes("c2", server))
      #expect(await server.client.get("/api/v1/connections").object["open"] as? Int == 1)
      let byClient = await server.client.send("POST", path, #"{"client":"\#(address)"}"#)
      #expect(byClient.text == #"{"connections":["c3"]}"#)
      #expect(await Self.closes("c3", server))
      let gone = await server.client.send("POST", path, #"{"connection":"c3"}"#)
      #expect(gone.status == 404)
      #expect(gone.hint == "None is open.")
    }
  }

  @Test func commandReachesAllConnections() async throws {
    try await Self.run(2) { server, ids, pushes in
      let answer = await server.client.send("POST", "/api/v1/connections/goaway", #"{"all":true,"close_after":"1ms"}"#)
      #expect(answer.object["connections"] as? [String] == ids)
      for push in pushes { _ = try await push.value }
      #expect(await TestServer.eventually { server.state.connections.openCount == 0 })
    }
  }

  @Test(arguments: [
    ("goaway", "{}", 400, "specifies no connections", #"{"all": true}"#),
    ("reset", "", 400, "specifies no connections", #"{"all": true}"#),
    ("close", #"{"all":false}"#, 400, "specifies no connections", #"{"all": true}"#),
    ("reset", #"{"all":true,"listener":0}"#, 400, "excludes", "Omit all"),
    ("reset", #"{"connection":[]}"#, 400, "empty list", "c17"),
    ("reset", #"{"connection":17}"#, 400, "connection must be", "omit it"),
    ("reset", #"{"listener":1}"#, 400, "listener must be", "from 0 to 0"),
    ("reset", #"{"listener":-1}"#, 400, "listener must be", "from 0 to 0"),
    ("reset", #"{"conection":"c1"}"#, 400, "\"conection\"", "Did you mean connection?"),
    ("reset", #"{"all":true,"code":"CANCEL"}"#, 400, "\"code\"", "The members are all"),
    ("close", #"{"connection":"c9"}"#, 404, "not open: c9", "Open are c1."),
    ("goaway", #"{"all":true,"code":"NO_EROR"}"#, 400, "code: ", "NO_ERROR"),
    ("goaway", #"{"all":true,"last_stream":"none"}"#, 400, "last_stream: ", ""),
    ("goaway", #"{"all":true,"close_after":"soon"}"#, 400, "close_after: ", ""),
    ("goaway", #"{"all":true,"twice":"maybe"}"#, 400, "twice: ", ""),
    ("goaway", #"{"all":true,"debg":""}"#, 400, "\"debg\"", "Did you mean debug?"),
  ])
  func invalidCommandIsExplained(word: String, body: String, status: Int, detail: String, hint: String) async throws {
    try await Self.run(1) { server, _, _ in
      let answer = await server.client.send("POST", "/api/v1/connections/\(word)", body)
      #expect(answer.status == status)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(hint.isEmpty || answer.hint.contains(hint), "\(answer.hint)")
      #expect(!answer.hint.isEmpty)
      #expect(server.state.connections.openCount == 1)
    }
  }
}
