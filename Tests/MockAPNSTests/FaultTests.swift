import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

/// The effects of fault rules on pushes over real sockets: what the client sees, and what the record shows.
@Suite struct FaultTests {
  /// Activates a rule in addition to the profile.
  static func add(
    _ test: TestServer, _ action: Action, at injectionPoint: InjectionPoint = .request, _ trigger: Trigger = Trigger(),
    when condition: Condition = Condition(), stage: Rule.Stage = .afterValidation, name: String = "fault"
  ) {
    test.state.faults.add(
      Rule(
        name: name, injectionPoint: injectionPoint, condition: condition, trigger: trigger, action: action, stage: stage
      ),
      timeToLive: nil)
  }

  /// The expected result of a push to which a rule applies.
  struct Ending: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var action: Action
    var injectionPoint = InjectionPoint.request
    /// What the client sees: `200`, `503 ServiceUnavailable`, `reset 2`, `disconnected`.
    var seen: String
    var outcome: Record.Outcome
    var accepted = false
    var reset: String?
    var closed: WireDetails.CloseMethod?
  }

  @Test(
    arguments: [
      Ending(
        testDescription: "respond", action: .respond(Action.Response(status: 503, reason: "ServiceUnavailable")),
        seen: "503 ServiceUnavailable", outcome: .rejected),
      Ending(
        testDescription: "an unknown reason", action: .respond(Action.Response(status: 400, reason: "Sideways")),
        seen: "400 Sideways", outcome: .rejected),
      Ending(testDescription: "pass", action: .pass, seen: "200", outcome: .accepted, accepted: true),
      Ending(
        testDescription: "delay", action: .delay(.fixed(.milliseconds(5))), seen: "200", outcome: .accepted,
        accepted: true),
      Ending(
        testDescription: "hang, then reset", action: .hang(for: .milliseconds(5), endWith: .resetStream),
        seen: "reset 2", outcome: .unanswered, reset: "INTERNAL_ERROR"),
      Ending(
        testDescription: "hang, then close", action: .hang(for: .milliseconds(5), endWith: .close),
        seen: "disconnected", outcome: .unanswered, closed: .fin),
      Ending(
        testDescription: "hang, then answer", action: .hang(for: .milliseconds(5), endWith: .answer), seen: "200",
        outcome: .accepted, accepted: true),
      Ending(
        testDescription: "reset_stream", action: .resetStream(code: 7), seen: "reset 7", outcome: .unprocessed,
        reset: "REFUSED_STREAM"),
      Ending(
        testDescription: "reset_stream at the response", action: .resetStream(code: 11), injectionPoint: .response,
        seen: "reset 11", outcome: .responseLost, accepted: true, reset: "ENHANCE_YOUR_CALM"),
      Ending(
        testDescription: "reset_connection", action: .resetConnection(afterAccepting: false), seen: "disconnected",
        outcome: .unanswered, closed: .reset),
      Ending(
        testDescription: "reset_connection after accepting", action: .resetConnection(afterAccepting: true),
        seen: "disconnected", outcome: .responseLost, accepted: true, closed: .reset),
      Ending(
        testDescription: "close", action: .close, seen: "disconnected", outcome: .unanswered, closed: .fin),
      Ending(
        testDescription: "lose_answer with a reset", action: .loseResponse(endWith: .resetStream),
        injectionPoint: .response,
        seen: "reset 2", outcome: .responseLost, accepted: true, reset: "INTERNAL_ERROR"),
      Ending(
        testDescription: "goaway before this", action: .goAway(Action.GoAwayParameters(closeAfter: .milliseconds(5))),
        seen: "disconnected", outcome: .unprocessed),
      Ending(
        testDescription: "goaway after this", action: .goAway(Action.GoAwayParameters(lastStream: .this)), seen: "200",
        outcome: .accepted, accepted: true),
    ] as [Ending])
  func ends(_ ending: Ending) async throws {
    try await TestServer.run { test in
      Self.add(test, ending.action, at: ending.injectionPoint)
      let push = test.push(token: try test.providerToken())
      #expect(Self.words(try await test.provider().send([push])[0]) == ending.seen)
      let record = try #require(try test.state.inbox.record(seq: 1))
      #expect(record.outcome == ending.outcome)
      #expect(record.accepted == ending.accepted)
      #expect(record.wireDetails?.reset == ending.reset)
      #expect(record.wireDetails?.closed == ending.closed)
      #expect(record.wireDetails?.injections.map(\.rule) == ["fault"])
      #expect(record.finishedAt != nil)
      #expect(record.verdict?.isAccepted == true, "what APNs would say stays")
    }
  }

  private static func words(_ outcome: PushClient.Outcome) -> String {
    switch outcome {
    case .response(let response):
      let reason = response.text.firstMatch(of: /"reason":"(\w+)"/).map { " \($0.1)" } ?? ""
      return "\(response.status)\(reason)"
    case .reset(let code): return "reset \(code)"
    case .disconnected: return "disconnected"
    }
  }

  @Test func faultDoesNotHideARejectionUnlessConfigured() async throws {
    try await TestServer.run { test in
      let answer = Action.respond(Action.Response(status: 503, reason: "ServiceUnavailable"))
      Self.add(test, answer)
      let bad = test.push(token: try test.providerToken(), deviceToken: "zz")
      #expect(try await test.send(bad)?.status == 400)
      Self.add(test, answer, stage: .beforeValidation)
      #expect(try await test.send(bad)?.status == 503)
      #expect(try test.state.inbox.record(seq: 2)?.verdict?.status == 400)
    }
  }

  /// A constant response takes the short path. A condition that every push meets forces the full path.
  @Test(
    arguments: [
      Action.Response(status: 503, reason: "ServiceUnavailable"),
      Action.Response(status: 429, reason: "TooManyRequests"),
      Action.Response(status: 500, reason: nil), Action.Response(status: 400, reason: "BadTopic", body: "no JSON"),
      Action.Response(status: 410, reason: "Unregistered", timestamp: .absolute(1_700_000_000_000)),
      Action.Response(status: 400, reason: "Sideways"), Action.Response(status: 200, reason: nil),
      Action.Response(status: 503, reason: "Shutdown", headers: [Action.Field(name: "retry-after", value: "7")]),
    ], [Rule.Stage.afterValidation, .beforeValidation])
  func constantAndFullResponsesAreEqual(answer: Action.Response, stage: Rule.Stage) async throws {
    var told: [[String]] = []
    for condition in [Condition(), Condition([Condition.Test(.client, .present(true))])] {
      try await TestServer.run { test in
        Self.add(test, .respond(answer), Trigger(first: 1, countKey: .push), when: condition, stage: stage)
        let token = try test.providerToken()
        let id = ["apns-id": "00000000-0000-4000-8000-000000000001"]
        let (good, bad) = (test.push(token: token, id), test.push(token: token, deviceToken: "zz", id))
        var lines: [String] = []
        // If the first attempt was not accepted, the second gets the ordinary response.
        for push in [good, good, bad, bad] {
          let response = try #require(try await test.send(push))
          var line = response.text
          response.headers.forEachField { name, value in
            let name = response.headers.string(name)
            if name != "apns-unique-id" { line += " \(name)=\(response.headers.string(value))" }
          }
          lines.append(line)
        }
        for seq in 1...4 {
          let record = try #require(try test.state.inbox.record(seq: seq))
          let (wireDetails, served) = (record.wireDetails, record.sentResponse)
          #expect(served.latencyNanoseconds != nil)
          lines.append(
            """
            \(record.outcome) \(record.accepted) \(record.attempt) \(served.status ?? 0) \(served.reason?.text ?? "") \
            \(wireDetails?.injections.map(\.rule) ?? []) \(wireDetails?.unusualReason ?? "")
            """)
        }
        #expect(lines[4].hasPrefix(answer.status == 200 ? "accepted true" : "rejected false"))
        told.append(lines)
      }
    }
    #expect(told[0] == told[1])
  }

  @Test func delayedPushIsListedAtOnceAndDoesNotDelayShutdown() async throws {
    try await TestServer.run { test in
      Self.add(test, .hang(for: .seconds(600), endWith: .nothing))
      let push = test.push(token: try test.providerToken())
      let sending = Task { try await test.provider().send([push]) }
      try await eventually("the push is recorded") { try test.state.inbox.record(seq: 1) != nil }
      let held = try #require(try test.state.inbox.record(seq: 1))
      #expect(held.outcome == .pending)
      #expect(held.finishedAt == nil)
      #expect(held.sentResponse.status == nil)
      await test.server.stop()
      let record = try #require(try test.state.inbox.record(seq: 1))
      #expect(record.outcome == .unanswered && record.end == AttemptEnd(.notProcessed, .disconnected))
      #expect(record.finishedAt != nil)
      #expect(try await sending.value.map(Self.words) == ["disconnected"])
    }
  }

  @Test func everyCallerOfStopWaitsUntilStopped() async throws {
    try await TestServer.run { test in
      Self.add(test, .delay(.fixed(.seconds(1))))
      let push = test.push(token: try test.providerToken())
      let sending = Task { try await test.provider().send([push]) }
      try await eventually("the push is recorded") { try test.state.inbox.record(seq: 1) != nil }
      let first = Task { await test.server.stop() }
      try await eventually("the server is stopping") { test.state.phase == .stopping }
      await test.server.stop()
      #expect(test.state.connections.openCount == 0)
      await first.value
      _ = try await sending.value
    }
  }

  /// Each iteration lets a profile expire while another one is activated.
  @Test func anExpiringProfileDoesNotReplaceANewerOne() async throws {
    try await TestServer.run { test in
      let faults = test.state.faults
      let library = faults.library.load()
      let source = try #require(library.source(named: "healthy"))
      let expiring = SelectedProfile(source: source, profile: Profile(name: "expiring"))
      let newer = SelectedProfile(source: source, profile: Profile(name: "newer"))
      for iteration in 0..<300 {
        faults.use(expiring, timeToLive: .nanoseconds(1))
        // A different delay in each iteration, so that the expiry happens at a different point of the activation.
        try await Task.sleep(for: .microseconds(iteration % 100 * 4))
        faults.use(newer)
        try await Task.sleep(for: .microseconds(200))
        #expect(faults.selection.profile.name == "newer")
      }
    }
  }

  /// Thousands of delayed pushes wait without a thread each, and all get a response.
  @Test func manyDelayedPushesAllGetAResponse() async throws {
    try await TestServer.run { test in
      Self.add(test, .delay(.fixed(.milliseconds(200))))
      let push = test.push(token: try test.providerToken())
      let outcomes = try await test.provider().send(Array(repeating: push, count: 2000))
      #expect(outcomes.allSatisfy { Self.words($0) == "200" })
      #expect(try test.state.inbox.snapshot().page(PageQuery()).total == 2000)
    }
  }

  @Test func goAwayReportsTheLastProcessedStream() async throws {
    try await TestServer.run { test in
      // The fifth push of the connection and all later ones are neither accepted nor answered.
      Self.add(
        test, .goAway(Action.GoAwayParameters(debugData: "bye", closeAfter: .milliseconds(20))),
        Trigger(every: 5, countKey: .connection))
      let push = test.push(token: try test.providerToken())
      let outcomes = try await test.provider().send(Array(repeating: push, count: 20)).map(Self.words)
      #expect(outcomes.prefix(4).allSatisfy { $0 == "200" })
      #expect(outcomes.dropFirst(4).allSatisfy { $0 == "disconnected" })
      let records = try test.state.inbox.snapshot().page(PageQuery()).items
      #expect(records.filter(\.accepted).count == 4)
      #expect(records.filter(\.accepted).allSatisfy { $0.stream <= 7 })
      let told = try #require(records.first { $0.wireDetails?.goAway != nil })
      #expect(
        told.wireDetails?.goAway == WireDetails.GoAway(code: "NO_ERROR", lastStream: told.stream - 2, debugData: "bye"))
    }
  }

  @Test func tokenUpdateFaultRepeatsUntilTheIntervalHasPassed() async throws {
    try await TestServer.run { test in
      Self.add(
        test,
        .respond(Action.Response(status: 429, reason: "TooManyProviderTokenUpdates", blocksTokenUpdates: true)),
        Trigger(times: 1))
      let push = test.push(token: try test.providerToken())
      let outcomes = try await test.provider().send([push, push, push]).map(Self.words)
      #expect(outcomes == Array(repeating: "429 TooManyProviderTokenUpdates", count: 3))
    }
  }

  @Test(
    arguments: [(Duration.seconds(-86_400), -86_400_000), (.zero, 0), (.seconds(60), 60_000)] as [(Duration, Int64)])
  func unregisteredResponseHasItsTime(offset: Duration, milliseconds: Int64) async throws {
    try await TestServer.run { test in
      test.state.clock.freeze(at: 1_800_000_000_000)
      Self.add(test, .respond(Action.Response(status: 410, reason: "Unregistered", timestamp: .relative(offset))))
      let answer = try #require(try await test.send(test.push(token: try test.providerToken())))
      #expect(answer.text == #"{"reason":"Unregistered","timestamp":\#(1_800_000_000_000 + milliseconds)}"#)
    }
  }

  /// The actions that change a response, with what the client receives instead of 400 `BadTopic`.
  private static let mutations: [(action: Action, isExpected: @Sendable (HTTPResponse) -> Bool)] = [
    (.splitBody, { $0.text == #"{"reason":"BadTopic"}"# }),
    (.dribble(chunks: 4, over: .milliseconds(20)), { $0.text == #"{"reason":"BadTopic"}"# }),
    (.truncateBody, { $0.text == #"{"reason":"# }),
    (.garbleBody, { $0.body.count == 21 && $0.text != #"{"reason":"BadTopic"}"# }),
    (.emptyErrorBody, { $0.body.isEmpty }), (.dropHeader(name: "apns-id"), { $0.headers["apns-id"] == nil }),
    (.changeID(.lowerCase), { $0.headers["apns-id"].map { $0 == $0.lowercased() } == true }),
  ]

  @Test func responsesAreMutated() async throws {
    let expected = Action.Name.allCases.filter { $0.injectionPoints == [.response] && $0.continues == true }
    #expect(Set(Self.mutations.map(\.action.name)) == Set(expected))
    try await TestServer.run { test in
      let push = test.push(token: try test.providerToken())
      Self.add(test, .respond(Action.Response(status: 400, reason: "BadTopic")), name: "no")
      for (action, isExpected) in Self.mutations {
        Self.add(test, action, at: .response, name: "shape")
        let response = try #require(try await test.send(push))
        #expect(isExpected(response), "\(action.name): \(response.text)")
      }
    }
  }

  @Test func retriesAreCountedAndSeenByRules() async throws {
    try await TestServer.run { test in
      Self.add(
        test, .respond(Action.Response(status: 503, reason: "ServiceUnavailable")), Trigger(first: 2, countKey: .push))
      let push = test.push(token: try test.providerToken())
      var seen: [Int] = []
      for _ in 0..<4 { seen.append(try await test.send(push)?.status ?? 0) }
      #expect(seen == [503, 503, 200, 503], "after an accepted attempt it is a new push")
      #expect(try test.state.inbox.snapshot().page(PageQuery()).items.map(\.attempt) == [1, 2, 3, 1])
    }
  }

  @Test func magicDeviceTokensInjectTheirOutcome() async throws {
    func token(_ code: String, _ argument: String = "0000") -> String {
      "feedfacefeedface" + code + argument + String(repeating: "0", count: 40)
    }
    try await TestServer.run { test in
      let provider = try test.providerToken()
      for (code, status) in [("4000", 400), ("4030", 403), ("4100", 410), ("4130", 413), ("4290", 429), ("5000", 500)] {
        #expect(try await test.send(test.push(token: provider, deviceToken: token(code)))?.status == status)
      }
      let twice = test.push(token: provider, deviceToken: token("0503", "0002"))
      var seen: [Int] = []
      for _ in 0..<3 { seen.append(try await test.send(twice)?.status ?? 0) }
      #expect(seen == [503, 503, 200])
    }
    try await TestServer.run({ $0.magicTokens = false }) { test in
      let push = test.push(token: try test.providerToken(), deviceToken: token("4000"))
      #expect(try await test.send(push)?.status == 200)
    }
  }
}
