import APNSMockRules
import Testing

@testable import APNSMockInbox

/// Findings about device tokens, provider tokens and connections, across several pushes.
@Suite struct ProviderFindingsTests {
  typealias Case = (name: String, steps: [Step], earners: [Int])

  @Test(
    arguments: [
      ("once", [Step(at: 0, answer: "410 Unregistered")], []),
      ("the same push", [Step(at: 0, answer: "410 Unregistered"), Step(at: 5000)], [2]),
      (
        "another push to the device, until one is taken",
        [
          Step(at: 0, answer: "410 ExpiredToken"), Step(at: 5000, answer: "410 ExpiredToken", push: "b"),
          Step(at: 6000, push: "c"), Step(at: 7000, push: "d"),
        ], [2, 3]
      ),
      (
        "it stays gone", (0..<3).map { Step(at: $0 * 5000, answer: "410 Unregistered", push: "\($0)") }, [2, 3]
      ),
      ("another device", [Step(at: 0, answer: "410 Unregistered"), Step(at: 5000, device: "cd34")], []),
      ("its token in capital letters", [Step(at: 0, answer: "410 Unregistered"), Step(at: 5000, device: "AB12")], [2]),
      (
        "another topic",
        [Step(at: 0, answer: "410 Unregistered"), Step(at: 5000, topic: "com.acme.other")], []
      ),
      ("400 is for retried-permanent", [Step(at: 0, answer: "400 BadDeviceToken"), Step(at: 5000, push: "b")], []),
      ("it had left before the answer", [Step(at: 0, answer: "410 Unregistered", latency: 50), Step(at: 20)], []),
      (
        "the server's reset may have destroyed the response",
        [
          Step(at: 0, answer: "410 Unregistered", closing: .server, resets: true),
          Step(at: 200, answer: "410 Unregistered", connection: "c2"), Step(at: 210, push: "b", connection: "c2"),
        ], []
      ),
      ("another push at once", [Step(at: 0, answer: "410 Unregistered"), Step(at: 5, push: "b")], []),
      ("another push in time", [Step(at: 0, answer: "410 Unregistered"), Step(at: 101, push: "b")], [2]),
      (
        "another push at once, and again",
        [
          Step(at: 0, answer: "410 Unregistered"), Step(at: 5, answer: "410 Unregistered", push: "b"),
          Step(at: 20, answer: "410 Unregistered", push: "b"),
        ], [3]
      ),
      (
        "several under way",
        [
          Step(at: 0, latency: 30, push: "x", device: "cd34"), Step(at: 0, answer: "410 Unregistered"),
          Step(at: 60, answer: "410 Unregistered", push: "b"), Step(at: 200, answer: "410 Unregistered", push: "c"),
        ], [4]
      ),
    ] as [Case])
  func retried410(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .retried410) == earners)
  }

  /// Converts minutes to milliseconds.
  private static func minutes(_ count: Int64) -> Int64 { count * 60_000 }

  @Test(
    arguments: [
      ("one token", (0..<4).map { Step(at: $0 * 1000) }, []),
      (
        "one for each push", (0..<4).map { Step(at: $0 * 1000, issued: -$0) }, [2, 3, 4]
      ),
      ("renewed in time", (0..<4).map { Step(at: $0 * minutes(20), issued: $0 * -1200) }, []),
      ("renewed too early", [Step(at: 0), Step(at: minutes(20) - 1, issued: -1200)], [2]),
      ("by the server's clock", [Step(at: 0), Step(at: 1000, issued: -1, clock: minutes(20))], []),
      ("a clock turned back", [Step(at: 0), Step(at: 1000, issued: -1, clock: -minutes(60))], []),
      ("two in turns", (0..<6).map { Step(at: $0 * 1000, issued: -($0 % 2)) }, [2]),
      ("the same claims signed again", (0..<3).map { Step(at: $0 * 10, signature: "\($0)") }, [2, 3]),
      ("signed again later", [Step(at: 0), Step(at: minutes(30), signature: "B")], [2]),
      ("each connection its own", (0..<3).map { Step(at: $0 * 10, connection: "c\($0)", issued: -$0) }, []),
      ("asked for", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 10, issued: -1)], []),
      (
        "asked for once",
        [
          Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 10, issued: -1), Step(at: 20, issued: -2),
        ], [3]
      ),
    ] as [Case])
  func jwtChurn(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .jwtChurn) == earners)
  }

  @Test(
    arguments: [
      ("heard of it", [Step(at: 0, answer: "403 ExpiredProviderToken")], []),
      ("used on", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 20)], [2]),
      ("another push at once", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 20, push: "b")], []),
      (
        "another push at once, and again",
        [
          Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 5, answer: "403 ExpiredProviderToken", push: "b"),
          Step(at: 20, push: "b"),
        ], [3]
      ),
      ("used on for another push", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 120, push: "b")], [2]),
      (
        "used on elsewhere",
        [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 120, push: "b", connection: "c2")], [2]
      ),
      (
        "the server's reset may have destroyed the response",
        [
          Step(at: 0, answer: "403 ExpiredProviderToken", closing: .server, resets: true),
          Step(at: 20, connection: "c2"),
        ], []
      ),
      ("renewed", [Step(at: 0, answer: "403 ExpiredProviderToken"), Step(at: 20, issued: -1)], []),
      ("another reason", [Step(at: 0, answer: "403 InvalidProviderToken"), Step(at: 20, push: "b")], []),
      (
        "others were under way",
        [
          Step(at: 0, latency: 50, push: "x"), Step(at: 1, answer: "403 ExpiredProviderToken", push: "y"),
          Step(at: 9, answer: "403 ExpiredProviderToken", push: "z"),
          Step(at: 150, answer: "403 ExpiredProviderToken", push: "q"),
        ], [4]
      ),
    ] as [Case])
  func jwtStale(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .jwtStale) == earners)
  }

  @Test(
    arguments: [
      ("one for all", (0..<6).map { Step(at: $0 * 1000, connection: "c\($0 % 2)") }, []),
      (
        "two processes", (0..<6).map { Step(at: $0 * 1000, connection: "c\($0 % 2)", issued: $0 % 2) }, [3]
      ),
      (
        "two processes for two apps",
        (0..<6).map { Step(at: $0 * 1000, topic: "t\($0 % 2)", connection: "c\($0 % 2)", issued: $0 % 2) }, []
      ),
      ("renewed on one connection", (0..<4).map { Step(at: $0 * 1000, issued: -$0 / 2) }, []),
      (
        "renewed on two connections",
        [
          Step(at: 0, connection: "c0"), Step(at: 1000, connection: "c1"), Step(at: 2000, connection: "c0", issued: -1),
          Step(at: 3000, connection: "c1", issued: -1), Step(at: 4000, connection: "c0", issued: -1),
        ], []
      ),
      (
        "under way during the renewal",
        [
          Step(at: 0, connection: "c0"), Step(at: 1000, connection: "c1", issued: -1),
          Step(at: 1099, connection: "c0"),
        ], []
      ),
      (
        "the old connection finishes",
        [
          Step(at: 0, connection: "c0"), Step(at: 1000, connection: "c1", issued: -1200),
          Step(at: 60_000, connection: "c0"),
        ], []
      ),
      (
        "the old connection does not finish",
        [
          Step(at: 0, connection: "c0"), Step(at: 1000, connection: "c1", issued: -1200),
          Step(at: 61_000, connection: "c0"), Step(at: 62_000, connection: "c0"),
        ], [3]
      ),
      (
        "the old token is refused",
        [
          Step(at: 0, connection: "c0"), Step(at: 1000, connection: "c1", issued: -1),
          Step(at: 2000, answer: "403 ExpiredProviderToken", connection: "c0"),
        ], []
      ),
      (
        "one after the other",
        [Step(at: 0, connection: "c0", closing: .client), Step(at: 1000, connection: "c1", issued: -1)], []
      ),
      (
        "our own command",
        [
          Step(at: 0, connection: "c0"),
          Step(at: 1000, connection: "c1", issued: -1, headers: [("user-agent", "apns-mock")]),
          Step(at: 2000, connection: "c0"),
        ], []
      ),
    ] as [Case])
  func tokenPerProcess(_ name: String, _ steps: [Step], _ earners: [Int]) {
    let findings = FindingsScenario(steps).findings(of: .tokenPerProcess)
    #expect(findings.map(\.seq) == earners)
    #expect(findings.allSatisfy { $0.evidence.count == 2 })
  }

  /// Returns pushes on `count` connections of one push each, opened `time` milliseconds apart.
  private static func singles(
    every time: Int64, count: Int64 = 5, closing: ConnectionFacts.CloseInitiator? = .client, host: String = "c",
    change: (inout Step) -> Void = { _ in }
  ) -> [Step] {
    (0..<count).map { number in
      var step = Step(at: number * time, push: "\(number)", connection: "\(host)\(number)", closing: closing)
      change(&step)
      return step
    }
  }

  @Test(
    arguments: [
      ("four", singles(every: 10, count: 4), []), ("five", singles(every: 10), [5]),
      ("seven", singles(every: 10, count: 7), [5, 6, 7]), ("in a minute", singles(every: 15_000), [5]),
      ("in more than a minute", singles(every: 15_001), []), ("still open", singles(every: 10, closing: nil), []),
      ("closed by the server", singles(every: 10, closing: .server), []),
      ("after a fault", singles(every: 10) { $0.answer = "503 ServiceUnavailable" }, [5]),
      ("rejected by the rules", singles(every: 10) { ($0.answer, $0.byRules) = ("400 BadDeviceToken", true) }, [5]),
      ("two pushes each", singles(every: 10) + singles(every: 10) { ($0.at, $0.push) = ($0.at + 1, "x") }, []),
      ("of our own command", singles(every: 10) { $0.headers = [("user-agent", "apns-mock")] }, []),
      ("of two hosts", singles(every: 10, count: 4) + singles(every: 10, count: 4, host: "x"), []),
    ] as [Case])
  func connectionChurn(_ name: String, _ steps: [Step], _ earners: [Int]) {
    #expect(FindingsScenario(steps).earners(of: .connectionChurn) == earners)
  }

  /// A connection that ends after its push was examined.
  @Test func connectionThatEndsLater() {
    let scene = FindingsScenario(Self.singles(every: 10, closing: nil))
    #expect(scene.earners(of: .connectionChurn) == [])
    for step in Self.singles(every: 10) { scene.end(connection: step.connection) }
    #expect(scene.findings(of: .connectionChurn).map(\.evidence) == [[1, 2, 3, 4, 5]])
  }

  @Test func tokenPerConnection() {
    let steps = Self.singles(every: 10) { $0.issued = $0.at }
    #expect(FindingsScenario(steps).earners(of: .jwtChurn) == [5])
    #expect(FindingsScenario(Self.singles(every: 10)).earners(of: .jwtChurn) == [])
  }

  @Test(arguments: [
    (WireDetails.ProtocolViolation.afterGoAway(lastStream: 5, nanoseconds: 700_000_000), Finding.Kind.afterGoAway),
    (.excessStreams(limit: 4), .excessStreams),
  ]) func violations(_ violation: WireDetails.ProtocolViolation, _ kind: Finding.Kind) throws {
    let inbox = Inbox()
    inbox.append(
      PushFixture {
        $0.isComplete = false
        $0.outcome = .unprocessed
        $0.wireDetails = WireDetails(violation: violation)
      }.record)
    inbox.append(PushFixture().record)
    let findings = try inbox.findings(by: PushFixture.rulebook, in: Selection()).findings
    #expect(findings.map(\.kind) == [kind])
    #expect(findings.first?.seq == 1)
    #expect(findings.first?.explanation.hasPrefix("stream 39 ") == true)
  }

  @Test(arguments: [(3686, false), (3687, true), (4096, true), (4097, false)])
  func nearLimit(size: Int, isNear: Bool) throws {
    let inbox = Inbox()
    inbox.append(
      PushFixture {
        let frame = #"{"aps":{"alert":""}}"#
        let text = String(repeating: "x", count: size - frame.utf8.count)
        $0.body = Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8)
      }.record)
    let findings = try inbox.findings(by: PushFixture.rulebook, in: Selection()).findings
    #expect(findings.map(\.kind) == (isNear ? [.nearLimit] : []))
  }
}
