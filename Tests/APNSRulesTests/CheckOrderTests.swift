import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// The order of the checks (Protocol.md, section 8.2): a request with two errors is rejected by the earlier check.
struct CheckOrderTests {
  /// A push that `strict` accepts, on a connection with earlier pushes, with options to break several checks at once.
  struct BrokenPush {
    var push = TestPush(mode: .strict)
    var device = SingleToken(token: TestPush.deviceToken, since: 0)
    var key = FakeSignature.key()
    /// How often the connection was used before, and with which team and topics.
    var earlierPushes = 0
    var earlierTeam = "MOCKTEAM01"
    var earlierTopics: [String]?
    var isRelated = true

    mutating func validate() -> Verdict {
      // A topic-specific key needs an earlier related key, unless the test breaks that relation.
      if key.topics != nil, isRelated {
        earlierTopics = key.topics
        key.relatedKeyID = "EARLIERKEY"
      }
      let earlier = FakeSignature.key("EARLIERKEY", team: earlierTeam, topics: earlierTopics)
      let token = push.token
      let authorization = push["authorization"]
      let fields = push.fields
      push.fields = TestPush().fields
      push.trustedKeys = [key, earlier]
      for age in 0..<earlierPushes {
        push.token = TestToken(
          kid: "EARLIERKEY", iss: earlierTeam, iat: "\(TestPush.nowSeconds - Int64(age))")
        _ = push.validate()
      }
      push.fields = fields
      push.token = token
      push["authorization"] = authorization
      push.tokens.append(device)
      return push.validate()
    }
  }

  /// How to break each check that applies to a push with a provider token, in the order of the checks.
  static let breakers: [(check: Check, reason: Reason, break: @Sendable (inout BrokenPush) -> Void)] = [
    (.method, .methodNotAllowed, { $0.push[":method"] = "GET" }),
    (.path, .badPath, { $0.push[":path"] = "/" }),
    (.duplicateHeaders, .duplicateHeaders, { $0.push.fields += [("x", "1"), ("x", "2")] }),
    (.credential, .missingProviderToken, { $0.push["authorization"] = nil }),
    (
      .certificate, .badCertificate,
      { $0.push.useCertificate(development: false, production: false) }
    ),
    (.tokenUpdatesBlocked, .tooManyProviderTokenUpdates, { $0.earlierPushes = 3 }),
    (.providerToken, .invalidProviderToken, { $0.push.token.signature = FakeSignature.wrong }),
    (
      .providerTokenAge, .expiredProviderToken,
      { $0.push.token.claims = #"{"iss":"MOCKTEAM01","iat":1600000000}"# }
    ),
    (.keyEnvironment, .badEnvironmentKeyInToken, { $0.key.environment = .production }),
    (
      .connectionTeam, .invalidProviderToken,
      {
        $0.earlierPushes = max($0.earlierPushes, 1)
        $0.earlierTeam = "OTHERTEAM1"
      }
    ),
    (
      .relatedKey, .unrelatedKeyIdInToken,
      {
        $0.earlierPushes = max($0.earlierPushes, 1)
        $0.earlierTopics = [TestPush.topic]
        $0.isRelated = false
      }
    ),
    (
      .tokenUpdates, .tooManyProviderTokenUpdates,
      { $0.earlierPushes = max($0.earlierPushes, 2) }
    ),
    (.apnsID, .badMessageId, { $0.push["apns-id"] = "1" }),
    (.expiration, .badExpirationDate, { $0.push["apns-expiration"] = "soon" }),
    (.priority, .badPriority, { $0.push["apns-priority"] = "7" }),
    (
      .collapseID, .badCollapseId,
      { $0.push["apns-collapse-id"] = String(repeating: "c", count: 65) }
    ),
    (.pushType, .invalidPushType, { $0.push["apns-push-type"] = "banner" }),
    (.deviceToken, .badDeviceToken, { $0.push[":path"] = "/3/device/abc" }),
    (.topicPresent, .missingTopic, { $0.push["apns-topic"] = nil }),
    (.topicForm, .badTopic, { $0.push["apns-topic"]? += " " }),
    (
      .topicPermitted, .topicDisallowed,
      {
        $0.push.authentication.certificate?.topics = ["com.example.other", "com.example.third"]
        $0.key.topics = ["com.example.other"]
      }
    ),
    (
      .topicForType, .invalidPushType,
      {
        $0.push["apns-topic"] = TestPush.topic + ".voip"
        $0.push.authentication.certificate?.topics.append(TestPush.topic + ".voip")
      }
    ),
    (
      .priorityForType, .badPriority,
      {
        $0.push["apns-push-type"] = "background"
        $0.push["apns-priority"] = "10"
      }
    ),
    (.payloadPresent, .payloadEmpty, { $0.push.body = [] }),
    (.payloadSize, .payloadTooLarge, { $0.push.body = [UInt8](repeating: 0x78, count: 4097) }),
    (.payloadSyntax, .payloadEmpty, { $0.push.body = [0x78] }),
    (.deviceEnvironment, .badDeviceToken, { $0.device.environment = .production }),
    (.deviceTopic, .deviceTokenNotForTopic, { $0.device.topic = "com.example.third" }),
    (.deviceExpired, .expiredToken, { $0.device.state = .expired }),
    (.deviceUnregistered, .unregistered, { $0.device.state = .unregistered }),
  ]

  static let withToken: [Check] = Check.allCases.filter {
    ![.certificate, .deviceRate, .headerListSize].contains($0) && !Check.ofChannelRequests.contains($0)
  }
  static let withCertificate: [Check] = withToken.filter {
    !(Check.credential.rawValue...Check.tokenUpdates.rawValue).contains($0.rawValue)
  }

  @Test func everyCheckFailsOnce() {
    #expect(
      Self.breakers.map(\.check)
        == Check.allCases.filter {
          ![.deviceRate, .headerListSize].contains($0) && !Check.ofChannelRequests.contains($0)
        })
  }

