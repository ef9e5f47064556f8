import Foundation
import MockAPNS
import APNSMockTestSupport
import Testing

@Suite struct ActiveProfileRouteTests {
  @Test func defaultProfileIsHealthy() async throws {
    try await TestServer.run { server in
      let shown = await server.client.get("/api/v1/profile")
      #expect(shown.status == 200)
      #expect(shown.object["name"] as? String == "healthy")
      #expect(shown.object["reference"] as? String == "healthy")
      #expect(shown.object["seed"] as? Int == 7)
      #expect(shown.object["halted"] as? Bool == false)
      #expect(shown.object["ends_in_ms"] is NSNull)
      #expect((shown.object["rules"] as? [Any])?.isEmpty == true)
    }
  }

  @Test func profileIsActivatedAdjustedAndDeactivated() async throws {
    try await TestServer.run { server in
      let client = server.client
      let used = await client.send(
        "PUT", "/api/v1/profile", #"{"name":"flaky-503?rate=0.4","params":{"streak":3},"seed":11,"ttl":"5m"}"#)
      #expect(used.status == 200)
      #expect(used.object["name"] as? String == "flaky-503")
      #expect(used.object["reference"] as? String == "flaky-503?rate=0.4&streak=3")
      let params = try #require(used.object["params"] as? [String: Any])
      #expect(params["rate"] as? Double == 0.4)
      #expect(params["streak"] as? Int == 3)
      let parameters = try #require(used.object["knobs"] as? [[String: Any]])
      #expect(parameters.map { $0["name"] as? String } == ["rate", "streak"])
      #expect(parameters[1]["default"] as? Int == 1)
      #expect(parameters[1]["max"] as? Int == 10)
      #expect(used.object["seed"] as? Int == 11)
      #expect((290_000...300_000).contains(used.object["ends_in_ms"] as? Int ?? 0))
      let rule = try #require((used.object["rules"] as? [[String: Any]])?.first)
      #expect(rule["name"] as? String == "flaky")
      #expect(rule["at"] as? String == "request")
      #expect(rule["action"] as? String == "respond")
      #expect(rule["looked_at"] as? Int == 0)
      #expect(await client.get("/api/v1/status").object["profile"] as? String == "flaky-503?rate=0.4&streak=3")

      let turned = await client.send("PATCH", "/api/v1/profile/params", #"{"rate":1,"streak":null}"#)
      #expect(turned.status == 200)
      #expect(turned.object["reference"] as? String == "flaky-503?rate=1")
      #expect(turned.object["seed"] as? Int == 11)
      #expect(await server.statuses(3) == [503, 503, 503])
      let after = await client.get("/api/v1/profile")
      let counted = try #require((after.object["rules"] as? [[String: Any]])?.first)
      #expect(counted["looked_at"] as? Int == 3)
      #expect(counted["fired"] as? Int == 3)

      let off = await client.request("DELETE", "/api/v1/profile")
      #expect(off.status == 200)
      #expect(off.object["name"] as? String == "healthy")
      #expect(await server.statuses() == [200])
    }
  }

  @Test func concurrentParameterChangesAllApply() async throws {
    try await TestServer.run { server in
      let client = server.client
      for _ in 0..<10 {
        _ = await client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503"}"#)
        async let rate = client.send("PATCH", "/api/v1/profile/params", #"{"rate":1}"#)
        async let streak = client.send("PATCH", "/api/v1/profile/params", #"{"streak":5}"#)
        #expect(await [rate.status, streak.status] == [200, 200])
        let reference = await client.get("/api/v1/profile").object["reference"] as? String
        #expect(reference == "flaky-503?rate=1&streak=5")
      }
    }
  }
}

@Suite struct FaultRouteTests {
  @Test func pausingKeepsProfileAndRules() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503?rate=1"}"#)
      _ = await client.send("POST", "/api/v1/rules", #"{"name":"slow","do":{"delay":{"fixed":"1ms"}}}"#)
      #expect(await server.statuses() == [503])
      let halted = await client.request("POST", "/api/v1/faults/halt")
      #expect(halted.status == 200)
      #expect(halted.text == #"{"halted":true}"#)
      #expect(await server.statuses() == [200])
      let magic = "feedfacefeedface50300000" + String(repeating: "0", count: 40)
      #expect(await server.statuses(to: magic) == [200])
      let profile = await client.get("/api/v1/profile").object
      #expect(profile["reference"] as? String == "flaky-503?rate=1")
      #expect(profile["halted"] as? Bool == true)
      #expect(await client.get("/api/v1/rules").object["total"] as? Int == 1)
      let status = await client.get("/api/v1/status").object
      #expect(status["halted"] as? Bool == true)
      #expect(status["added_rules"] as? Int == 1)
      #expect((status["warnings"] as? [String])?.contains { $0.contains("paused") } == true)
      #expect(await client.request("POST", "/api/v1/faults/resume").text == #"{"halted":false}"#)
      #expect(await server.statuses(to: magic) == [503])
    }
  }
}
