import APNSMockRules
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// Broadcasts and channel management (Protocol.md, section 10).
struct ChannelRulesTests {
  // MARK: - Accepted

  static let accepted:
    [(name: String, status: Int, operation: ChannelRequest.Operation, change: @Sendable (inout TestPush) -> Void)] = [
      ("broadcast", 200, .broadcast, { $0.useBroadcast() }),
      ("create", 201, .create, { $0.useChannels("POST") }),
      ("read", 200, .read, { $0.useChannels("GET") }),
      ("delete", 204, .delete, { $0.useChannels("DELETE") }),
      ("list", 200, .list, { $0.useChannelList() }),
    ]

  @Test(arguments: accepted.indices, RuleMode.allCases) func acceptedRequest(_ index: Int, _ mode: RuleMode) throws {
    let row = Self.accepted[index]
    for usesCertificate in [false, true] {
      var push = TestPush(mode: mode)
      if usesCertificate { push.useCertificate() }
      row.change(&push)
      let verdict = push.validate()
      expect(verdict, nil, accepted: row.status)
      let request = try #require(verdict.channelRequest)
      #expect(request.operation == row.operation)
      #expect(request.bundleID == TestPush.topic)
      #expect(request.channelID == (row.operation == .create || row.operation == .list ? nil : TestPush.storingChannel))
      #expect(request.storagePolicy == (row.operation == .list ? nil : .newest))
      // A record keeps the status.
      #expect(PackedVerdict(verdict).verdict.status == row.status)
      #expect(verdict.facts.topic.map(push.request.headers.string) == TestPush.topic)
      #expect(!verdict.facts.topicIsFromCertificate)
      #expect(verdict.facts.payloadLimit == 5120)
    }
  }

  @Test(arguments: accepted.indices) func pushesHaveNoChannelRequest(_ index: Int) {
    var push = TestPush()
    var verdict = push.validate()
    #expect(verdict.channelRequest == nil)
    Self.accepted[index].change(&push)
    push.rulebook.validate(
      push.request, authentication: &push.authentication, keys: push.keys, now: push.now, isRegistered: { _ in false },
      findChannel: { _, _ in .newest }, into: &verdict)
    #expect(verdict.status == Self.accepted[index].status)
    verdict.rejectNewChannel(over: .ofApp(10_000))
    #expect(verdict.reason == .cannotCreateChannelConfig && verdict.channelRequest == nil)
  }

  // MARK: - Tables

  @Test(arguments: broadcasts + channels + apps) func row(_ row: Row) {
    let verdict = row.validate()
    #expect(verdict.reason == row.reason, "\(verdict.rule)")
    if let reason = row.reason {
      #expect(verdict.status == reason.status)
      #expect(verdict.channelRequest == nil)
      #expect(verdict.checks.last?.ok == false)
    } else {
      #expect([200, 201, 204].contains(verdict.status))
    }
  }

  /// Rows for broadcasts.
  static func broadcast(
    _ name: String, _ reason: Reason?, _ change: @escaping @Sendable (inout TestPush) -> Void
  ) -> [Row] {
    Row.always("broadcast, \(name)", reason) {
      $0.useBroadcast()
      change(&$0)
    }
  }

