import APNSMockRules
import APNSMockTestSupport
import Testing

/// Kinds of keys, and what the first push binds a connection to (Protocol.md, section 3.3).
struct KeyBindingTests {
  static let keys: [TrustedKey] = [
    FakeSignature.key("TEAMKEY001"),
    FakeSignature.key("TEAMKEY002", environment: .sandbox),
    FakeSignature.key("TEAMKEY003", environment: .production),
    FakeSignature.key(
      "TOPICKEY01", environment: .sandbox, topics: ["com.example.app"], related: "TOPICKEY02"),
    FakeSignature.key(
      "TOPICKEY02", environment: .sandbox, topics: ["com.example.app", "com.example.other"]),
    FakeSignature.key("TOPICKEY03", environment: .sandbox, topics: ["com.example.app"]),
    FakeSignature.key("TOPICKEY04", environment: .production, topics: ["com.example.app"]),
    FakeSignature.key("TOPICKEY05", environment: .sandbox, topics: ["com.example.app"], related: "TOPICKEY02"),
    FakeSignature.key("OTHERTEAM1", team: "OTHERTEAM9"),
    FakeSignature.key("OTHERTOPIC", team: "OTHERTEAM9", topics: ["com.example.app"]),
  ]

  func connection(_ settings: APNSSettings = APNSSettings()) -> TestPush {
    var push = TestPush()
    push.settings = settings
    push.trustedKeys = Self.keys
    return push
  }

  static func token(_ kid: String) -> TestToken {
    TestToken(kid: kid, iss: kid.hasPrefix("OTHER") ? "OTHERTEAM9" : "MOCKTEAM01")
  }

  /// The first key, the second key on the same connection, and the result for the second.
  @Test(arguments: secondKeys)
  func secondKey(_ first: String, _ second: String, _ reason: Reason?) {
    var push = connection()
    push.token = Self.token(first)
    expect(push.validate(), nil)
    push.token = Self.token(second)
    expect(push.validate(), reason)
    // The first key stays valid in either case.
    push.token = Self.token(first)
    expect(push.validate(), nil)
  }

  static let secondKeys: [(String, String, Reason?)] = [
    ("TEAMKEY001", "TEAMKEY001", nil),
    ("TEAMKEY001", "TEAMKEY002", nil),
    ("TEAMKEY002", "TEAMKEY001", nil),
    ("TEAMKEY001", "TEAMKEY003", .badEnvironmentKeyInToken),
    ("TEAMKEY001", "OTHERTEAM1", .invalidProviderToken),
    ("OTHERTEAM1", "TEAMKEY001", .invalidProviderToken),
    ("TEAMKEY001", "TOPICKEY01", .unrelatedKeyIdInToken),
    ("TOPICKEY01", "TEAMKEY001", .unrelatedKeyIdInToken),
    ("TOPICKEY01", "TEAMKEY002", .unrelatedKeyIdInToken),
    ("TOPICKEY01", "TOPICKEY01", nil),
    ("TOPICKEY01", "TOPICKEY02", nil),
    ("TOPICKEY02", "TOPICKEY01", nil),
    ("TOPICKEY01", "TOPICKEY03", .unrelatedKeyIdInToken),
    ("TOPICKEY02", "TOPICKEY03", .unrelatedKeyIdInToken),
    ("TOPICKEY01", "TOPICKEY04", .badEnvironmentKeyInToken),
    ("TOPICKEY01", "OTHERTOPIC", .invalidProviderToken),
    ("TOPICKEY01", "OTHERTEAM1", .invalidProviderToken),
  ]

  /// An app that the team gets after the first push of a connection is an error there until a new connection (documented),
  /// whether a fixture or a key names it.
  @Test(arguments: [true, false]) func laterApp(isOfFixture: Bool) {
    var push = TestPush()
    push.requiresKnownTopics = true
    push.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01"))
    expect(push.validate(), nil)
    func add(_ push: inout TestPush) {
      if isOfFixture {
        push.apps.set(AppTable.App(bundleID: "com.example.later", teamID: "MOCKTEAM01"))
      } else {
        var key = FakeSignature.key()
        key.teamTopics = ["com.example.later.voip"]
        push.trustedKeys = [key]
      }
    }
    push["apns-topic"] = "com.example.later"
    expect(push.validate(), .topicDisallowed)
    add(&push)
    let verdict = push.validate()
    expect(verdict, .topicDisallowed)
    #expect(verdict.rule.contains("open a new connection"))
    push["apns-topic"] = TestPush.topic
    expect(push.validate(), nil)
    push["apns-topic"] = "com.example.later"
    push.authentication = ConnectionAuthentication()
    expect(push.validate(), nil)
    // Topics that need not be known are not bound.
    push.requiresKnownTopics = false
    push["apns-topic"] = "com.example.other"
    expect(push.validate(), nil)
  }

