import Foundation
import MockAPNS
import TestSupport
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
      #expect(shown.object["ends_in"] is NSNull)
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
      #expect(["5m", "4m59s", "4m58s"].contains(used.object["ends_in"] as? String))
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

  @Test func timeToLiveDeactivatesTheProfile() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503?rate=1","ttl":"50ms"}"#)
      #expect(
        await TestServer.eventually { await client.get("/api/v1/profile").object["name"] as? String == "healthy" })
      #expect(await server.statuses() == [200])
    }
  }

  @Test(arguments: [
    ("{}", 400, "lacks name", "flaky-503"), (#"{"name":5}"#, 400, "must be a string", "string"),
    (#"{"name":"flaky-504"}"#, 422, "\"flaky-504\"", "Did you mean flaky-503?"),
    (#"{"name":"nobody-knows-this"}"#, 422, "\"nobody-knows-this\"", "The profiles are healthy, flaky-503"),
    (#"{"name":"flaky-503?rte=1"}"#, 422, "params.rte", "Did you mean \"rate\"?"),
    (#"{"name":"flaky-503","params":{"speed":1}}"#, 422, "params.speed", "The parameters are rate, streak"),
    (#"{"name":"flaky-503","params":{"rate":20}}"#, 422, "20 is not a number in 0..1", "See problems"),
    (#"{"name":"flaky-503","params":{"streak":1.5}}"#, 422, "1.5 is not a whole number", "See problems"),
    (#"{"name":"flaky-503","params":{"rate":{}}}"#, 400, "params.rate", "a number, a string"),
    (#"{"name":"flaky-503?rate"}"#, 400, "name cannot be", "?rate=0.5"),
    (#"{"name":"./mine.yaml"}"#, 400, "the path of a file", "PUT /api/v1/profiles/NAME"),
    (#"{"name":"flaky-503","seed":"7"}"#, 400, "seed must be a whole number", "omit it"),
    (#"{"name":"flaky-503","ttl":"5"}"#, 400, "ttl cannot be \"5\"", "500ms"),
    (#"{"name":"flaky-503","ttl":"0s"}"#, 400, "ttl cannot be", "longer than zero"),
    (#"{"name":"flaky-503","parms":{}}"#, 400, "\"parms\"", "Did you mean params?"),
  ])
  func invalidActivationIsExplained(body: String, status: Int, detail: String, hint: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("PUT", "/api/v1/profile", body)
      #expect(answer.status == status)
      #expect(answer.headers["content-type"] == "application/problem+json")
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(answer.hint.contains(hint), "\(answer.hint)")
      #expect(await server.client.get("/api/v1/profile").object["name"] as? String == "healthy")
    }
  }

  @Test(arguments: [
    ("{}", 400, #"{"rate": 0.4}"#), ("[]", 400, "object"), (#"{"rte":0.4}"#, 422, "Did you mean \"rate\"?"),
    (#"{"rte":null}"#, 422, "Did you mean \"rate\"?"), (#"{"rate":2}"#, 422, "See problems"),
    (#"{"rate":0.4,"streak":0}"#, 422, "See problems"), (#"{"rate":[0.4]}"#, 400, "a number, a string"),
  ])
  func invalidParameterChangeIsExplained(body: String, status: Int, hint: String) async throws {
    try await TestServer.run { server in
      let before = await server.client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503?rate=0.3"}"#)
      let answer = await server.client.send("PATCH", "/api/v1/profile/params", body)
      #expect(answer.status == status)
      #expect(answer.hint.contains(hint), "\(answer.hint)")
      #expect((status == 422) == !answer.problems.isEmpty)
      #expect(await server.client.get("/api/v1/profile").text == before.text)
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

  @Test(arguments: ["halt", "resume"])
  func unknownMembersAreRejected(word: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("POST", "/api/v1/faults/\(word)", #"{"all":true}"#)
      #expect(answer.status == 400)
      #expect(answer.detail.contains("\"all\""))
      #expect(answer.hint == "Send {} or no body.")
      #expect(await server.client.get("/api/v1/profile").object["halted"] as? Bool == false)
    }
  }

  @Test(
    arguments: [
      (nil, false, false), (#"{"keep":["profile"]}"#, false, true), (#"{"rules":true}"#, false, true),
      (#"{"profile":true}"#, true, false),
      (#"{"profile":true,"rules":true}"#, false, false), (#"{"inbox":true}"#, true, true),
    ] as [(String?, Bool, Bool)])
  func resetClearsNamedScopes(body: String?, keepsRule: Bool, keepsProfile: Bool) async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503"}"#)
      _ = await client.send("POST", "/api/v1/rules", #"{"do":{"delay":{"fixed":"1ms"}}}"#)
      let type = body == nil ? [] : [("content-type", "application/json")]
      #expect(await client.request("POST", "/api/v1/reset", type, body: body).status == 200)
      #expect(await client.get("/api/v1/rules").object["total"] as? Int == (keepsRule ? 1 : 0))
      #expect(
        await client.get("/api/v1/profile").object["name"] as? String == (keepsProfile ? "flaky-503" : "healthy"))
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