  static let broadcasts: [Row] = [
    // Method and path
    broadcast("GET", .methodNotAllowed) { $0[":method"] = "GET" },
    broadcast("GET without credential", .methodNotAllowed) {
      $0[":method"] = "GET"
      $0["authorization"] = nil
    },
    broadcast("no app", .badPath) { $0[":path"] = "/4/broadcasts/apps/" },
    broadcast("a path below the app", .badPath) { $0[":path"] = "/4/broadcasts/apps/com.example.app/x" },
    broadcast("no apps", .badPath) { $0[":path"] = "/4/broadcasts/com.example.app" },
    broadcast("repeated channel", .duplicateHeaders) { $0.fields.append(("apns-channel-id", TestPush.otherChannel)) },
    // Credential
    broadcast("no credential", .missingProviderToken) { $0["authorization"] = nil },
    broadcast("invalid provider token", .invalidProviderToken) { $0.token.signature = FakeSignature.wrong },
    broadcast("bad certificate", .badCertificate) { $0.useCertificate(development: false, production: false) },
    // Request id
    broadcast("request id", nil) { $0["apns-request-id"] = "12345678-90ab-cdef-1234-567890abcdef" },
    broadcast("request id in upper case", nil) { $0["apns-request-id"] = "12345678-90AB-CDEF-1234-567890ABCDEF" },
    broadcast("no id", nil) { $0["apns-id"] = nil },
    broadcast("bad request id", .badMessageId) { $0["apns-request-id"] = "1" },
    broadcast("bad id", .badMessageId) { $0["apns-id"] = "1" },
    broadcast("bad id beside a request id", .badMessageId) {
      $0["apns-id"] = "1"
      $0["apns-request-id"] = "12345678-90ab-cdef-1234-567890abcdef"
    },
    broadcast("empty request id", nil) { $0["apns-request-id"] = "" },
    // Channel
    broadcast("no channel", .missingChannelId) { $0["apns-channel-id"] = nil },
    broadcast("empty channel", .missingChannelId) { $0["apns-channel-id"] = "" },
    Row.each(
      [
        "A=", "AAA", "AAAA=", "A===", "AA-_", "AA AA===", "dHN0LXNyY2gtY2hubA%3D%3D",
        String(repeating: "A", count: 260),
      ],
      "broadcast, channel", .badChannelId
    ) {
      $0.useBroadcast()
      $0["apns-channel-id"] = $1
    },
    Row.each(
      ["AAAA", "AAA=", "AA==", "+/+/", String(repeating: "A", count: 256)], "broadcast, channel", .channelNotRegistered
    ) {
      $0.useBroadcast()
      $0["apns-channel-id"] = $1
    },
    broadcast("channel of another app", .channelNotRegistered) { $0[":path"] = "/4/broadcasts/apps/com.example.other" },
    // Push type
    broadcast("no push type", .missingPushType) { $0["apns-push-type"] = nil },
    broadcast("empty push type", .missingPushType) { $0["apns-push-type"] = "" },
    broadcast("another push type", .invalidPushType) { $0["apns-push-type"] = "alert" },
    // Expiration
    broadcast("no expiration", .badExpirationDate) { $0["apns-expiration"] = nil },
    broadcast("empty expiration", .badExpirationDate) { $0["apns-expiration"] = "" },
    broadcast("expiration not a number", .badExpirationDate) { $0["apns-expiration"] = "soon" },
    broadcast("negative expiration", .badExpirationDate) { $0["apns-expiration"] = "-1" },
    broadcast("expiration with storage", nil) { $0["apns-expiration"] = "1700003600" },
    Row.always("broadcast without storage, expiration 0", nil) { $0.useBroadcast(to: TestPush.otherChannel) },
    Row.always("broadcast without storage, with expiration", .badExpirationDate) {
      $0.useBroadcast(to: TestPush.otherChannel)
      $0["apns-expiration"] = "1700003600"
    },
    // Priority
    Row.each(["10", "5", "1"], "broadcast, priority", nil) {
      $0.useBroadcast()
      $0["apns-priority"] = $1
    },
    broadcast("no priority", nil) { $0["apns-priority"] = nil },
    Row.each(["", "0", "9", "high"], "broadcast, priority", .badPriority) {
      $0.useBroadcast()
      $0["apns-priority"] = $1
    },
    // Ignored headers
    broadcast("a topic with the suffix", nil) { $0["apns-topic"] = "com.example.app.push-type.liveactivity" },
    broadcast("another topic", nil) { $0["apns-topic"] = "com.example.other" },
    broadcast("a long collapse id", nil) { $0["apns-collapse-id"] = String(repeating: "c", count: 65) },
    // Body
    broadcast("no body", .payloadEmpty) { $0.body = [] },
    broadcast("5120 bytes", nil) { $0.body = json(of: 5120) },
    broadcast("5121 bytes", .payloadTooLarge) { $0.body = json(of: 5121) },
    ModeTableTests.modes("broadcast, body not JSON", apple: nil, strict: .payloadEmpty, lenient: nil) {
      $0.useBroadcast()
      $0.body = Array("aps".utf8)
    },
    ["Liveactivity", "LiveActivity", "LIVEACTIVITY"].flatMap { type in
      ModeTableTests.modes("broadcast, push type \(type)", apple: nil, strict: .invalidPushType, lenient: nil) {
        $0.useBroadcast()
        $0["apns-push-type"] = type
      }
    },
  ].flatMap { $0 }

  static func json(of size: Int) -> [UInt8] { Array("\"\(String(repeating: "x", count: size - 2))\"".utf8) }

