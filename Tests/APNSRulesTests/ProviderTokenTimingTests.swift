import APNSMockRules
import APNSMockTestSupport
import Testing

/// The age of a provider token, and how often a connection may change it (Protocol.md, section 3.2). The clock
/// changes only when a test moves it.
struct ProviderTokenTimingTests {
  /// The age in milliseconds and the result in `apple`; both limits are inclusive, in whole seconds like `iat`.
  @Test(arguments: ages)
  func age(_ milliseconds: Int64, _ reason: Reason?) {
    var push = TestPush()
    push.now += milliseconds
    let verdict = push.validate()
    expect(verdict, reason)
    if reason != nil { #expect(verdict.failed == .providerTokenAge) }
    #expect(verdict.token?.signature == .valid)
  }

  static let ages: [(Int64, Reason?)] = [
    (0, nil), (3_600_999, nil), (3_601_000, .expiredProviderToken),
    (86_400_000 * 365, .expiredProviderToken),
    (-3_600_999, nil), (-3_601_000, .expiredProviderToken),
    (-86_400_000 * 365, .expiredProviderToken),
  ]

  /// A clock that was moved beyond the limits is named in the explanation, also of the next push on the connection.
  @Test(
    arguments: [
      (3_600_000, 3_601_000, nil), (3_601_000, 3_601_000, "60 min 1 s ahead of"),
      (-3_601_000, -3_601_000, "60 min 1 s behind"),
      (86_400_000 * 9, 3_601_000, "9 days ahead of"),
    ] as [(Int64, Int64, String?)])
  func explanationNamesAMovedClock(offset: Int64, age: Int64, words: String?) {
    var push = TestPush()
    push.clockOffset = offset
    push.now += age
    for _ in 1...2 {
      let explanation = push.explanation(of: push.validate())
      #expect(explanation.contains("apns-mock clock real") == (words != nil))
      #expect(explanation.contains("expired-jwt-403") == (words != nil))
      if let words { #expect(explanation.contains(words)) }
    }
    #expect(push.rulebook.rejectsNewTokens == (words != nil))
  }

  /// An accepted token expires on its connection, which then accepts no other token (Protocol.md, section 3.2,
  /// observed).
  @Test func tokenExpiresOnAnOpenConnection() {
    var push = TestPush()
    expect(push.validate(), nil)
    push.now += 3_600_000
    expect(push.validate(), nil)
    push.now += 1000
    expect(push.validate(), .expiredProviderToken)
    push.token = TestToken(iat: "\(push.now / 1000)")
    let verdict = push.validate()
    expect(verdict, .expiredProviderToken)
    #expect(verdict.failed == .providerTokenAge)
    #expect(verdict.token?.issuedAt == push.now)
    #expect(push.explanation(of: verdict).contains("expired_token_closes"))
    push["authorization"] = nil
    expect(push.validate(), .missingProviderToken)
    push["authorization"] = "bearer a.b.c"
    expect(push.validate(), .expiredProviderToken)
    // Another connection is unaffected.
    push.authentication = ConnectionAuthentication()
    push.token = TestToken(iat: "\(push.now / 1000)")
    expect(push.validate(), nil)
  }

  /// `expired_token_closes` overrides the mode's default, also on an open connection.
  @Test(arguments: RuleMode.allCases) func closingOnExpiryIsASetting(_ mode: RuleMode) {
    var push = TestPush(mode: mode)
    push.settings.expiredTokenCloses = true
    push.token = TestToken(iat: "1600000000")
    expect(push.validate(), .expiredProviderToken)
    push.token = TestToken()
    expect(push.validate(), .expiredProviderToken)
    push.settings.expiredTokenCloses = false
    expect(push.validate(), nil)
  }

  @Test func maximumAgeIsASetting() {
    var push = TestPush()
    push.settings.tokenMaxAge = .seconds(30)
    push.now += 30_000
    expect(push.validate(), nil)
    push.now += 1000
    expect(push.validate(), .expiredProviderToken)
  }

  /// An expired token neither binds the connection nor counts as an update.
  @Test func expiredTokenDoesNotCount() {
    var push = TestPush()
    push.settings.expiredTokenCloses = false
    push.trustedKeys = [FakeSignature.key(), FakeSignature.key("OTHERKEY01", team: "OTHERTEAM1")]
    push.token = TestToken(kid: "OTHERKEY01", iss: "OTHERTEAM1", iat: "1699990000")
    expect(push.validate(), .expiredProviderToken)
    #expect(!push.authentication.providerTokenAccepted)
    push.token = TestToken()
    expect(push.validate(), nil)
    #expect(push.authentication.providerTokenAccepted)
  }

  /// One push on a connection: the second at which it arrives, the `iat` of its token as an offset, and the result.
  struct Step: Sendable {
    var second: Int64
    var token: Int64
    var reason: Reason?

    init(_ second: Int64, _ token: Int64, _ reason: Reason? = nil) {
      self.second = second
      self.token = token
      self.reason = reason
    }
  }

  struct Timeline: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var steps: [Step]
    var settings = APNSSettings()

    init(_ name: String, _ steps: [Step], _ change: (inout APNSSettings) -> Void = { _ in }) {
      testDescription = name
      self.steps = steps
      change(&settings)
    }
  }

  @Test(arguments: timelines) func updates(_ timeline: Timeline) {
    var push = TestPush()
    push.settings = timeline.settings
    for step in timeline.steps {
      push.now = (TestPush.nowSeconds + step.second) * 1000
      push.token = TestToken(iat: "\(TestPush.nowSeconds + step.token)")
      let verdict = push.validate()
      #expect(
        verdict.reason == step.reason, "at \(step.second) s, token \(step.token): \(verdict.rule)"
      )
    }
  }