  @Test func laterAppOfABroadcast() {
    var push = TestPush()
    push.requiresKnownTopics = true
    push.apps.set(AppTable.App(bundleID: "com.example.first", teamID: "MOCKTEAM01"))
    push["apns-topic"] = "com.example.first"
    expect(push.validate(), nil)
    push.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01", hasBroadcast: true))
    push.useBroadcast()
    #expect(push.validate().reason == .topicMismatch)
    push.authentication = ConnectionAuthentication()
    #expect(push.validate().reason == nil)
  }

  /// A connection is bound to its first key, not to its last.
  @Test func relatedKeyDoesNotRebind() {
    var settings = APNSSettings()
    settings.freeTokenUpdates = 10
    var push = connection(settings)
    for kid in ["TOPICKEY01", "TOPICKEY02"] {
      push.token = Self.token(kid)
      expect(push.validate(), nil)
    }
    // Related to the last key, but not to the first.
    push.token = Self.token("TOPICKEY05")
    expect(push.validate(), .unrelatedKeyIdInToken)
  }

  /// The key, the server's environment and whether the key is accepted, with both spellings of the reason.
  @Test(arguments: [
    ("TEAMKEY001", PushEnvironment.sandbox, true), ("TEAMKEY001", .production, true),
    ("TEAMKEY002", .sandbox, true), ("TEAMKEY002", .production, false),
    ("TEAMKEY003", .sandbox, false), ("TEAMKEY003", .production, true),
  ])
  func environment(_ kid: String, _ environment: PushEnvironment, _ isGood: Bool) {
    for reason in [Reason.badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken] {
      var settings = APNSSettings()
      settings.environmentKeyReason = reason
      var push = connection(settings)
      push.environment = environment
      push.token = Self.token(kid)
      let verdict = push.validate()
      expect(verdict, isGood ? nil : reason)
      #expect(push.authentication.providerTokenAccepted == isGood)
    }
  }

  /// A key rejected for its environment does not bind the connection.
  @Test func refusedKeyDoesNotBind() {
    var push = connection()
    push.token = Self.token("TEAMKEY003")
    expect(push.validate(), .badEnvironmentKeyInToken)
    push.token = Self.token("OTHERTEAM1")
    expect(push.validate(), nil)
  }

  /// The topic, the push type and the result for a topic-specific key; a listed topic includes the suffixes of push
  /// types.
  @Test(arguments: topics)
  func topicKey(_ topic: String, _ type: String, _ reason: Reason?) {
    var push = connection()
    push.token = Self.token("TOPICKEY01")
    push["apns-topic"] = topic
    push["apns-push-type"] = type
    let verdict = push.validate()
    expect(verdict, reason)
    if reason != nil { #expect(verdict.failed == .topicPermitted) }
  }

  static let topics: [(String, String, Reason?)] = [
    ("com.example.app", "alert", nil), ("com.example.app.voip", "voip", nil),
    ("com.example.app.push-type.liveactivity", "liveactivity", nil),
    ("com.example.other", "alert", .topicDisallowed),
    ("com.example.other.voip", "voip", .topicDisallowed),
    ("com.example.app.extension", "alert", .topicDisallowed),
    ("com.example.ap", "alert", .topicDisallowed),
    ("Com.Example.App", "alert", .topicDisallowed),
  ]

  /// Each token's topics are those of its own key, not of the connection's first key.
  @Test func topicsOfTheSecondKey() {
    var push = connection()
    push.token = Self.token("TOPICKEY01")
    expect(push.validate(), nil)
    push["apns-topic"] = "com.example.other"
    expect(push.validate(), .topicDisallowed)
    push.token = Self.token("TOPICKEY02")
    expect(push.validate(), nil)
  }

  /// A key whose list of topics changes is checked against the new list.
  @Test func changedTopics() {
    var push = connection()
    push.token = Self.token("TOPICKEY03")
    expect(push.validate(), nil)
    push.trustedKeys = [
      FakeSignature.key("TOPICKEY03", environment: .sandbox, topics: ["com.example.other"])
    ]
    expect(push.validate(), .topicDisallowed)
  }
}