  /// Rows for the body of a new channel.
  static func create(_ json: String, _ reason: Reason?) -> [Row] {
    Row.always("create \(json)", reason) { $0.useChannels("POST", json) }
  }

  static let channels: [Row] = [
    Row.each(["PUT", "HEAD", "PATCH", "get"], "channels", .methodNotAllowed) { $0.useChannels($1) },
    Row.each(["POST", "DELETE", "HEAD"], "all channels", .methodNotAllowed) {
      $0.useChannelList()
      $0[":method"] = $1
    },
    Row.each(
      [
        "/1/apps//channels", "/1/apps/channels", "/1/apps/com.example.app", "/1/apps/com.example.app/channels/",
        "/1/apps/a/b/channels",
      ],
      "channels", .badPath
    ) {
      $0.useChannels("GET")
      $0[":path"] = $1
    },
    // The form of APNSwift 6.4.0.
    Row.always("channel id in the path", .badPath) {
      $0.useChannels("GET")
      $0[":path"]? += "/" + TestPush.storingChannel
    },
    Row.each(["GET", "DELETE"], "channels without credential", .missingProviderToken) {
      $0.useChannels($1)
      $0["authorization"] = nil
    },
    Row.always("all channels without credential", .missingProviderToken) {
      $0.useChannelList()
      $0["authorization"] = nil
    },
    Row.each(["GET", "DELETE"], "no channel id", .missingChannelId) {
      $0.useChannels($1)
      $0["apns-channel-id"] = nil
    },
    Row.each(["GET", "DELETE"], "bad channel id", .badChannelId) {
      $0.useChannels($1)
      $0["apns-channel-id"] = "A="
    },
    Row.each(["GET", "DELETE"], "unknown channel id", .channelNotRegistered) {
      $0.useChannels($1)
      $0["apns-channel-id"] = "AAAA"
    },
    Row.each(["GET", "DELETE", "POST"], "bad request id", .badMessageId) {
      $0.useChannels($1)
      $0["apns-request-id"] = "x"
    },
    // @parse/node-apn before 6.4.1 sent a body, and sends a stray priority.
    Row.each(["GET", "DELETE"], "body and stray headers", nil) {
      $0.useChannels($1)
      $0["apns-priority"] = "7"
      $0["apns-expiration"] = "soon"
      $0["apns-push-type"] = "alert"
      $0.body = Array("{}".utf8)
    },
    Row.always("create with stray headers", nil) {
      $0.useChannels("POST")
      $0["apns-priority"] = "7"
      $0["apns-push-type"] = "alert"
      $0["apns-channel-id"] = "?"
    },
    // Body
    create(#"{"message-storage-policy":0,"push-type":"LiveActivity"}"#, nil),
    create(#" { "push-type" : "LiveActivity" , "message-storage-policy" : 1 } "#, nil),
    create("", .payloadEmpty),
    create("{", .badRequestPayload), create("[]", .badRequestPayload), create("1", .badRequestPayload),
    create(#"{"message-storage-policy":1,"push-type":"LiveActivity"}x"#, .badRequestPayload),
    create(#"{"message-storage-policy":1,"push-type":"LiveActivity","name":"x"}"#, .badRequestParams),
    create(#"{"messageStoragePolicy":1,"push-type":"LiveActivity"}"#, .badRequestParams),
    create(#"{"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":null,"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":2,"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":true,"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":"2","push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":1.0,"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
    create(#"{"message-storage-policy":1}"#, .missingPushType),
    create(#"{"message-storage-policy":1,"push-type":null}"#, .missingPushType),
    create(#"{"message-storage-policy":1,"push-type":"alert"}"#, .invalidPushType),
    create(#"{"message-storage-policy":1,"push-type":""}"#, .invalidPushType),
    create(#"{"message-storage-policy":1,"push-type":1}"#, .invalidPushType),
    create("{}", .missingChannelQueueSize),
    create(#"{"a":"\#(String(repeating: "x", count: 5120 - 8))"}"#, .badRequestParams),
    create(#"{"a":"\#(String(repeating: "x", count: 5121 - 8))"}"#, .payloadTooLarge),
    ["\"0\"", "\"1\""].flatMap { policy in
      ModeTableTests.modes("create, policy \(policy)", apple: nil, strict: .badRequestParams, lenient: nil) {
        $0.useChannels("POST", #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
      }
    },
    ["liveactivity", "Liveactivity"].flatMap { type in
      ModeTableTests.modes("create, type \(type)", apple: nil, strict: .invalidPushType, lenient: nil) {
        $0.useChannels("POST", #"{"message-storage-policy":1,"push-type":"\#(type)"}"#)
      }
    },
  ].flatMap { $0 }

  // MARK: - Apps

  private static let known = AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01", hasBroadcast: true)

  /// Rows for each operation.
  private static func each(
    _ name: String, _ reason: Reason?, _ change: @escaping @Sendable (inout TestPush) -> Void
  ) -> [Row] {
    accepted.flatMap { request in
      Row.always("\(request.name), \(name)", reason) {
        request.change(&$0)
        change(&$0)
      }
    }
  }

  private static func inPath(_ bundleID: String) -> @Sendable (inout TestPush) -> Void {
    { $0[":path"] = $0[":path"]?.replacing(TestPush.topic, with: bundleID) }
  }

  static let apps: [Row] = [
    each("app of the team", nil) { $0.apps.set(known) },
    each("app of the team, topics known", nil) {
      $0.apps.set(known)
      $0.requiresKnownTopics = true
    },
    each("app without the capability", .featureNotEnabled) {
      $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01"))
    },
    each("app of another team", .topicMismatch) {
      $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "OTHERTEAM1", hasBroadcast: true))
    },
    each("unknown app, topics known", .topicMismatch) { $0.requiresKnownTopics = true },
    each("unknown app with a certificate, topics known", .topicMismatch) {
      $0.useCertificate()
      $0.requiresKnownTopics = true
    },
    each("app of any team with a certificate, topics known", nil) {
      $0.useCertificate()
      $0.requiresKnownTopics = true
      $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "OTHERTEAM1", hasBroadcast: true))
    },
    each("app known by the team topics of another key, topics known", nil) {
      $0.requiresKnownTopics = true
      var other = FakeSignature.key("OTHERKEY01")
      other.teamTopics = [TestPush.topic + ".voip"]
      $0.trustedKeys.append(other)
    },
    each("app not of the certificate", .topicMismatch) { $0.useCertificate(topics: ["com.example.other"]) },
    each("app not of the topic-specific key", .topicMismatch) {
      $0.trustedKeys = [FakeSignature.key(topics: ["com.example.other"])]
    },
    each("app of the topic-specific key", nil) { $0.trustedKeys = [FakeSignature.key(topics: [TestPush.topic])] },
    each("suffix", .topicDisallowed, inPath("com.example.app.push-type.liveactivity")),
    each("suffix with a certificate", .topicDisallowed) {
      $0.useCertificate()
      inPath("com.example.app.voip")(&$0)
    },
    each("suffix and no capability", .topicDisallowed) {
      $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01"))
      inPath("com.example.app.voip")(&$0)
    },
    each("capitals with a certificate", .topicMismatch) {
      $0.useCertificate()
      inPath("com.example.App")(&$0)
    },
    each("spaces", .topicDisallowed, inPath("com example")),
    each("other characters", .topicDisallowed, inPath("com.example!app")),
    each("placeholder", .topicDisallowed, inPath("<com.example.app>")),
    each("too long", .topicDisallowed, inPath(String(repeating: "a", count: 156))),
    ModeTableTests.modes("create with a team id", apple: .topicDisallowed, strict: .topicDisallowed, lenient: nil) {
      $0.useChannels("POST")
      inPath("MOCKTEAM01.com.example.app")(&$0)
    },
  ].flatMap { $0 }

  /// `--topics known` for pushes.
  @Test(
    arguments: [
      Row.always("unknown app", .topicDisallowed) { _ in },
      Row.always("unknown app with a certificate", .topicDisallowed) { $0.useCertificate() },
      Row.always("app of the team", nil) { $0.apps.set(known) },
      Row.always("app without the capability", nil) {
        $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01"))
      },
      Row.always("app of another team", .topicDisallowed) {
        $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "OTHERTEAM1"))
      },
      Row.always("app with a certificate", nil) {
        $0.useCertificate()
        $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "OTHERTEAM1"))
      },
      Row.always("suffix of a push type", nil) {
        $0.apps.set(known)
        $0.use(.voip)
      },
      Row.always("team topic", nil) {
        var key = FakeSignature.key()
        key.teamTopics = [TestPush.topic]
        $0.trustedKeys = [key]
      },
      Row.always("team topic of another team", .topicDisallowed) {
        var key = FakeSignature.key("OTHERKEY01", team: "OTHERTEAM1")
        key.teamTopics = [TestPush.topic]
        $0.trustedKeys.append(key)
      },
      Row.always("topic-specific key without the app", .topicDisallowed) {
        $0.trustedKeys = [FakeSignature.key(topics: [TestPush.topic])]
      },
    ].flatMap { $0 })
  func knownTopics(_ row: Row) {
    var push = TestPush(mode: row.mode)
    push.requiresKnownTopics = true
    row.change(&push)
    expect(push.validate(), row.reason)
    // Without the flag, only the credential limits topics.
    push.requiresKnownTopics = false
    expect(push.validate(), nil)
  }

  // MARK: - Order

  /// How to break each check of a broadcast, in the order of the checks.
  static let broadcastBreakers: [(Check, Reason, @Sendable (inout TestPush) -> Void)] = [
    (.method, .methodNotAllowed, { $0[":method"] = "GET" }),
    (.path, .badPath, { $0[":path"] = "/4/broadcasts/x" }),
    (.duplicateHeaders, .duplicateHeaders, { $0.fields += [("x", "1"), ("x", "2")] }),
    (.credential, .missingProviderToken, { $0["authorization"] = nil }),
    (
      .appPermitted, .topicMismatch,
      { $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "OTHERTEAM1", hasBroadcast: false)) }
    ),
    (.bundleID, .topicDisallowed, inPath("com.example.app.voip")),
    (
      .broadcastCapability, .featureNotEnabled,
      { if $0.apps.count == 0 { $0.apps.set(AppTable.App(bundleID: TestPush.topic, teamID: "MOCKTEAM01")) } }
    ),
    (.requestID, .badMessageId, { $0["apns-request-id"] = "1" }),
    (.channelID, .missingChannelId, { $0["apns-channel-id"] = nil }),
    (.broadcastPushType, .missingPushType, { $0["apns-push-type"] = nil }),
    (.broadcastPriority, .badPriority, { $0["apns-priority"] = "7" }),
    (.channelRegistered, .channelNotRegistered, { $0.channels = [:] }),
    (.broadcastExpiration, .badExpirationDate, { $0["apns-expiration"] = nil }),
    (.payloadPresent, .payloadEmpty, { $0.body = [] }),
    (.payloadSize, .payloadTooLarge, { $0.body = [UInt8](repeating: 0x78, count: 5121) }),
    (.payloadSyntax, .payloadEmpty, { if $0.body.first == 0x7B { $0.body = [0x78] } }),
  ]

  /// How to break each check of a new channel, in the order of the checks.
  static let creationBreakers: [(Check, Reason, @Sendable (inout TestPush) -> Void)] =
    broadcastBreakers.filter { $0.0 >= .duplicateHeaders && $0.0 <= .requestID } + bodyBreakers

  private static let bodyBreakers: [(Check, Reason, @Sendable (inout TestPush) -> Void)] = [
    (.payloadPresent, .payloadEmpty, { $0.body = [] }),
    (.payloadSize, .payloadTooLarge, { $0.body = [UInt8](repeating: 0x78, count: 5121) }),
    (.payloadSyntax, .badRequestPayload, { if $0.body.first == 0x7B { $0.body = [0x78] } }),
    (.requestMembers, .badRequestParams, { $0.replace("{", by: #"{"x":1,"#) }),
    (.storagePolicy, .missingChannelQueueSize, { $0.replace(":1", by: ":2") }),
    (.channelPushType, .missingPushType, { $0.replace(#""LiveActivity""#, by: "null") }),
  ]

  /// Each check alone and with each later one.
  @Test(arguments: [true, false]) func order(isBroadcast: Bool) {
    let breakers = isBroadcast ? Self.broadcastBreakers : Self.creationBreakers
    #expect(breakers.map(\.0) == breakers.map(\.0).sorted())
    for (index, first) in breakers.enumerated() {
      for second in breakers[index...] {
        var push = TestPush(mode: .strict)
        isBroadcast ? push.useBroadcast() : push.useChannels("POST")
        second.2(&push)
        first.2(&push)
        let verdict = push.validate()
        #expect(verdict.failed == first.0, "\(first.0) and \(second.0): \(verdict.rule)")
        #expect(verdict.reason == first.1)
      }
    }
  }

  /// The checks in a record are those of the operation.
  @Test func listedChecks() {
    var push = TestPush()
    push.useChannelList()
    let ofList = push.validate().checks.map(\.check)
    #expect(ofList.suffix(4) == [.appPermitted, .bundleID, .broadcastCapability, .requestID])
    push.useChannels("DELETE")
    #expect(push.validate().checks.map(\.check) == ofList + [.channelID, .channelRegistered])
    push.useBroadcast()
    push[":method"] = "POST"
    push["apns-expiration"] = "0"
    let ofBroadcast = push.validate().checks.map(\.check)
    #expect(Set(ofBroadcast).isDisjoint(with: [.topicPresent, .deviceToken, .payloadSyntax, .requestMembers]))
    #expect(ofBroadcast.last == .payloadSize)
  }

  // MARK: - Facts

  @Test func requestIDIsTheID() {
    var push = TestPush()
    push.useBroadcast()
    push["apns-request-id"] = "22222222-90ab-cdef-1234-567890abcdef"
    let facts = push.validate().facts
    #expect(facts.apnsID.map(push.request.headers.string) == "22222222-90ab-cdef-1234-567890abcdef")
    push["apns-request-id"] = nil
    #expect(push.validate().facts.apnsID.map(push.request.headers.string) == push["apns-id"])
    // Not of a push: unknown headers are ignored.
    var other = TestPush()
    other["apns-request-id"] = "x"
    expect(other.validate(), nil)
    #expect(other.validate().facts.apnsID.map(other.request.headers.string) == other["apns-id"])
  }

  @Test(
    arguments: [
      ("broadcast", false, { @Sendable (push: inout TestPush) in push.useBroadcast() }),
      (
        "broadcast in another case", true,
        { @Sendable (push: inout TestPush) in
          push.useBroadcast()
          push["apns-push-type"] = "LiveActivity"
        }
      ),
      ("create", false, { @Sendable (push: inout TestPush) in push.useChannels("POST") }),
      (
        "create with a string", true,
        { @Sendable (push: inout TestPush) in
          push.useChannels("POST", #"{"message-storage-policy":"1","push-type":"liveactivity"}"#)
        }
      ),
      (
        "create in lower case", true,
        { @Sendable (push: inout TestPush) in
          push.useChannels("POST", #"{"message-storage-policy":1,"push-type":"liveactivity"}"#)
        }
      ),
      (
        "read with a body", false,
        { @Sendable (push: inout TestPush) in
          push.useChannels("GET")
          push.body = Array(#"{"message-storage-policy":"1"}"#.utf8)
        }
      ),
      ("push", false, { @Sendable (push: inout TestPush) in push["apns-push-type"] = "alert" }),
    ] as [(String, Bool, @Sendable (inout TestPush) -> Void)])
  func formFinding(_ name: String, isFound: Bool, _ change: @Sendable (inout TestPush) -> Void) {
    for mode in RuleMode.allCases {
      var push = TestPush(mode: mode)
      change(&push)
      let verdict = push.validate()
      let hasForm = push.request.headers.bytes.withUnsafeBytes { headers in
        push.body.withUnsafeBytes { verdict.facts.hasUndocumentedForm(headers: headers, body: $0) }
      }
      #expect((verdict.isAccepted && hasForm) == (mode != .strict && isFound))
    }
  }

  @Test func displayFindings() {
    func problem(_ change: (inout TestPush) -> Void) -> DisplayProblem? {
      var push = TestPush()
      change(&push)
      #expect(push.validate().isAccepted)
      #expect(!push.lacksPushType())
      return push.displayProblem()
    }
    #expect(problem { $0.useBroadcast() } == nil)
    #expect(problem { $0.useChannels("POST") } == nil)
    #expect(problem { $0.useChannelList() } == nil)
    let start = problem {
      $0.useBroadcast()
      $0.replace("update", by: "start")
    }
    #expect(start == .activityStartedByBroadcast)
    #expect(
      problem {
        $0.useBroadcast(); $0.replace("timestamp", by: "time")
      } != nil)
  }
}

extension TestPush {
  /// Replaces a part of the body.
  fileprivate mutating func replace(_ part: String, by other: String) {
    body = Array(String(decoding: body, as: UTF8.self).replacing(part, with: other).utf8)
  }
}
