import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

/// Verification over HTTP.
@Suite struct VerifyRouteTests {
  static let path = "/api/v1/verify"

  @Test(arguments: [
    (#"{"expect": [{"match": {"topic": "a"}, "count": 2}]}"#, 200, true),
    (#"{"expect": [{"match": {"topic": "a"}, "count": 1}]}"#, 412, false),
    (#"{"expect": [{"match": "topic:b"}], "no_others": true}"#, 412, false),
    (#"{"expect": [], "no_findings": ["hot-retry"]}"#, 200, true),
  ])
  func verificationReportsPassOrFailure(body: String, status: Int, isPassed: Bool) async throws {
    try await TestServer.run { server in
      for topic in ["a", "b", "a"] { server.recordPush(topic: topic) }
      let answer = await server.client.send("POST", Self.path, body)
      #expect(answer.status == status, "\(answer.text)")
      #expect(answer.headers["content-type"] == "application/json")
      #expect(answer.object["passed"] as? Bool == isPassed)
      #expect(answer.object["inconclusive"] as? Bool == false)
      #expect(answer.object["seed"] as? Int == 7)
      #expect(answer.object["profile"] as? String == "healthy")
      #expect((answer.object["text"] as? String)?.hasSuffix("seed 7   profile healthy") == true)
    }
  }

  @Test func reportsActiveProfileAndSeed() async throws {
    try await TestServer.run { server in
      _ = await server.client.send(
        "PUT", "/api/v1/profile", #"{"name": "flaky-503", "params": {"rate": 1}, "seed": 99}"#)
      let answer = await server.client.send("POST", Self.path, #"{"expect": [{"count": 0}]}"#)
      #expect(answer.object["seed"] as? Int == 99)
      #expect(answer.object["profile"] as? String == "flaky-503?rate=1")
    }
  }

  @Test func onlyPushesSinceTheLastResetCount() async throws {
    try await TestServer.run({ $0.maxRecords = 2 }) { server in
      let body = #"{"expect": [{"count": {"at_least": 1}}]}"#
      for _ in 0..<3 { server.recordPush() }
      let evicted = await server.client.send("POST", Self.path, body)
      #expect(evicted.status == 412)
      #expect(evicted.object["passed"] as? Bool == false && evicted.object["inconclusive"] as? Bool == true)
      #expect(evicted.object["evicted"] as? Int == 1 && evicted.object["complete"] as? Bool == false)
      _ = await server.client.send("POST", "/api/v1/reset", #"{"inbox": true}"#)
      server.recordPush()
      let anew = await server.client.send("POST", Self.path, body)
      #expect(anew.status == 200, "\(anew.text)")
      #expect(anew.object["evicted"] as? Int == 0)
    }
  }

  @Test func verificationWaitsForPushes() async throws {
    try await TestServer.run { server in
      async let answer = server.client.send(
        "POST", Self.path, #"{"expect": [{"match": {"topic": "a"}}], "timeout": "1m"}"#)
      #expect(await TestServer.eventually { server.state.inbox.listenerCount == 1 })
      server.recordPush(topic: "b")
      server.recordPush(topic: "a")
      #expect(await answer.status == 200)
      #expect(await TestServer.eventually { server.state.inbox.listenerCount == 0 })
    }
  }

  @Test func stoppingTheServerEndsTheWait() async throws {
    try await TestServer.run { server in
      async let answer = server.client.send("POST", Self.path, #"{"expect": [{}], "timeout": "5m"}"#)
      #expect(await TestServer.eventually { server.state.inbox.listenerCount == 1 })
      await server.admin.stop(gracePeriod: .seconds(10))
      #expect(await answer.status == 503)
      #expect(await answer.detail.contains("the server stops"))
    }
  }

  @Test func allProblemsAreReportedTogether() async throws {
    try await TestServer.run { server in
      let answer = await server.client.send(
        "POST", Self.path, #"{"expct": [], "expect": [{"match": {"topik": "a"}, "count": "many"}], "order": ["b"]}"#)
      #expect(answer.status == 400)
      #expect(answer.headers["content-type"] == "application/problem+json")
      #expect(
        answer.problems.map { $0["pointer"] as? String } == [
          "/expct", "/expect/0/match/topik", "/expect/0/count", "/order/0",
        ])
      #expect(answer.problems.allSatisfy { ($0["message"] as? String)?.isEmpty == false })
      #expect(answer.detail == "/expct: a verification has no \"expct\", and 3 more")
      #expect(answer.hint.contains("Did you mean expect?"))
    }
  }

  @Test(arguments: [
    ("{}", "application/json", 400, "there are no expectations"),
    ("", "application/json", 400, "there are no expectations"),
    ("[]", "application/json", 400, "an object"), ("{", "application/json", 400, "not JSON"),
    (#"{"expect": []}"#, "text/plain", 415, "text/plain"), (#"{"expect": []}"#, "application/yaml", 415, "yaml"),
  ])
  func otherBodiesAreRejected(body: String, type: String, status: Int, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.request("POST", Self.path, [("content-type", type)], body: body)
      #expect(answer.status == status)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
    }
  }

  @Test func getIsRejected() async throws {
    try await TestServer.run { server in
      #expect(await server.client.get(Self.path).status == 405)
    }
  }

  /// The form for tests that run the server in process.
  @Test func verificationInProcess() async throws {
    try await TestServer.run { server in
      #expect(await server.statuses() == [200])
      let verification = try Verification(
        json: Array(#"{"expect": [{"match": "topic:com.example.app", "count": 1, "outcome": "accepted"}]}"#.utf8))
      let report = try #require(await server.state.verify(verification))
      #expect(report.isPassed, "\(report.text)")
    }
  }
}
