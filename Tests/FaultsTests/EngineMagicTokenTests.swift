import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Testing

@Suite struct EngineMagicTokenTests {
  static func respond(_ status: Int, _ reason: String, hoursAgo: Int = 0) -> Action {
    .respond(Action.Response(status: status, reason: reason, timestamp: .relative(.seconds(-3600 * hoursAgo))))
  }

  static let refused = Action.goAway(Action.GoAwayParameters())

  /// The documented table. The last column is the number of attempts to which the token applies; nil for all.
  static let table: [(digits: String, action: Action, first: Int?)] = [
    ("4000 0000", respond(400, "BadDeviceToken"), nil), ("4001 0000", respond(400, "DeviceTokenNotForTopic"), nil),
    ("4002 0000", respond(400, "TopicDisallowed"), nil), ("4030 0000", respond(403, "ExpiredProviderToken"), nil),
    ("4031 0000", respond(403, "InvalidProviderToken"), nil), ("4100 0000", respond(410, "Unregistered"), nil),
    ("4100 0024", respond(410, "Unregistered", hoursAgo: 24), nil),
    ("4100 9999", respond(410, "Unregistered", hoursAgo: 9999), nil), ("4101 0000", respond(410, "ExpiredToken"), nil),
    ("4130 0000", respond(413, "PayloadTooLarge"), nil), ("4290 0000", respond(429, "TooManyRequests"), nil),
    ("4291 0000", respond(429, "TooManyProviderTokenUpdates"), nil),
    ("5030 0000", respond(503, "ServiceUnavailable"), nil), ("5031 0000", respond(503, "Shutdown"), nil),
    ("5000 0000", respond(500, "InternalServerError"), nil), ("0503 0002", respond(503, "ServiceUnavailable"), 2),
    ("0503 0000", respond(503, "ServiceUnavailable"), 0), ("0429 0003", respond(429, "TooManyRequests"), 3),
    ("0001 0000", .delay(.fixed(.zero)), nil), ("0001 0025", .delay(.fixed(.milliseconds(2500))), nil),
    ("0001 9999", .delay(.fixed(.seconds(600))), nil), ("0900 0000", .hang(for: .seconds(600), endWith: .nothing), nil),
    ("0901 0000", .resetStream(code: 2), nil), ("0902 0000", refused, nil),
    ("0903 0000", .resetConnection(afterAccepting: false), nil), ("0904 0000", .loseResponse(endWith: .nothing), nil),
  ]

  static func token(_ digits: String) -> String {
    "feedfacefeedface" + digits.replacing(" ", with: "") + String(repeating: "5a", count: 20)
  }

  @Test(arguments: table)
  func outcome(digits: String, action: Action, first: Int?) {
    let plan = FaultPlan([], magicTokens: true)
    for token in [Self.token(digits), Self.token(digits).uppercased()] {
      plan.ruleCounters.reset()
      for attempt in 0..<5 {
        let fixture = EngineFixture { $0.deviceToken = token }
        let decision = plan.decide(fixture.traffic, at: .request, now: 0)
        guard attempt < first ?? .max else {
          #expect(decision.isEmpty)
          continue
        }
        let injection = action.name.continues == true ? decision.additions.first : decision.decidingInjection
        #expect(injection?.action == action)
        #expect(injection?.rule == "magic-\(digits.prefix(4))")
        #expect(injection?.profile == nil)
        #expect(injection?.followedBy == (digits.hasPrefix("5031") ? .goAway(.init(lastStream: .this)) : nil))
        #expect(decision.additions.count + (decision.decidingInjection == nil ? 0 : 1) == 1)
      }
    }
  }

