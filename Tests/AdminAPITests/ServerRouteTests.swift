import APNSMockRules
import APNSMockAdminAPI
import APNSMockDevices
import Foundation
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

@Suite struct ServerRouteTests {
  @Test func statusIsReported() async throws {
    try await TestServer.run({ $0.maxRecords = 2 }) { server in
      for _ in 0..<3 { server.recordPush() }
      let status = await server.client.get("/api/v1/status").object
      #expect(status["version"] as? String == "9.8.7")
      #expect(status["phase"] as? String == "ready")
      #expect(status["seed"] as? Int == 7)
      #expect(status["environment"] as? String == "sandbox")
      #expect(status["rules"] as? String == "apple")
      let addresses = try #require(status["addresses"] as? [String: Any])
      #expect((addresses["admin"] as? [String: Any])?["port"] as? Int == server.admin.address.port)
      #expect((addresses["apns"] as? [[String: Any]])?.first?["port"] as? Int == server.state.apnsAddresses.first?.port)
      #expect((status["ca"] as? [String: Any])?["fingerprint"] as? String == server.state.certificates.caFingerprint)
      let inbox = try #require(status["inbox"] as? [String: Any])
      #expect(inbox["records"] as? Int == 2)
      #expect(inbox["evicted"] as? Int == 1)
      #expect(inbox["last_seq"] as? Int == 3)
      #expect((status["limits"] as? [String: Any])?["max_records"] as? Int == 2)
      #expect((status["warnings"] as? [String])?.count == 1)
    }
  }
}

/// What a reset restores, and the event that reports it.
@Suite struct ResetRouteTests {
  private static let everything = ["inbox", "rules", "profile", "counters", "clock", "devices", "channels"]
  /// Request bodies, nil for none, with the scopes that they reset.
  private static let bodies: [(String?, [String])] = [
    (nil, everything), ("", everything), ("{}", everything), (#"{"all":true}"#, everything),
    (#"{"all":false}"#, []), (#"{"all":false,"clock":true}"#, ["clock"]),
    (#"{"keep":["profile"]}"#, ["inbox", "rules", "counters", "clock", "devices", "channels"]),
    (#"{"keep":["profile","clock"]}"#, ["inbox", "rules", "counters", "devices", "channels"]),
    (#"{"all":true,"keep":"inbox"}"#, ["rules", "profile", "counters", "clock", "devices", "channels"]),
    (#"{"keep":[]}"#, everything), (#"{"keep":null,"all":null,"inbox":null}"#, everything),
    (#"{"clock":true}"#, ["clock"]), (#"{"devices":true,"inbox":true}"#, ["inbox", "devices"]),
    (#"{"inbox":false}"#, []), (#"{"inbox":false,"devices":true}"#, ["devices"]), (#"{"inbox":true}"#, ["inbox"]),
    (#"{"rules":true}"#, ["rules"]), (#"{"profile":true}"#, ["profile"]),
    (#"{"profile":true,"rules":true}"#, ["rules", "profile"]),
    (
      #"{"inbox":true,"rules":true,"profile":true,"counters":true,"clock":true,"devices":true,"channels":true}"#,
      everything
    ),
  ]

  @Test func namedScopesAreResetAndReported() async throws {
    try await TestServer.run { server in
      let client = server.client
      async let events = client.get("/api/v1/events")
      try await eventually("the reader is connected") { server.state.events.readerCount == 1 }
      for (body, scopes) in Self.bodies {
        server.recordPush()
        server.state.clock.freeze(at: 0)
        try server.state.devices.set(SingleToken(token: "ab12", since: 0))
        _ = await client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503"}"#)
        _ = await client.send("PUT", "/api/v1/rules/mine", #"{"do":{"delay":{"fixed":"1ms"}}}"#)
        let type = body == nil ? [] : [("content-type", "application/json")]
        let response = await client.request("POST", "/api/v1/reset", type, body: body)
        #expect(response.status == 200, "\(body ?? "")")
        #expect(response.object["reset"] as? [String] == scopes, "\(body ?? "")")
        let isReset = [
          "inbox": server.state.inbox.snapshot().count == 0, "clock": server.state.clock.mode == .real,
          "devices": server.state.devices.isEmpty,
          "rules": await client.get("/api/v1/rules").object["total"] as? Int == 0,
          "profile": await client.get("/api/v1/profile").object["name"] as? String == "healthy",
        ]
        for (scope, isReset) in isReset { #expect(isReset == scopes.contains(scope), "\(body ?? ""): \(scope)") }
      }
      await server.admin.stop(gracePeriod: .seconds(10))
      // A reset without a scope has no event.
      let expected = Self.bodies.map(\.1).filter { !$0.isEmpty }.map { scopes in
        #"{"reset":[\#(scopes.map { "\"\($0)\"" }.joined(separator: ","))]}"#
      }
      #expect(await events.text.matches(of: /event: reset\nid: [0-9]+\ndata: (.*)\n/).map { String($0.1) } == expected)
    }
  }

  @Test func resetRestartsRuleCounters() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.send("PUT", "/api/v1/rules/mine", #"{"do":{"respond":{"status":500}},"trigger":{"first":1}}"#)
      #expect(await server.statuses(2) == [500, 200])
      #expect(await client.get("/api/v1/rules/mine").object["looked_at"] as? Int == 2)
      _ = await client.send("POST", "/api/v1/reset", #"{"counters":true}"#)
      #expect(await client.get("/api/v1/rules/mine").object["looked_at"] as? Int == 0)
      #expect(await server.statuses(2) == [500, 200])
      #expect(await client.get("/api/v1/rules/mine").object["fired"] as? Int == 1)
    }
  }
}
