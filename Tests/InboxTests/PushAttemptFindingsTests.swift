import Testing

@testable import APNSMockInbox

/// Findings about the attempts of one push: retries that are not allowed, too early, or under another id.
@Suite struct PushAttemptFindingsTests {
  typealias Case = (name: String, steps: [Step], earners: [Int])

  @Test(
    arguments: [
      ("once is not again", [Step(at: 0, answer: "400 BadTopic")], []),
      ("again", [Step(at: 0, answer: "400 BadTopic"), Step(at: 5000)], [2]),
      ("each time", (0..<4).map { Step(at: $0 * 5000, answer: "400 BadDeviceToken") }, [2, 3, 4]),
      ("another push", [Step(at: 0, answer: "400 BadTopic"), Step(at: 5000, push: "b")], []),
      ("to another device", [Step(at: 0, answer: "400 BadDeviceToken"), Step(at: 5000, device: "cd34")], []),
      ("503 may come again", [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 5000)], []),
      ("429 too", [Step(at: 0, answer: "429 TooManyRequests"), Step(at: 5000)], []),
      ("a lost answer too", [Step(at: 0, answer: "lost"), Step(at: 5000)], []),
      (
        "a new connection after IdleTimeout", [Step(at: 0, answer: "400 IdleTimeout"), Step(at: 5, connection: "c2")],
        []
      ),
      ("413", [Step(at: 0, answer: "413 PayloadTooLarge"), Step(at: 5000)], [2]),
      ("404", [Step(at: 0, answer: "404 BadPath"), Step(at: 5000)], [2]),
      ("405", [Step(at: 0, answer: "405 MethodNotAllowed"), Step(at: 5000)], [2]),
      ("under way at the same time", [Step(at: 0, answer: "400 BadTopic", latency: 50), Step(at: 20)], []),
      ("ten minutes later", [Step(at: 0, answer: "400 BadTopic"), Step(at: 600_002)], []),
      (
        "the same id after BadMessageId",
        [Step(at: 0, answer: "400 BadMessageId", id: "x"), Step(at: 500, answer: "400 BadMessageId", id: "x")], [2]
      ),
      (
        "another id after BadMessageId", [Step(at: 0, answer: "400 BadMessageId", id: "x"), Step(at: 500, id: "y")], []
      ),
      ("another id after BadTopic", [Step(at: 0, answer: "400 BadTopic", id: "x"), Step(at: 500, id: "y")], [2]),
      (
        "another priority",
        [
          Step(at: 0, answer: "400 BadPriority", headers: [("apns-priority", "7")]),
          Step(at: 500, headers: [("apns-priority", "5")]),
        ], []
      ),
      (
        "another expiration is no help against BadPriority",
        [
          Step(at: 0, answer: "400 BadPriority", headers: [("apns-expiration", "1")]),
          Step(at: 500, headers: [("apns-expiration", "2")]),
        ], [2]
      ),
      ("the same expired token", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 500)], [2]),
      ("a new token", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 5, issued: 1)], []),
      ("Forbidden with a new token", [Step(at: 0, answer: "403 Forbidden"), Step(at: 500, issued: 1)], [2]),
      (
        "another connection after InvalidProviderToken",
        [Step(at: 0, answer: "403 InvalidProviderToken"), Step(at: 500, connection: "c2")], []
      ),
      ("the same connection after it", [Step(at: 0, answer: "403 InvalidProviderToken"), Step(at: 500)], [2]),
      (
        "an unknown reason", [Step(at: 0, answer: "418"), Step(at: 500)], [2]
      ),
      (
        "delivered in between", [Step(at: 0, answer: "400 BadTopic"), Step(at: 500), Step(at: 900)], [2]
      ),
      (
        "the server's reset may have destroyed the response",
        [Step(at: 0, answer: "400 BadTopic", closing: .server, resets: true), Step(at: 500, connection: "c2")], []
      ),
    ] as [Case])
  func retriedPermanent(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .retriedPermanent) == earners)
  }

  @Test(
    arguments: [
      ("at once", [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 20)], [2]),
      ("each time", (0..<4).map { Step(at: $0 * 20, answer: "503 ServiceUnavailable") }, [2, 3, 4]),
      ("after 99 ms", [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 100)], [2]),
      ("after 100 ms", [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 101)], []),
      (
        "the delay counts from the answer",
        [Step(at: 0, answer: "500 InternalServerError", latency: 900), Step(at: 910)], [2]
      ),
      ("429", [Step(at: 0, answer: "429 TooManyRequests"), Step(at: 20)], [2]),
      ("another push", [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 20, push: "b")], []),
      ("400 is for retried-permanent", [Step(at: 0, answer: "400 BadTopic"), Step(at: 20)], []),
      ("a refused stream may come at once", [Step(at: 0, answer: "refused"), Step(at: 5)], []),
      ("what a GOAWAY left out too", [Step(at: 0, answer: "goaway"), Step(at: 5, connection: "c2")], []),
      ("a lost connection too", [Step(at: 0, answer: "lost"), Step(at: 5, connection: "c2")], []),
      (
        "the server's reset may have destroyed the response",
        [Step(at: 0, answer: "503 ServiceUnavailable", closing: .server, resets: true), Step(at: 5, connection: "c2")],
        []
      ),
      (
        "its close has not",
        [Step(at: 0, answer: "503 ServiceUnavailable", closing: .server), Step(at: 5, connection: "c2")], [2]
      ),
      (
        "nor has the client's reset",
        [Step(at: 0, answer: "503 ServiceUnavailable", closing: .client, resets: true), Step(at: 5, connection: "c2")],
        [2]
      ),
      ("Shutdown, on a new connection", [Step(at: 0, answer: "503 Shutdown"), Step(at: 5, connection: "c2")], []),
      ("Shutdown, on the same one", [Step(at: 0, answer: "503 Shutdown"), Step(at: 5)], [2]),
      ("before its retry-after", [Step(at: 0, answer: "503", retryAfter: "2"), Step(at: 1500)], [2]),
      ("after its retry-after", [Step(at: 0, answer: "503", retryAfter: "2"), Step(at: 2010)], []),
      ("retry-after as a date", [Step(at: 0, answer: "503", retryAfter: "Wed, 21 Oct 2015"), Step(at: 1500)], []),
      (
        "before the date of its retry-after",
        [Step(at: 0, answer: "503", retryAfter: "Fri, 01 Jan 2100 00:00:00 GMT"), Step(at: 1500)], [2]
      ),
      (
        "after the date of its retry-after",
        [Step(at: 0, answer: "503", retryAfter: "Thu, 01 Jan 1970 00:00:00 GMT"), Step(at: 1500)], []
      ),
      (
        "retry-after beyond all times", [Step(at: 0, answer: "503", retryAfter: "9223372036854775807"), Step(at: 20)],
        [2]
      ),
      (
        "the server's clock says nothing of it",
        [Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 5000, clock: -4999)], []
      ),
    ] as [Case])
  func hotRetry(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .hotRetry) == earners)
  }

  /// The times of the attempts in milliseconds; all but the last fail, and each response takes one millisecond.
  @Test(
    arguments: [
      ("two attempts are no series", [0, 1000], []), ("always a second", [0, 1000, 2000, 3000], [3, 4]),
      ("doubled", [0, 1000, 3000, 7000, 15000], []), ("one more each time", [0, 1000, 3000, 6000, 10000], []),
      ("without a pause", [0, 5, 9, 30, 40], [3, 4, 5]), ("almost the same", [0, 1000, 2050, 3020], [3, 4]),
      ("shorter by jitter", [0, 1000, 1600, 4600], []), ("never longer", [0, 1000, 1600, 2500], [4]),
      ("as long as it gets", [0, 1000, 3000, 7000, 11000, 15000], []),
    ] as [(String, [Int64], [Int])])
  func noBackoff(_ name: String, _ times: [Int64], _ earners: [Int]) {
    for answer in ["503 ServiceUnavailable", "lost"] {
      let steps = times.enumerated().map { Step(at: $1, answer: $0 == times.count - 1 ? "200" : answer) }
      #expect(FindingsScenario(steps).earners(of: .noBackoff) == earners, "\(answer)")
    }
  }

  @Test func immediateRetriesAllowedByHTTP2NeedNoBackoff() {
    let steps = (0..<6).map { Step(at: $0 * 5, answer: "refused") }
    #expect(FindingsScenario(steps).earners(of: .noBackoff) == [])
  }

  @Test(
    arguments: [
      ("under another id", [Step(at: 0, answer: "taken"), Step(at: 5000)], [2]),
      ("under the same id", [Step(at: 0, answer: "taken", id: "x"), Step(at: 5000, id: "X")], []),
      ("not taken before", [Step(at: 0, answer: "lost"), Step(at: 5000)], []),
      ("its answer arrived", [Step(at: 0), Step(at: 5000)], []),
      ("not taken again", [Step(at: 0, answer: "taken"), Step(at: 5000, answer: "503 ServiceUnavailable")], []),
      (
        "after an attempt in vain",
        [Step(at: 0, answer: "taken"), Step(at: 500, answer: "503 ServiceUnavailable"), Step(at: 5000)], [3]
      ),
      ("three times", [Step(at: 0, answer: "taken"), Step(at: 500, answer: "taken"), Step(at: 5000)], [2, 3]),
      (
        "the device shows the newer one",
        [
          Step(at: 0, answer: "taken", headers: [("apns-collapse-id", "n")]),
          Step(at: 5000, headers: [("apns-collapse-id", "n")]),
        ], []
      ),
    ] as [Case])
  func duplicate(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .duplicate) == earners)
  }

  /// The client stops waiting and retries while the first attempt is pending; then the first attempt is accepted
  /// after all.
  @Test(arguments: [false, true]) func firstAttemptEndsLast(isReadMeanwhile: Bool) {
    let scene = FindingsScenario([Step(at: 0, answer: "pending"), Step(at: 5000)])
    if isReadMeanwhile { #expect(scene.earners(of: .duplicate) == []) }
    scene.end(1, as: Step(at: 6000, answer: "taken"))
    #expect(scene.earners(of: .duplicate) == [2])
    #expect(scene.findings(of: .duplicate).map(\.evidence) == [[1, 2]])
  }

  /// The pushes that are abandoned when the server's clock is `time` milliseconds after noon. A push ends two
  /// milliseconds after its arrival.
  @Test(
    arguments: [
      ([Step(at: 0, answer: "503 ServiceUnavailable")], 60_001, []),
      ([Step(at: 0, answer: "503 ServiceUnavailable")], 60_002, [1]),
      ([Step(at: 0, answer: "503 ServiceUnavailable")], -1, []),
      ([Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 9000, answer: "429 TooManyRequests")], 69_001, []),
      ([Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 9000, answer: "429 TooManyRequests")], 69_002, [2]),
      ([Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 90_000)], 900_000, []),
      ([Step(at: 0, answer: "lost")], 60_002, [1]), ([Step(at: 0, answer: "refused")], 60_002, [1]),
      ([Step(at: 0, answer: "goaway")], 60_002, [1]), ([Step(at: 0, answer: "pending")], 60_002, []),
      ([Step(at: 0, answer: "taken")], 60_002, []), ([Step(at: 0, answer: "400 BadTopic")], 60_002, []),
      ([Step(at: 0, answer: "410 Unregistered")], 60_002, []),
      (
        [Step(at: 0, answer: "503", headers: [("user-agent", "apns-mock")])], 60_002, []
      ),
    ] as [([Step], Int64, [Int])])
  func abandoned(_ steps: [Step], _ time: Int64, _ earners: [Int]) {
    let scene = FindingsScenario(steps, now: PushFixture.noon + time)
    #expect(scene.earners(of: .abandoned) == earners)
  }

  /// A pending attempt that ends after the retry of its push was accepted is not the push's last attempt.
  @Test func replacedAttemptIsNotAbandoned() {
    let scene = FindingsScenario([Step(at: 0, answer: "pending")], now: PushFixture.noon + 900_000)
    #expect(scene.earners(of: .abandoned) == [])
    scene.add(Step(at: 5000))
    scene.end(1, as: Step(at: 6000, answer: "lost"))
    #expect(scene.earners(of: .abandoned) == [])
  }

  @Test func findingStatesItsEvidence() throws {
    let scene = FindingsScenario([
      Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 20, answer: "503", retryAfter: "60"),
      Step(at: 50, answer: "400 BadTopic"), Step(at: 90),
    ])
    let report = try scene.inbox.findings(by: PushFixture.rulebook, in: Selection())
    #expect(
      report.findings.map { "\($0.seq) \($0.kind.rawValue) \($0.evidence): \($0.explanation)" } == [
        "2 hot-retry [1, 2]: retried 19ms after push 1 was answered 503 ServiceUnavailable",
        "3 hot-retry [2, 3]: retried 29ms after push 2 was answered 503, although retry-after requires 1m",
        "3 no-backoff [1, 2, 3]: attempt 3 of this push, and the delays between the attempts do not grow: 19ms, 29ms",
        "4 retried-permanent [3, 4]: push 3 was answered 400 BadTopic, and nothing relevant to this response has changed "
          + "since",
      ])
    #expect(report.isComplete)
  }
}
