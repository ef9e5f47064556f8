import Foundation
import MockAPNS
import APNSMockTestSupport
import Testing

@Suite struct ProfileRouteTests {
  static let good = """
    name: mine
    summary: One of mine
    params:
      rate: {type: probability, default: 0.5, help: how many}
    rules:
      - name: flaky
        trigger: {probability: "${rate}"}
        do: {respond: {status: 503}}
    """
  static let bad = """
    name: mine
    rules:
      - name: flaky
        trigger: {probabilty: 0.5}
        do: {respond: {status: 503}}
    """

  @Test func profileIsStoredShownAndRemoved() async throws {
    try await TestServer.run { server in
      let client = server.client
      let made = await client.sendYAML("PUT", "/api/v1/profiles/mine", Self.good)
      #expect(made.status == 201)
      #expect(made.headers["location"] == "/api/v1/profiles/mine")
      #expect(made.object["origin"] as? String == "api")
      #expect(made.object["source"] as? String == Self.good)
      let profile = try #require(made.object["profile"] as? [String: Any])
      let rule = try #require((profile["rules"] as? [[String: Any]])?.first)
      #expect((rule["trigger"] as? [String: Any])?["probability"] as? Double == 0.5)
      #expect(await client.get("/api/v1/profiles/mine").text == made.text)
      #expect(await client.get("/api/v1/profiles").object["total"] as? Int == 24)
      #expect(await client.request("DELETE", "/api/v1/profiles/mine").status == 204)
      let gone = await client.request("DELETE", "/api/v1/profiles/mine")
      #expect(gone.status == 404)
      #expect(!gone.hint.isEmpty)
    }
  }

  static let bodies = [
    ("application/json", #"{"name":"mine","rules":[{"do":{"respond":{"status":503}}}]}"#),
    ("application/json", #"{"source":"rules: [{do: {respond: {status: 503}}}]"}"#),
    ("application/json; charset=utf-8", #"{"summary":"\ud83d\ude00 \/","rules":[{"do":{"close":{}}}]}"#),
    ("application/yaml", "rules: [{do: {close: {}}}]"), ("Application/X-YAML", "rules: [{do: {close: {}}}]"),
    ("text/yaml;charset=utf-8", "summary: ünter\nrules: [{do: {close: {}}}]"),
  ]

  @Test func everyBodyFormIsAccepted() async throws {
    try await TestServer.run { server in
      let path = "/api/v1/profiles/mine"
      for (type, body) in Self.bodies {
        for status in [201, 200] {
          let response = await server.client.request("PUT", path, [("content-type", type)], body: body)
          #expect(response.status == status, "\(body): \(response.text)")
          #expect(response.object["name"] as? String == "mine")
        }
        #expect(await server.client.request("DELETE", path).status == 204)
      }
    }
  }

  @Test func storedProfileOverridesABuiltInUntilRemoved() async throws {
    try await TestServer.run { server in
      let client = server.client
      let before = await client.get("/api/v1/profiles/ack-lost")
      #expect(await client.sendYAML("PUT", "/api/v1/profiles/ack-lost", "summary: other").status == 200)
      #expect(await client.get("/api/v1/profiles/ack-lost").object["summary"] as? String == "other")
      #expect(await client.get("/api/v1/profiles").object["total"] as? Int == 23)
      #expect(await client.request("DELETE", "/api/v1/profiles/ack-lost").status == 204)
      #expect(await client.get("/api/v1/profiles/ack-lost").text == before.text)
      let refused = await client.request("DELETE", "/api/v1/profiles/ack-lost")
      #expect(refused.status == 409)
      #expect(refused.detail.contains("built-in"))
      #expect(!refused.hint.isEmpty)
    }
  }

  @Test func invalidProfileLeavesTheActiveOneUnchanged() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.sendYAML("PUT", "/api/v1/profiles/mine", Self.good)
      let running = await client.send("PUT", "/api/v1/profile", #"{"name":"mine?rate=1"}"#)
      let stored = await client.get("/api/v1/profiles/mine")
      let refused = await client.sendYAML("PUT", "/api/v1/profiles/mine", Self.bad)
      #expect(refused.status == 422)
      #expect(refused.headers["content-type"] == "application/problem+json")
      #expect(refused.detail.contains("mine:4:15: rules[0].trigger.probabilty: unknown"), "\(refused.detail)")
      #expect(refused.hint.contains("Did you mean \"probability\"?"), "\(refused.hint)")
      let problem = try #require(refused.problems.first)
      #expect(problem["path"] as? String == "rules[0].trigger.probabilty")
      #expect(problem["line"] as? Int == 4)
      #expect(problem["column"] as? Int == 15)
      #expect(problem["severity"] as? String == "error")
      #expect(await client.get("/api/v1/profile").text == running.text)
      #expect(await client.get("/api/v1/profiles/mine").text == stored.text)
      #expect(await server.statuses() == [503])
    }
  }

  @Test func activeProfileFollowsStoredProfile() async throws {
    try await TestServer.run { server in
      let client = server.client
      let base = "rules: [{name: answer, do: {respond: {status: 503}}}]"
      _ = await client.sendYAML("PUT", "/api/v1/profiles/base", base)
      _ = await client.sendYAML("PUT", "/api/v1/profiles/mine", "extends: [base]")
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"mine"}"#)
      #expect(await server.statuses() == [503])
      _ = await client.sendYAML("PUT", "/api/v1/profiles/base", base.replacing("503", with: "500"))
      #expect(await server.statuses() == [500])
      let active = await client.request("DELETE", "/api/v1/profiles/mine")
      #expect(active.status == 409)
      #expect(active.hint.contains("DELETE /api/v1/profile"))
      let needed = await client.request("DELETE", "/api/v1/profiles/base")
      #expect(needed.status == 409)
      #expect(needed.detail.contains("requires it"))
      #expect(await server.statuses() == [500])
      _ = await client.request("DELETE", "/api/v1/profile")
      #expect(await client.request("DELETE", "/api/v1/profiles/base").status == 204)
      let broken = await client.get("/api/v1/profiles/mine")
      #expect(broken.status == 200)
      #expect(broken.object["profile"] is NSNull)
      #expect(broken.problems.count == 1)
      #expect(await client.get("/api/v1/profiles").problems.count == 1)
    }
  }

  @Test func parameterInUseCannotBeRemovedFromTheProfile() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.sendYAML("PUT", "/api/v1/profiles/mine", Self.good)
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"mine?rate=1"}"#)
      let refused = await client.sendYAML("PUT", "/api/v1/profiles/mine", "rules: [{do: {close: {}}}]")
      #expect(refused.status == 422)
      #expect(refused.detail.contains("rate"))
      #expect(await client.get("/api/v1/profiles/mine").object["source"] as? String == Self.good)
      #expect(await server.statuses() == [503])
    }
  }
}

