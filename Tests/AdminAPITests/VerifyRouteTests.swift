import APNSMockAdminAPI
import Foundation
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

/// Verification over HTTP.
@Suite struct VerifyRouteTests {
  static let path = "/api/v1/verify"

  static let verifications = [
    (#"{"expect": [{"match": {"topic": "a"}, "count": 2}]}"#, 200, true),
    (#"{"expect": [{"match": {"topic": "a"}, "count": 1}]}"#, 412, false),
    (#"{"expect": [{"match": "topic:b"}], "no_others": true}"#, 412, false),
    (#"{"expect": [], "no_findings": ["hot-retry"]}"#, 200, true),
  ]

  @Test func verificationReportsPassOrFailure() async throws {
    try await TestServer.run { server in
      for topic in ["a", "b", "a"] { server.recordPush(topic: topic) }
      for (body, status, isPassed) in Self.verifications {
        let response = await server.client.send("POST", Self.path, body)
        #expect(response.status == status, "\(response.text)")
        #expect(response.headers["content-type"] == "application/json")
        #expect(response.object["passed"] as? Bool == isPassed, "\(body)")
        #expect(response.object["inconclusive"] as? Bool == false)
        #expect(response.object["seed"] as? Int == 7)
        #expect(response.object["profile"] as? String == "healthy")
        #expect((response.object["text"] as? String)?.hasSuffix("seed 7   profile healthy") == true)
      }
    }
  }

  @Test func verificationWaitsForPushes() async throws {
    try await TestServer.run { server in
      async let response = server.client.send(
        "POST", Self.path, #"{"expect": [{"match": {"topic": "a"}}], "timeout": "1m"}"#)
      try await eventually("the server waits for pushes") { server.state.inbox.listenerCount == 1 }
      server.recordPush(topic: "b")
      server.recordPush(topic: "a")
      #expect(await response.status == 200)
      try await eventually("the wait has ended") { server.state.inbox.listenerCount == 0 }
    }
  }

  @Test func stoppingTheServerEndsTheWait() async throws {
    try await TestServer.run { server in
      async let response = server.client.send("POST", Self.path, #"{"expect": [{}], "timeout": "5m"}"#)
      try await eventually("the server waits for pushes") { server.state.inbox.listenerCount == 1 }
      await server.admin.stop(gracePeriod: .seconds(10))
      #expect(await response.status == 503)
      #expect(await response.detail.contains("the server stops"))
    }
  }

  @Test func allProblemsAreReportedTogether() async throws {
    try await TestServer.run { server in
      let response = await server.client.send(
        "POST", Self.path, #"{"expct": [], "expect": [{"match": {"topik": "a"}, "count": "many"}], "order": ["b"]}"#)
      #expect(response.status == 400)
      #expect(response.headers["content-type"] == "application/problem+json")
      #expect(
        response.problems.map { $0["pointer"] as? String } == [
          "/expct", "/expect/0/match/topik", "/expect/0/count", "/order/0",
        ])
      #expect(response.problems.allSatisfy { ($0["message"] as? String)?.isEmpty == false })
      #expect(response.detail == "/expct: unknown, and 3 more")
      #expect(response.hint.contains("Did you mean \"expect\"?"))
    }
  }

  /// The form for tests that run the server in process.
  @Test func verificationInProcess() async throws {
    try await TestServer.run { server in
      #expect(await server.statuses() == [200])
      let verification = try Verification(
        json: Array(#"{"expect": [{"match": "topic:com.example.app", "count": 1, "outcome": "accepted"}]}"#.utf8))
      let report = try #require(try await server.state.verify(verification))
      #expect(report.isPassed, "\(report.text)")
    }
  }
}
