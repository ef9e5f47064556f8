import APNSMockFaultModel
import APNSMockFaults
import Foundation
@testable import MockAPNS
import APNSMockTestSupport
import Testing

@Suite struct RuleRouteTests {
  @Test func ruleIsAddedShownReplacedAndRemoved() async throws {
    try await TestServer.run { server in
      let client = server.client
      let made = await client.send("POST", "/api/v1/rules", #"{"do":{"respond":{"status":503}}}"#)
      #expect(made.status == 201)
      #expect(made.headers["location"] == "/api/v1/rules/rule-1")
      #expect(made.object["name"] as? String == "rule-1")
      #expect(made.object["at"] as? String == "request")
      #expect((made.object["do"] as? [String: [String: Any]])?["respond"]?["status"] as? Int == 503)
      #expect(made.object["ends_in_ms"] is NSNull)
      #expect(made.problems.isEmpty)
      #expect(await server.statuses(2) == [503, 503])
      let shown = await client.get("/api/v1/rules/rule-1").object
      #expect(shown["looked_at"] as? Int == 2)
      #expect(shown["fired"] as? Int == 2)

      let second = await client.send("POST", "/api/v1/rules", #"{"do":{"respond":{"status":500}},"ttl":"10m"}"#)
      #expect(second.object["name"] as? String == "rule-2")
      #expect((590_000...600_000).contains(second.object["ends_in_ms"] as? Int ?? 0))
      #expect(await server.statuses() == [500])
      let replaced = await client.send("POST", "/api/v1/rules", #"{"name":"rule-1","do":{"respond":{"status":429}}}"#)
      #expect(replaced.status == 200)
      #expect(replaced.headers["location"] == nil)
      let list = await client.get("/api/v1/rules")
      #expect(list.items.map { $0["name"] as? String } == ["rule-1", "rule-2"])
      #expect(list.object["total"] as? Int == 2)
      #expect(await server.statuses() == [429])

      #expect(await client.request("DELETE", "/api/v1/rules/rule-1").status == 204)
      #expect(await server.statuses() == [500])
      let gone = await client.request("DELETE", "/api/v1/rules/rule-1")
      #expect(gone.status == 404)
      #expect(gone.hint.contains("Did you mean rule-2?"))
      let third = await client.send("POST", "/api/v1/rules", #"{"do":{"respond":{"status":500}}}"#)
      #expect(third.object["name"] as? String == "rule-3")
    }
  }

  @Test func ruleIsEvaluatedForRecordedPushesWithoutBeingAdded() async throws {
    try await TestServer.run { server in
      let client = server.client
      let preview = { (rule: String) in await client.send("POST", "/api/v1/faults/preview", rule).object }
      #expect(await preview(#"{"do":{"hang":{}}}"#)["pushes"] as? Int == 0)
      #expect(await server.statuses(4) == [200, 200, 200, 200])
      let all = await preview(#"{"do":{"respond":{"status":503}}}"#)
      #expect(all["valid"] as? Bool == true)
      #expect([all["pushes"], all["matched"], all["would_fire"]] as? [Int] == [4, 4, 4])
      #expect(all["newest"] as? [Int] == [4, 3, 2, 1])
      let never = await preview(#"{"trigger":{"probability":0},"do":{"respond":{"status":503}}}"#)
      #expect([never["matched"], never["would_fire"]] as? [Int] == [4, 0])
      let none = await preview(#"{"when":{"topic":"com.other"},"do":{"respond":{"status":503}}}"#)
      #expect(none["matched"] as? Int == 0)
      #expect(none["missed"] as? [String: Int] == ["topic": 4])
      let connection = await preview(#"{"at":"connection","do":{"goaway":{}}}"#)
      #expect(connection["valid"] as? Bool == true)
      #expect(connection["pushes"] is NSNull)
      let invalid = await preview(#"{"do":{"respond":{"raeson":"x"}}}"#)
      #expect(invalid["valid"] as? Bool == false)
      #expect((invalid["problems"] as? [Any])?.isEmpty == false)
      #expect(await client.get("/api/v1/rules").items.isEmpty)
      #expect(await server.statuses() == [200])
    }
  }

  @Test func ruleIsStoredUnderItsName() async throws {
    try await TestServer.run { server in
      let client = server.client
      let body = #"{"when":{"topic":"com.example.app"},"do":{"reset_stream":{}}}"#
      #expect(await client.send("PUT", "/api/v1/rules/mine", body).status == 201)
      let replaced = await client.send("PUT", "/api/v1/rules/mine", #"{"name":"mine","do":{"close":{}}}"#)
      #expect(replaced.status == 200)
      #expect((replaced.object["do"] as? [String: Any])?.keys.sorted() == ["close"])
      let other = await client.send("PUT", "/api/v1/rules/mine", #"{"name":"yours","do":{"pass":{}}}"#)
      #expect(other.status == 400)
      #expect(other.hint.contains("Omit name"))
      #expect(await client.get("/api/v1/rules/mine").text.contains("close"))
    }
  }

  @Test func yamlIsAccepted() async throws {
    try await TestServer.run { server in
      let response = await server.client.sendYAML("POST", "/api/v1/rules", "name: mine\ndo: {respond: {status: 503}}")
      #expect(response.status == 201)
      #expect(response.object["name"] as? String == "mine")
    }
  }

  @Test func addedRulesDoNotReplaceProfileRules() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.sendYAML("PUT", "/api/v1/profiles/mine", "rules: [{do: {close: {}}}]")
      let profile = await client.send("PUT", "/api/v1/profile", #"{"name":"mine"}"#)
      #expect((profile.object["rules"] as? [[String: Any]])?.first?["name"] as? String == "rule-1")
      let added = await client.send("POST", "/api/v1/rules", #"{"do":{"pass":{}}}"#)
      #expect(added.object["name"] as? String == "rule-2")
      let missing = await client.get("/api/v1/rules/rule-1")
      #expect(missing.status == 404)
      #expect(missing.detail.contains("one of the profile mine"))
      #expect(missing.hint.contains("/api/v1/rules/rule-1/explain"))
    }
  }

  @Test func suspiciousRuleGetsAWarning() async throws {
    try await TestServer.run { server in
      let made = await server.client.send(
        "POST", "/api/v1/rules", #"{"do":{"respond":{"status":400,"reason":"NeverHeardOf"}}}"#)
      #expect(made.status == 201)
      #expect(made.problems.map { $0["severity"] as? String } == ["warning"])
    }
  }

  @Test func problemsPointIntoTheJSON() async throws {
    try await TestServer.run { server in
      let body = "{\n  \"do\": {\"respond\": {\"status\": 503}},\n  \"trigger\": {\"probability\": 20}\n}"
      let response = await server.client.send("POST", "/api/v1/rules", body)
      #expect(response.problems.first?["line"] as? Int == 3)
      #expect(response.problems.first?["column"] as? Int == 30)
    }
  }

  @Test func rulesAreLimitedToAThousand() async throws {
    try await TestServer.run { server in
      let made = await server.client.send("POST", "/api/v1/rules", #"{"name":"mine","do":{"pass":{}}}"#)
      #expect(made.status == 201)
      let rule = try #require(server.state.faults.selection.added.first)
      // All at once: each change of the rules compiles all of them.
      let copies = (0..<999).map { number in
        var copy = rule.rule
        copy.name = "copy-\(number)"
        return FaultControl.AddedRule(rule: copy, addedAt: rule.addedAt, endsAt: nil)
      }
      server.state.faults.restore([rule] + copies, generatedNames: 0) { _ in }
      let refused = await server.client.send("POST", "/api/v1/rules", #"{"do":{"pass":{}}}"#)
      #expect(refused.status == 409)
      #expect(refused.hint.contains("/api/v1/reset"))
      #expect(await server.client.send("PUT", "/api/v1/rules/mine", #"{"do":{"close":{}}}"#).status == 200)
    }
  }
}

@Suite struct RuleExplanationRouteTests {
  @Test func ruleThatNeverFiresIsExplained() async throws {
    try await TestServer.run { server in
      let client = server.client
      _ = await client.send(
        "PUT", "/api/v1/rules/mine", #"{"when":{"topic":"com.example.App"},"do":{"respond":{"status":503}}}"#)
      #expect(await server.statuses(3) == [200, 200, 200])
      let response = await client.get("/api/v1/rules/mine/explain")
      #expect(response.status == 200)
      #expect(response.object["rule"] as? String == "mine")
      #expect(response.object["profile"] is NSNull)
      #expect(response.object["looked_at"] as? Int == 3)
      #expect(response.object["fired"] as? Int == 0)
      let text = try #require(response.object["text"] as? String)
      #expect(text.hasPrefix("rule \"mine\": 3 pushes evaluated, 0 fired"))
      #expect(text.contains("differs by case"))
    }
  }

  @Test func profileRuleIsExplained() async throws {
    try await TestServer.run { server in
      _ = await server.client.send("PUT", "/api/v1/profile", #"{"name":"flaky-503?rate=1"}"#)
      #expect(await server.statuses() == [503])
      let response = await server.client.get("/api/v1/rules/flaky/explain")
      #expect(response.object["profile"] as? String == "flaky-503")
      #expect(response.object["fired"] as? Int == 1)
    }
  }

  @Test func magicDeviceTokenIsExplained() async throws {
    try await TestServer.run { server in
      let before = await server.client.get("/api/v1/rules/magic-0503/explain")
      #expect(before.status == 200)
      #expect(before.object["looked_at"] as? Int == 0)
      let token = "feedfacefeedface05030001" + String(repeating: "0", count: 40)
      #expect(await server.statuses(to: token) + server.statuses(to: token) == [503, 200])
      let response = await server.client.get("/api/v1/rules/magic-0503/explain")
      #expect(response.object["looked_at"] as? Int == 2)
      #expect(response.object["fired"] as? Int == 1)
      #expect(await server.client.get("/api/v1/rules/magic-9999/explain").status == 404)
    }
  }
}