  private static let tooMany = Reason.tooManyProviderTokenUpdates

  static let timelines: [Timeline] = [
    Timeline("one token for an hour", [Step(0, 0), Step(1200, 0), Step(3600, 0)]),
    Timeline(
      "a change every 20 minutes exactly",
      [Step(0, 0), Step(1200, 1), Step(2400, 2), Step(3600, 3), Step(4800, 1300)]),
    Timeline("one quick change is free", [Step(0, 0), Step(10, 1), Step(20, 0), Step(30, 1)]),
    Timeline(
      "the second early update blocks updates until 20 minutes after the first",
      [
        Step(0, 0), Step(10, 1), Step(20, 2, tooMany), Step(21, 0, tooMany), Step(22, 1, tooMany),
        Step(23, 2, tooMany),
        Step(1209, 1, tooMany), Step(1210, 1), Step(1211, 0),
      ]),
    Timeline(
      "the token that caused the block is accepted when it ends",
      [
        Step(0, 0), Step(10, 1), Step(20, 2, tooMany), Step(1210, 2), Step(1211, 3),
        Step(1212, 4, tooMany),
      ]),
    Timeline(
      "a slow change gives the free one back",
      [Step(0, 0), Step(1, 1), Step(1201, 2), Step(1202, 3), Step(1203, 4, tooMany)]),
    Timeline(
      "time counts from the change before, not from the first",
      [Step(0, 0), Step(1199, 1), Step(2398, 2, tooMany), Step(2399, 2)]),
    Timeline(
      "going back is no change",
      [Step(0, 0), Step(1, 1), Step(2, 0), Step(3, 1), Step(4, 0), Step(1201, 2), Step(1202, 0)]),
    Timeline("none free", [Step(0, 0), Step(1199, 1, tooMany), Step(1200, 1)]) {
      $0.freeTokenUpdates = 0
    },
    Timeline(
      "three free",
      [Step(0, 0), Step(1, 1), Step(2, 2), Step(3, 3), Step(4, 4, tooMany), Step(1203, 4)]
    ) {
      $0.freeTokenUpdates = 3
    },
    Timeline(
      "an interval of a minute",
      [Step(0, 0), Step(60, 1), Step(61, 2), Step(62, 3, tooMany), Step(121, 3)]
    ) {
      $0.tokenUpdateInterval = .seconds(60)
    },
    Timeline("no interval", [Step(0, 0), Step(0, 1), Step(0, 2), Step(0, 3)]) {
      $0.tokenUpdateInterval = .zero
    },
    Timeline(
      "the block ends after 20 minutes even if the clock is set back",
      [
        Step(3000, 3000), Step(3010, 3001), Step(3020, 3002, tooMany), Step(0, 0, tooMany),
        Step(1199, 0, tooMany),
        Step(1200, 0),
      ]),
  ]

  /// Two keys of one team count together, and the same `iat` with another key is another token.
  @Test func updatesOfAllKeysCountTogether() {
    var push = TestPush()
    push.trustedKeys = [FakeSignature.key(), FakeSignature.key("OTHERKEY01")]
    expect(push.validate(), nil)
    push.token = TestToken(kid: "OTHERKEY01")
    expect(push.validate(), nil)
    push.token = TestToken(iat: "1699999999")
    expect(push.validate(), Self.tooMany)
  }

  /// Another signature over the same claims is the same token: ECDSA signatures differ each time.
  @Test func sameClaimsAreTheSameToken() {
    var push = TestPush()
    for byte in UInt8(0)..<20 {
      push.token.signature = [UInt8](repeating: byte, count: 63) + [1]
      expect(push.validate(), nil)
    }
  }

  /// The block hides invalid signatures (observed), but not a missing token; another connection is unaffected.
  @Test func blockedUpdatesSkipSignatureChecks() {
    var push = TestPush()
    for iat in ["1700000000", "1699999999", "1699999998"] {
      push.token = TestToken(iat: iat)
      _ = push.validate()
    }
    push.token.signature = FakeSignature.wrong
    let verdict = push.validate()
    expect(verdict, Self.tooMany)
    #expect(verdict.failed == .tokenUpdatesBlocked)
    #expect(verdict.token?.keyID == "MOCKKEY001")
    #expect(verdict.token?.signature == .unchecked)
    push["authorization"] = "Basic dXNlcjpwYXNz"
    expect(push.validate(), Self.tooMany)
    push["authorization"] = nil
    expect(push.validate(), .missingProviderToken)
    push.authentication = ConnectionAuthentication()
    push.token = TestToken()
    expect(push.validate(), nil)
  }

  /// `lenient` ignores a block that began before the mode changed.
  @Test func lenientModeEndsTheBlock() {
    var push = TestPush()
    for iat in ["1700000000", "1699999999", "1699999998"] {
      push.token = TestToken(iat: iat)
      _ = push.validate()
    }
    expect(push.validate(), Self.tooMany)
    push.mode = .lenient
    expect(push.validate(), nil)
  }

  /// A token counts as used even if a later check rejects the push.
  @Test func tokenUpdateCountsForRejectedPushes() {
    var push = TestPush()
    push["apns-topic"] = nil
    for iat in ["1700000000", "1699999999"] {
      push.token = TestToken(iat: iat)
      expect(push.validate(), .missingTopic)
    }
    push.token = TestToken(iat: "1699999998")
    expect(push.validate(), Self.tooMany)
  }
}
