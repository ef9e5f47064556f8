import APNSMockRules
import APNSMockHTTPMessage
import Testing

@testable import APNSMockInbox

/// Pushes that are lost, sent again without need, or whose body is not known: what was measured from outside with providers
/// of known conduct.
@Suite struct ResolutionTests {
  /// Returns the number of lost pushes.
  private static func lost(_ scenario: FindingsScenario) -> [Int] {
    // Only a store cannot be read.
    try? scenario.inbox.updateFindings(by: PushFixture.rulebook)
    return (try? scenario.inbox.seqs(scenario.inbox.analyzer.unresolved, after: 0)) ?? []
  }

  @Test(
    arguments: [
      ("an incomplete one is lost", [Step(at: 0, answer: "incomplete")], [1]),
      ("a malformed one is lost", [Step(at: 0, answer: "malformed")], [1]),
      (
        "an incomplete one is sent again with its id",
        [Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, push: "other", id: "x")], []
      ),
      (
        "an incomplete one is sent again with another id and the same length",
        [
          Step(at: 0, answer: "incomplete", id: "x", headers: [("content-length", "23")]),
          Step(at: 9, push: "other", id: "y", headers: [("content-length", "23")]),
        ], []
      ),
      (
        "another push to the same device, with another id",
        [Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, push: "other", id: "y")], [1]
      ),
      (
        "another push to the same device, with another length",
        [
          Step(at: 0, answer: "incomplete", headers: [("content-length", "24")]),
          Step(at: 9, push: "other", headers: [("content-length", "23")]),
        ], [1]
      ),
      (
        "another push to the same device, without an id",
        [Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, push: "other")], []
      ),
      (
        "its body is not known when it is sent again",
        [Step(at: 0, answer: "503 ServiceUnavailable", id: "x"), Step(at: 9, answer: "incomplete", id: "x")], [2]
      ),
      (
        "its body is not known at first, then not again",
        [
          Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, answer: "503 ServiceUnavailable", id: "x"),
          Step(at: 19, answer: "incomplete", id: "x"), Step(at: 29, id: "x"),
        ], []
      ),
      (
        "what was accepted is sent again in vain",
        [Step(at: 0, id: "x"), Step(at: 500, answer: "503 ServiceUnavailable", id: "x")], []
      ),
      (
        "an equal push is sent in vain",
        [Step(at: 0, id: "x"), Step(at: 500, answer: "503 ServiceUnavailable", id: "y")], [2]
      ),
      (
        "what was accepted ends incomplete on another connection long after",
        [Step(at: 0, id: "x"), Step(at: 9000, answer: "incomplete", id: "x")], []
      ),
      (
        "what was rejected for good ends incomplete on another connection",
        [Step(at: 0, answer: "410 Unregistered", id: "x"), Step(at: 5000, answer: "incomplete", id: "x")], []
      ),
      (
        "an equal push is incomplete",
        [Step(at: 0, answer: "410 Unregistered", id: "x"), Step(at: 5000, answer: "incomplete", id: "y")], [2]
      ),
      ("it was refused before it was accepted", [Step(at: 0), Step(at: 500, answer: "excluded")], []),
      (
        "each later attempt is matched to one",
        [Step(at: 0, answer: "incomplete"), Step(at: 0, answer: "incomplete"), Step(at: 9)], [1]
      ),
      (
        "the later attempt is lost too",
        [Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, answer: "503 ServiceUnavailable", id: "x")], [2]
      ),
      (
        "another device is another push",
        [Step(at: 0, answer: "incomplete"), Step(at: 9, device: "cd34")], [1]
      ),
      ("refused and given up", [Step(at: 0, answer: "refused")], [1]),
      ("refused and sent again", [Step(at: 0, answer: "refused"), Step(at: 1)], []),
      (
        "what had arrived was retried and given up",
        [Step(at: 0, answer: "taken"), Step(at: 500, answer: "503 ServiceUnavailable")], []
      ),
      ("an expired provider token", [Step(at: 0, answer: "403 ExpiredProviderToken")], [1]),
      ("a bad topic", [Step(at: 0, answer: "400 BadTopic")], []),
      ("an idle timeout", [Step(at: 0, answer: "400 IdleTimeout")], [1]),
    ] as [(String, [Step], [Int])])
  func nothingLost(_ name: String, _ steps: [Step], _ expected: [Int]) {
    #expect(Self.lost(FindingsScenario(steps)) == expected)
  }

  /// How pushes ended, by `retries.finally`, and the number of retries.
  @Test(
    arguments: [
      (
        "incomplete, then accepted", [Step(at: 0, answer: "incomplete", id: "x"), Step(at: 9, id: "x", attempt: 2)], "1"
      ),
      (
        "503, then incomplete, then accepted",
        [
          Step(at: 0, answer: "503 ServiceUnavailable", id: "x"),
          Step(at: 9, answer: "incomplete", id: "x", attempt: 2),
          Step(at: 19, id: "x", attempt: 3),
        ], "2"
      ),
      (
        "503, then incomplete without an id, then accepted",
        [
          Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 9, answer: "incomplete"), Step(at: 19, attempt: 3),
        ], "2"
      ),
      (
        "refused, but read after its accepted retry", [Step(at: 0, id: "x"), Step(at: 9, answer: "excluded", id: "x")],
        "1"
      ),
      (
        "cancelled, but read long after its accepted retry",
        [Step(at: 0, id: "x"), Step(at: 5000, answer: "incomplete", id: "x")], "1"
      ),
    ] as [(String, [Step], String)])
  func retries(_ name: String, _ steps: [Step], _ retries: String) async throws {
    let report = try await VerificationFixture.report(
      "{'expect':[{'retries':{'min':\(retries),'max':\(retries),'finally':'accepted'}}]}",
      in: FindingsScenario(steps).inbox)
    #expect(report.expectations[0].criteria.filter { !$0.isMet } == [])
  }

  /// An attempt whose body is not known is counted for the push with its `apns-id`.
  @Test func attemptsWithTheSameIDAreCounted() {
    let attempts = Attempts()
    let push = PushFixture { $0.headers.append(("apns-id", "0A1B2C3D-0000-4000-8000-000000000001")) }
    let request = push.request
    let facts = PushFacts(request.headers)
    let id = request.headers.bytes.withUnsafeBytes { PartialPush(headers: $0, facts, defaultTopic: nil).id }
    let key = AttemptKey(push: push.pushKey, id: id)
    func partial(_ now: Int64) -> Int32 {
      request.headers.bytes.withUnsafeBytes { attempts.countPartial(headers: $0, facts, defaultTopic: nil, now: now) }
    }
    #expect(attempts.count(key, accepted: false, now: 0) == 1)
    #expect(partial(1) == 2)
    #expect(partial(2) == 3)
    #expect(!attempts.hasPartialAttempts)
    #expect(attempts.unprocessedAttempts(of: key.push) == 2, "draws do not depend on them")
    #expect(attempts.count(key, accepted: true, now: 3) == 4)
    attempts.resume(key, after: 4, now: 4)
    #expect(partial(5) == 5, "the response of the accepted one was lost")
  }

  @Test func attemptsOfAPushWhoseBodyIsNotKnownAreCounted() {
    let attempts = Attempts()
    let push = PushFixture()
    let request = push.request
    let facts = PushFacts(request.headers)
    func partial(_ now: Int64) -> Int32 {
      request.headers.bytes.withUnsafeBytes { attempts.countPartial(headers: $0, facts, defaultTopic: nil, now: now) }
    }
    #expect(partial(0) == 1)
    #expect(partial(1) == 2)
    #expect(attempts.hasPartialAttempts)
    request.headers.bytes.withUnsafeBytes {
      attempts.resume(push.pushKey, headers: $0, facts, defaultTopic: nil, now: 2)
    }
    #expect(!attempts.hasPartialAttempts)
    #expect(attempts.peek(push.pushKey, now: 3) == 3)
    #expect(attempts.unprocessedAttempts(of: push.pushKey) == 2, "draws do not depend on them")
    #expect(attempts.count(AttemptKey(push: push.pushKey), accepted: true, now: 3) == 3)
    #expect(attempts.peek(push.pushKey, now: 4) == 1)
  }

  // MARK: - Sent again after a response

  /// How a connection ends, in milliseconds of the scenario.
  struct Closing: Sendable {
    var initiator: ConnectionFacts.CloseInitiator
    var at: Int64
    var lastReceived: Int64
    var isOrderly = false
    var isReset = false
  }

  @Test(
    arguments: [
      (
        "ended by the server before the client showed that it read", "a", "b",
        Closing(initiator: .server, at: 50, lastReceived: 0), 60, [.duplicate]
      ),
      ("the same id", "a", "a", Closing(initiator: .server, at: 50, lastReceived: 0), 60, []),
      (
        "ended by the server after it did", "a", "b", Closing(initiator: .server, at: 300, lastReceived: 200), 400,
        [.blindResend]
      ),
      ("with the same id", "a", "a", Closing(initiator: .server, at: 300, lastReceived: 200), 400, [.blindResend]),
      ("long after that", "a", "b", Closing(initiator: .server, at: 300, lastReceived: 200), 61_000, []),
      ("closed by the client", "a", "b", Closing(initiator: .client, at: 50, lastReceived: 0, isOrderly: true), 60, []),
      (
        "closed by the client, the same id", "a", "a",
        Closing(initiator: .client, at: 50, lastReceived: 0, isOrderly: true), 60, [.blindResend]
      ),
      (
        "reset by the client", "a", "b", Closing(initiator: .client, at: 50, lastReceived: 0, isReset: true), 60,
        [.duplicate]
      ),
      ("open", "a", "b", nil, 60, []), ("open, the same id", "a", "a", nil, 60, []),
    ] as [(String, String, String, Closing?, Int64, [Finding.Kind])])
  func sentAgain(
    _ name: String, _ first: String, _ second: String, _ closing: Closing?, _ at: Int64, _ expected: [Finding.Kind]
  ) {
    for readsOften in [false, true] {
      let scenario = FindingsScenario()
      func read() { try? scenario.inbox.updateFindings(by: PushFixture.rulebook) }
      scenario.add(Step(at: 0, id: first, connection: "c1"))
      if readsOften { read() }
      scenario.add(Step(at: at, id: second, connection: "c2"))
      if readsOften { read() }
      if let closing {
        scenario.end(
          connection: "c1",
          ConnectionEnd.Closing(
            by: closing.initiator, at: scenario.time(closing.at), lastReceivedAt: scenario.time(closing.lastReceived),
            isOrderly: closing.isOrderly, isReset: closing.isReset))
      }
      let kinds = [Finding.Kind.duplicate, .blindResend].filter { !scenario.earners(of: $0).isEmpty }
      #expect(kinds == expected, "read often: \(readsOften)")
    }
  }

  /// The frame that carries the repetition shows that the client read what was sent long before.
  @Test func sentAgainOnTheSameConnection() {
    let scenario = FindingsScenario([Step(at: 0, id: "a"), Step(at: 50, id: "a"), Step(at: 300, id: "a")])
    #expect(scenario.earners(of: .blindResend) == [3])
  }

  /// A request that is read long after the response was sent after it, also if it is refused.
  @Test func refusedResends() {
    for (at, expected) in [(900, []), (1100, [2])] {
      let scenario = FindingsScenario([Step(at: 0, id: "x"), Step(at: Int64(at), answer: "excluded", id: "x")])
      #expect(scenario.earners(of: .blindResend) == expected, "\(at) ms")
      #expect(scenario.inbox.analyzer.unresolved.isEmpty)
    }
  }

  // MARK: - Connections

  /// The result does not depend on how often findings are read.
  @Test(arguments: [400, 50, 1])
  func churnIsExact(every count: Int) throws {
    let scenario = FindingsScenario(maxRecords: 1000)
    for number in 0..<400 {
      let at = Int64(number * 10)
      scenario.add(
        Step(
          at: at, answer: number % 7 == 0 ? "503 ServiceUnavailable" : "200", push: "\(number)",
          connection: "c\(number)", closing: .client))
      if number % count == 0 { try scenario.inbox.updateFindings(by: PushFixture.rulebook) }
    }
    let report = try scenario.inbox.findings(by: PushFixture.rulebook, in: Selection())
    #expect(report.findings.count { $0.kind == .connectionChurn } == 396)
    #expect(report.isComplete)
  }

  @Test func anotherEnvironmentIsARemedy() {
    let scenario = FindingsScenario([Step(at: 0, answer: "400 BadDeviceToken", id: "a")])
    let production = ConnectionFacts(
      id: "c2", listener: 1, environment: .production, client: "127.0.0.1:2", sni: nil, tls: nil)
    scenario.inbox.append(
      PushFixture {
        $0.body = Array(#"{"aps":{"alert":"a"}}"#.utf8)
        $0.connection = production
        $0.arrivedAt = scenario.time(500)
      }.record)
    #expect(scenario.earners(of: .retriedPermanent).isEmpty)
  }
}