@Suite struct ProfileLintTests {
  @Test func validProfileHasNoProblems() async throws {
    try await TestServer.run { server in
      let response = await server.client.sendYAML("POST", "/api/v1/profiles/lint", ProfileRouteTests.good)
      #expect(response.status == 200)
      #expect(response.text == #"{"valid":true,"problems":[]}"#)
      #expect(await server.client.get("/api/v1/profiles/mine").status == 404)
    }
  }

  @Test func warningsDoNotMakeAProfileInvalid() async throws {
    try await TestServer.run { server in
      let text = #"{"rules":[{"do":{"respond":{"status":400,"reason":"NeverHeardOf"}}}]}"#
      let response = await server.client.send("POST", "/api/v1/profiles/lint", text)
      #expect(response.status == 200)
      #expect(response.object["valid"] as? Bool == true)
      #expect(response.problems.map { $0["severity"] as? String } == ["warning"])
    }
  }

  /// Hostile texts, by description: they must not exhaust the parser's stack or its time.
  static let hostileTexts = [
    "lists in lists": String(repeating: "[", count: 200_000), "dashes": String(repeating: "- ", count: 100_000),
    "maps in maps": String(repeating: "{a: ", count: 60_000), "question marks": String(repeating: "? ", count: 100_000),
    "stairs": (0..<20_000).map { String(repeating: " ", count: $0 % 12) + "a:" }.joined(separator: "\n"),
    "aliases": "a: &a [1,2]\n" + (0..<40).map { "b\($0): &b\($0) [*a, *a, *a]" }.joined(separator: "\n"),
    "one key": String(repeating: "rules: []\n", count: 20_000), "one word": String(repeating: "x", count: 1 << 20),
    "a zero byte": "\u{0}", "another version": "%YAML 9.9\n---\n",
    "bad rules": "rules:\n" + String(repeating: "  - {do: {}}\n", count: 18_000),
  ]

  @Test func hostileTextsAreSurvived() async throws {
    try await TestServer.run { server in
      for (name, text) in Self.hostileTexts {
        let response = await server.client.sendYAML("POST", "/api/v1/profiles/lint", text)
        #expect(response.status == 422, "\(name)")
        #expect((1...202).contains(response.problems.count), "\(name)")
        #expect(await server.client.get("/livez").status == 200)
      }
    }
  }