  /// Every code is in the table, and the text of each listed token parses as that token.
  @Test func listIsComplete() {
    #expect(Set(Self.table.map { String($0.digits.prefix(4)) }) == Set(MagicToken.list.map(\.code.rawValue)))
    for token in MagicToken.list {
      #expect(token.text.count == 64)
      #expect(MagicToken(token.text) == token)
      #expect(!token.summary.isEmpty)
    }
    #expect(
      MagicToken.make(code: .unregistered, argument: 12).text
        == "feedfacefeedface41000012" + String(repeating: "0", count: 40))
    #expect(MagicToken.make(code: .late, argument: 123_456).argument == 9999)
    #expect(MagicToken.make(code: .late, argument: -1).argument == 0)
    #expect(MagicToken.make(code: .unregistered, argument: 3).summary == "410 Unregistered, timestamp 3 h before now")
    #expect(MagicToken.make(code: .late, argument: 15).summary == "200 after 1.5s")
    #expect(MagicToken.make(code: .badDeviceToken).summary == "400 BadDeviceToken")
  }

  @Test(arguments: [
    EngineFixture.deviceToken, "feedfacefeedface", token("4100 00ff"), token("9999 0000"), token("4100 0000") + "00",
    String(token("4100 0000").dropLast(2)), "deadbeef" + token("4100 0000").dropFirst(8), "", token("41zz 0000"),
  ])
  func ordinaryTokensAreNotMagic(text: String) {
    #expect(MagicToken(text) == nil)
    #expect(!FaultPlan([], magicTokens: true).fires(EngineFixture { $0.deviceToken = text }))
  }

  @Test(
    arguments: [
      (EngineFixture.deviceToken, false), (token("4100 0000"), true), (token("4100 0000").uppercased(), true),
      ("feedfacefeedfac", false), ("", false),
    ])
  func isMarkedByItsFirstDigits(token: String, isMarked: Bool) {
    #expect(Array(token.utf8).withUnsafeBytes(MagicToken.isMarked) == isMarked)
  }

  @Test func activatesItsInjectionPoint() {
    #expect(FaultPlan([], magicTokens: true).mayInject(at: .request))
    #expect(!FaultPlan([], magicTokens: false).mayInject(at: .request))
    #expect(!FaultPlan([], magicTokens: true, isPaused: true).mayInject(at: .request))
    #expect(FaultPlan([.unavailable()], magicTokens: false).mayInject(at: .request))
  }

  /// Attempts are counted per token, independent of other tokens and of attempt numbers.
  @Test func tokensAreCountedSeparately() {
    let plan = FaultPlan([], magicTokens: true)
    let tokens = ["1", "2"].map { "feedfacefeedface05030002" + String(repeating: $0, count: 40) }
    let fired = [0, 1, 0, 0, 1, 1].map { index in
      plan.fires(EngineFixture { ($0.deviceToken, $0.attempt) = (tokens[index], 9) })
    }
    #expect(fired == [true, true, true, false, true, false])
  }

  /// Rules come first, a push that APNs rejects keeps its rejection, and magic tokens can be disabled.
  @Test func evaluatedAfterAllRules() {
    let fixture = EngineFixture { $0.deviceToken = Self.token("4100 0000") }
    let slow = Rule(name: "slow", action: .delay(.fixed(.seconds(1))))
    let both = FaultPlan([slow], magicTokens: true).decide(fixture.traffic, at: .request, now: 0)
    #expect(both.additions.map { $0.rule } == ["slow"])
    #expect(both.decidingInjection?.rule == "magic-4100")
    let ruled = FaultPlan([slow, .unavailable("down")], magicTokens: true).decide(fixture.traffic, at: .request, now: 0)
    #expect(ruled.decidingInjection?.rule == "down")
    let passed = FaultPlan([Rule(name: "pass", action: .pass)], magicTokens: true)
    #expect(passed.decide(fixture.traffic, at: .request, now: 0).decidingInjection?.rule == "pass")
    var rejected = fixture
    rejected.fields[0].1 = ""
    #expect(!FaultPlan([], magicTokens: true).fires(rejected))
    #expect(!FaultPlan([], magicTokens: false).fires(fixture))
    #expect(!FaultPlan([], magicTokens: true).fires(fixture, at: .response))
  }

  @Test func holdsWithinLimits() {
    let plan = FaultPlan([], limits: .init(maxActive: 1, maxDelay: .seconds(2)), magicTokens: true)
    let hang = plan.decide(EngineFixture { $0.deviceToken = Self.token("0900 0000") }.traffic, at: .request, now: 0)
    #expect(hang.decidingInjection?.action == .hang(for: .seconds(2), endWith: .nothing))
    let late = EngineFixture { $0.deviceToken = Self.token("0001 0050") }.traffic
    #expect(plan.decide(late, at: .request, now: 0).isEmpty)
    if let injection = hang.decidingInjection { plan.ruleCounters.release(injection) }
    #expect(plan.decide(late, at: .request, now: 0).additions.map { $0.action } == [.delay(.fixed(.seconds(2)))])
  }
}