  /// Each check alone and with each later one, for pushes with a provider token.
  @Test(arguments: withToken) func tokenOrder(_ earlier: Check) {
    validate(earlier, among: Self.withToken) { _ in }
  }

  /// Each check alone and with each later one, for pushes with a certificate, which skip the checks of provider
  /// tokens.
  @Test(arguments: withCertificate) func certificateOrder(_ earlier: Check) {
    validate(earlier, among: Self.withCertificate) {
      $0.push.useCertificate(topics: [TestPush.topic, "com.example.third"])
    }
  }

  /// An invalid certificate fails after the checks that precede the credential and before all others.
  @Test(arguments: withCertificate) func badCertificateOrder(_ other: Check) throws {
    let breaker = try #require(Self.breakers.first { $0.check == other })
    var broken = BrokenPush()
    broken.push.useCertificate(development: false, production: false)
    breaker.break(&broken)
    #expect(broken.validate().failed == min(other, .certificate))
  }

  /// The token of 64 zeros fails after every check of the key, the team, the topic and the payload: `BadDeviceToken`
  /// means that these are right.
  @Test(arguments: withToken.filter { $0 < .deviceEnvironment && $0 != .deviceToken })
  func zeroTokenOrder(_ earlier: Check) throws {
    let breaker = try #require(Self.breakers.first { $0.check == earlier })
    var broken = BrokenPush()
    broken.push[":path"] = "/3/device/" + String(repeating: "0", count: 64)
    expect(broken.validate(), .badDeviceToken)
    broken = BrokenPush()
    broken.push[":path"] = "/3/device/" + String(repeating: "0", count: 64)
    breaker.break(&broken)
    expect(broken.validate(), breaker.reason)
  }

  private func validate(_ earlier: Check, among checks: [Check], prepare: (inout BrokenPush) -> Void) {
    guard let first = Self.breakers.first(where: { $0.check == earlier }) else { return }
    for second in Self.breakers where checks.contains(second.check) && second.check >= earlier {
      var broken = BrokenPush()
      prepare(&broken)
      // Break the earlier check last: where both set the same value, the earlier one stays broken.
      second.break(&broken)
      first.break(&broken)
      let verdict = broken.validate()
      #expect(verdict.failed == earlier, "\(earlier) and \(second.check): \(verdict.rule)")
      expect(verdict, first.reason)
    }
  }

  /// The requests of section 8.1, as far as one listener sees them.
  @Test(arguments: probes) func probe(_ row: Row) { expect(row.validate(), row.reason) }

  static let probes: [Row] = [
    Row.always("HEAD / without credentials", .methodNotAllowed) {
      $0[":method"] = "HEAD"
      $0[":path"] = "/"
      $0["authorization"] = nil
    },
    Row.always("short token, no credentials", .missingProviderToken) {
      $0[":path"] = "/3/device/aaaa"
      $0["authorization"] = nil
    },
    Row.always("malformed token, no credentials, no topic", .missingProviderToken) {
      $0[":path"] = "/3/device/aaa"
      $0["authorization"] = nil
      $0["apns-topic"] = nil
    },
    Row.always("empty token, no credentials", .missingProviderToken) {
      $0[":path"] = "/3/device/"
      $0["authorization"] = nil
    },
    Row.always("empty token, certificate", .missingDeviceToken) {
      $0[":path"] = "/3/device/"
      $0.useCertificate()
    },
    Row.always("unknown key and fake token", .invalidProviderToken) {
      $0.token = TestToken(kid: "UNKNOWNKEY")
      $0[":path"] = "/3/device/fake"
    },
    Row.always("credential accepted, no topic", .missingTopic) { $0["apns-topic"] = nil },
    Row.always("key of the other environment, token of the key's", .badEnvironmentKeyInToken) {
      $0.trustedKeys = [FakeSignature.key(environment: .production)]
      $0.tokens.append(SingleToken(token: TestPush.deviceToken, environment: .production, since: 0))
    },
    Row.always("channel management without credentials", .missingProviderToken) {
      $0[":method"] = "GET"
      $0[":path"] = "/1/apps/x/channels"
      $0["authorization"] = nil
    },
    Row.always("bad path without credentials", .badPath) {
      $0[":path"] = "/2/device/x"
      $0["authorization"] = nil
    },
  ].flatMap { $0 }
}