  @Test func deepJSONIsSurvived() async throws {
    try await TestServer.run { server in
      // Decoders that record the path to each value take seconds for one such list; this text has a thousand.
      let list = String(repeating: "[", count: 499) + String(repeating: "]", count: 499)
      let many = "{" + (0..<1000).map { #""a\#($0)":\#(list)"# }.joined(separator: ",") + "}"
      #expect(await server.client.send("PATCH", "/api/v1/profile/params", many).status == 400)
      let deep = #"{"a":"# + String(repeating: "[", count: 499) + String(repeating: "]", count: 499) + "}"
      #expect(await server.client.send("POST", "/api/v1/profiles/lint", deep).status == 422)
      #expect(await server.client.send("POST", "/api/v1/rules", deep).status == 422)
      #expect(await server.client.get("/livez").status == 200)
    }
  }

  @Test func allProblemsAreReportedTogether() async throws {
    try await TestServer.run { server in
      let text = """
        rules:
          - do: {respond: {status: 503}}
            triger: {}
          - do: {delay: {fixed: 5}}
        """
      let response = await server.client.sendYAML("POST", "/api/v1/profiles/lint", text)
      #expect(response.status == 422)
      #expect(response.problems.map { $0["line"] as? Int } == [3, 4])
      #expect(response.detail.hasSuffix(", and 1 more"), "\(response.detail)")
    }
  }
}

@Suite struct ProfileSimulationTests {
  @Test func sameSeedGivesTheSameOutcomes() async throws {
    try await TestServer.run { server in
      let body = #"{"name":"flaky-503?rate=0.4","params":{"streak":1},"seed":7,"pushes":1000}"#
      let response = await server.client.send("POST", "/api/v1/profiles/simulate", body)
      #expect(response.status == 200)
      #expect(response.object["seed"] as? Int == 7)
      let outcomes = try #require(response.object["outcomes"] as? [String: Int])
      #expect(outcomes.values.reduce(0, +) == 1000)
      #expect((300...500).contains(outcomes["503 ServiceUnavailable"] ?? 0))
      #expect((response.object["text"] as? String)?.contains("1000 pushes") == true)
      #expect(await server.client.send("POST", "/api/v1/profiles/simulate", body).text == response.text)
      #expect(await server.client.get("/api/v1/profile").object["name"] as? String == "healthy")
    }
  }

  @Test func profileTextIsAccepted() async throws {
    try await TestServer.run { server in
      let body = #"{"source":"rules: [{do: {respond: {status: 500}}}]","pushes":3}"#
      let response = await server.client.send("POST", "/api/v1/profiles/simulate", body)
      #expect(response.object["outcomes"] as? [String: Int] == ["500 InternalServerError": 3])
    }
  }
}

@Suite struct ProfileReloadTests {
  /// Runs `body` with a server that has a folder of profiles.
  static func run(_ body: (TestServer, TemporaryFolder) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    try await TestServer.run({ $0.profilesFolder = folder.path }) { try await body($0, folder) }
  }

  @Test func folderIsReloaded() async throws {
    try await Self.run { server, folder in
      try folder.file("mine.yaml", ProfileRouteTests.good)
      #expect(await server.client.get("/api/v1/profiles/mine").status == 404)
      let response = await server.client.request("POST", "/api/v1/profiles/reload")
      #expect(response.text == #"{"problems":[]}"#)
      #expect(await server.client.get("/api/v1/profiles/mine").object["origin"] as? String == folder.path("mine.yaml"))
      let refused = await server.client.request("DELETE", "/api/v1/profiles/mine")
      #expect(refused.status == 409)
      #expect(refused.detail.contains("mine.yaml"))
    }
  }

  @Test func invalidFileKeepsTheOldProfileAndWarns() async throws {
    try await Self.run { server, folder in
      let client = server.client
      try folder.file("mine.yaml", ProfileRouteTests.good)
      _ = await client.request("POST", "/api/v1/profiles/reload")
      _ = await client.send("PUT", "/api/v1/profile", #"{"name":"mine?rate=1"}"#)
      try folder.file("mine.yaml", ProfileRouteTests.bad)
      let response = await client.request("POST", "/api/v1/profiles/reload")
      #expect(response.status == 200)
      #expect(response.problems.first?["line"] as? Int == 4)
      #expect(await server.statuses() == [503])
      let warnings = try #require(await client.get("/api/v1/status").object["warnings"] as? [String])
      #expect(warnings.contains { $0.contains("mine.yaml:4:15") }, "\(warnings)")
      #expect(await client.get("/api/v1/profiles").problems.count == 1)
      try folder.file("mine.yaml", ProfileRouteTests.good.replacing("503", with: "500"))
      #expect(await client.request("POST", "/api/v1/profiles/reload").problems.isEmpty)
      #expect(await server.statuses() == [500])
      #expect(await client.get("/api/v1/profile").object["reference"] as? String == "mine?rate=1")
      #expect((await client.get("/api/v1/status").object["warnings"] as? [String])?.isEmpty == true)
    }
  }
}
