import APNSMockRules
import APNSMockHTTPMessage
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// Names, paths, topics and device tokens that were probably meant as others.
struct NearNamesTests {
  private static func mistakes(fields: [(String, String)] = [], _ json: String = #"{"aps":{"alert":"a"}}"#) -> [String]
  {
    var push = TestPush()
    push.fields = push.fields.filter { field in !fields.contains { $0.1 == "instead of \(field.name)" } }
    push.fields += fields.map { (name: $0.0, value: $0.1) }
    push.body = Array(json.utf8)
    let (request, verdict) = (push.request, push.validate())
    return request.headers.bytes.withUnsafeBytes { headers in
      request.body.withUnsafeBytes { Rulebook.nameMistakes(verdict.facts, headers: headers, body: $0) }
    }
  }

  // MARK: - Header fields

  @Test(arguments: [
    ("apns-expiry", "apns-expiration"), ("apns-expires", "apns-expiration"), ("apns_expiration", "apns-expiration"),
    ("apns-experation", "apns-expiration"), ("apns-prioritiy", "apns-priority"), ("apnspriority", "apns-priority"),
    ("apn-priority", "apns-priority"), ("x-apns-priority", "apns-priority"), ("aps-priority", "apns-priority"),
    ("apns-pushtype", "apns-push-type"), ("apns-type", "apns-push-type"), ("push-type", "apns-push-type"),
  ])
  func nearField(name: String, meant: String) {
    #expect(
      Self.mistakes(fields: [(name, "instead of \(meant)")])
        == ["the header field \"\(name)\" is not one of APNs, which ignores it: write \(meant)"])
    #expect(Self.mistakes(fields: [(name, "beside it")]) == [], "the field that was meant is there")
  }

  @Test(arguments: [
    "apns-channel-id", "apns-request-id", "apns-unique-id", "priority", "content-type", "apns-mode", "apns-thread-id",
    "x-topic", "apns", "collapse", "x-apns-tracing",
  ])
  func otherField(name: String) { #expect(Self.mistakes(fields: [(name, "1")]) == []) }

  @Test func missingFieldNamesTheNearOne() {
    var push = TestPush()
    push["apns-topic"] = nil
    push["apns_topic"] = TestPush.topic
    #expect(push.explain().hasSuffix("send the app's bundle id; \"apns_topic\" is not that field"))
    var strict = TestPush(mode: .strict)
    strict["apns-push-type"] = nil
    strict["apns-pushtype"] = "alert"
    #expect(strict.explain().hasSuffix("; \"apns-pushtype\" is not that field"))
  }

  // MARK: - Paths

  @Test(arguments: [
    ("/3/devices/ab12", "/3/device/{device token}: \"devices\" must be \"device\""),
    ("/2/device/ab12", "/3/device/{device token}: \"2\" must be \"3\""),
    ("/device/ab12", "/3/device/{device token}: \"3\" is missing"),
    ("/3/ab12", "/3/device/{device token}: \"device\" is missing"),
    ("/3/device", "/3/device/{device token}: device token is missing"),
    ("/v1/3/device/ab12", "/3/device/{device token}: \"v1\" does not belong there"),
    ("//3/device/ab12", "/3/device/{device token}: it has slashes, a query or a fragment that do not belong there"),
    ("/4/broadcast/apps/com.example.app", "/4/broadcasts/apps/{bundle id}: \"broadcast\" must be \"broadcasts\""),
    ("/4/broadcasts/app/com.example.app", "/4/broadcasts/apps/{bundle id}: \"app\" must be \"apps\""),
    ("/4/broadcasts/com.example.app", "/4/broadcasts/apps/{bundle id}: \"apps\" is missing"),
    ("/1/apps/com.example.app/channel", "/1/apps/{bundle id}/channels: \"channel\" must be \"channels\""),
    (
      "/1/apps/com.example.app/all-channel",
      "/1/apps/{bundle id}/all-channels: \"all-channel\" must be \"all-channels\""
    ),
    ("/1/apps/com.example.app", "/1/apps/{bundle id}/channels: \"channels\" is missing"),
  ])
  func nearPath(path: String, words: String) {
    var push = TestPush()
    push[":path"] = path
    let verdict = push.validate()
    expect(verdict, .badPath)
    let detail = push.explanation(of: verdict)
    #expect(detail == "the path is \"\(path)\", probably meant as \(words)")
  }

  @Test(arguments: ["/", "/push", "/3", "/4/x/y/z", "/1/2/3/4/5/6/7/8/9/10/11", "/a/b/c"])
  func otherPath(path: String) {
    var push = TestPush()
    push[":path"] = path
    let detail = push.explain()
    #expect(detail.hasSuffix("the path of a push is /3/device/ and the device token"), "\(detail)")
  }

  // MARK: - Topics

  @Test(
    arguments: [
      ("com.example.ap", "com.example.app"), ("com.example.appp", "com.example.app"),
      ("com.exmaple.app", "com.example.app"),
      ("com.example.App", "com.example.app"), ("COM.EXAMPLE.APP", "com.example.app"),
      ("com.exanple.app.voip", "com.example.app.voip"), ("com.example.app.voIP", "com.example.app.voip"),
      ("com.example.app.push-type.liveactivty", "com.example.app.push-type.liveactivity"),
      ("com.example.app", nil), ("com.example.app.voip", nil), ("com.example.app2", nil), ("com.example.oth", nil),
      ("com.example.b", nil), ("", nil), ("com.exmaple.ap", nil), (String(repeating: "a", count: 300), nil),
      ("com.example.app1", nil),
    ] as [(String, String?)])
  func nearTopic(topic: String, meant: String?) {
    let known = ["com.acme.mail", "com.example.app", "com.example.app7", "com.example.a"]
    #expect(NearTopic.meant(by: topic, among: known) == meant)
  }

  @Test func rejectedTopics() {
    var push = TestPush()
    push.useCertificate()
    push["apns-topic"] = "com.example.App"
    #expect(push.explain().hasSuffix("(com.example.app); it was probably meant as \"com.example.app\""))
    push = TestPush()
    push.trustedKeys = [FakeSignature.key(topics: ["com.example.app"])]
    push["apns-topic"] = "com.example.ap"
    #expect(push.explain().hasSuffix("(com.example.app); it was probably meant as \"com.example.app\""))
    push = TestPush()
    push.requiresKnownTopics = true
    push.apps = AppTable([.init(bundleID: "com.example.app", teamID: "MOCKTEAM01")])
    push["apns-topic"] = "com.example.ap"
    #expect(push.explain().hasSuffix("; it was probably meant as \"com.example.app\""))
    push["apns-topic"] = "com.example.another"
    #expect(push.explain().hasSuffix("(apns-mock key add --team-topics)"))
  }

  @Test func rejectionsNameTheIgnoredToken() {
    var push = TestPush()
    push.useCertificate()
    push["authorization"] = TestToken().authorization
    #expect(push.validate().isAccepted)
    push["apns-topic"] = "com.example.other"
    #expect(
      push.explain().hasSuffix("; the provider token is ignored, because the connection has a client certificate"))
    push["authorization"] = nil
    #expect(push.explain().hasSuffix("(com.example.app)"))
  }

  // MARK: - Device tokens

  private static let token = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"

  private static func candidates(_ received: [UInt8]) -> [String] {
    received.withUnsafeBytes { NearDeviceToken.candidates(for: $0) }.filter { $0.digits.elementsEqual(token.utf8) }
      .map(\.distortion)
  }

  @Test func distortions() throws {
    let bytes = try #require(Array(Self.token.utf8).withUnsafeBytes { Hexadecimal.bytes($0) })
    let decodedAgain = try #require(Array(Self.token.utf8).withUnsafeBytes { Base64URL($0) }).bytes
    let cases: [([UInt8], String)] = [
      (
        Array(Hexadecimal.text(decodedAgain).utf8),
        "was decoded as base64, although it is hexadecimal, and encoded again"
      ),
      (Array(Hexadecimal.text(Array(Self.token.utf8)).utf8), "is encoded in hexadecimal twice"),
      (
        Array(Hexadecimal.text(Array(Base64URL.text(bytes).utf8)).utf8),
        "is the base64 form of its bytes, encoded in hexadecimal"
      ),
      (Array(Base64URL.text(bytes).utf8), "is encoded in base64 instead of hexadecimal"),
      (Array((Base64URL.text(bytes) + "=").utf8), "is encoded in base64 instead of hexadecimal"),
      (Array(Base64URL.text(Array(Self.token.utf8)).utf8), "is encoded in base64 in addition to hexadecimal"),
      (bytes, "was sent as bytes instead of in hexadecimal"),
      (Array(bytes.map { "%" + Hexadecimal.text([$0]) }.joined().utf8), "was sent as bytes instead of in hexadecimal"),
      (
        Array("<740f4707 bebcf74f 9b7c25d4 8e335894 5f6aa01d a5ddb387 462c7eaf 61bb78ad>".utf8),
        "is written with spaces, brackets or quotation marks"
      ),
      (Array("%22\(Self.token)%22".utf8), "is written with spaces, brackets or quotation marks"),
      (Array((Self.token + Self.token).utf8), "has something after its end"),
      (Array((Self.token + "0a").utf8), "has something after its end"),
      (Array(("ef" + Self.token).utf8), "has something before its beginning"),
    ]
    for (received, distortion) in cases {
      #expect(Self.candidates(received).first == distortion, "\(String(decoding: received, as: UTF8.self))")
    }
  }

  /// Hostile input costs no more than a few candidates.
  @Test func fewCandidates() {
    for received in [
      "", "ab", String(repeating: "a", count: 1000), String(repeating: "%", count: 900),
      String(repeating: "f", count: 5000),
    ] {
      let count = Array(received.utf8).withUnsafeBytes { NearDeviceToken.candidates(for: $0).count }
      #expect(count <= 8)
    }
  }

  // MARK: - Members of the payload

  @Test(arguments: [
    (
      #"{"aps":{"alert":"a"},"interruption-level":"critical"}"#,
      "\"interruption-level\" in the payload has no effect: write aps.interruption-level"
    ),
    (
      #"{"aps":{"alert":"a"},"interruptionLevel":"critical"}"#,
      "\"interruptionLevel\" in the payload has no effect: write aps.interruption-level"
    ),
    (#"{"aps":{"alert":"a"},"thread-id":"t"}"#, "\"thread-id\" in the payload has no effect: write aps.thread-id"),
    (
      #"{"aps":{"alert":{"title":"a","thread_identifier":"t"}}}"#,
      "\"thread_identifier\" in aps.alert has no effect: write aps.thread-id"
    ),
    (#"{"aps":{"alert":{"title":"a","badge":1}}}"#, "\"badge\" in aps.alert has no effect: write aps.badge"),
    (#"{"aps":{"alert":{"title":"a","sound":"x"}}}"#, "\"sound\" in aps.alert has no effect: write aps.sound"),
    (#"{"aps":{"alert":{"tittle":"a","body":"b"}}}"#, "\"tittle\" in aps.alert has no effect: write aps.alert.title"),
    (
      #"{"aps":{"alert":{"title":"a","locKey":"b"}}}"#, "\"locKey\" in aps.alert has no effect: write aps.alert.loc-key"
    ),
    (
      #"{"aps":{"alert":"a","threadIdentifier":"t"}}"#, "\"threadIdentifier\" in aps has no effect: write aps.thread-id"
    ),
    (
      #"{"aps":{"alert":"a","mutable_content":1}}"#,
      "\"mutable_content\" in aps has no effect: write aps.mutable-content"
    ),
    (
      #"{"aps":{"alert":"a","contentAvailable":1}}"#,
      "\"contentAvailable\" in aps has no effect: write aps.content-available"
    ),
    (#"{"aps":{"alert":"a","bagde":1}}"#, "\"bagde\" in aps has no effect: write aps.badge"),
    (#"{"aps":{"badge":1,"title":"t"}}"#, "\"title\" in aps has no effect: write aps.alert.title"),
    (
      #"{"aps":{"alert":"a","critical":true}}"#, "\"critical\" in aps has no effect: write it into the object aps.sound"
    ),
    (
      #"{"aps":{"alert":"a","sound":{"critical":true,"name":"x"}}}"#,
      "critical in aps.sound is true: write the number 1"
    ),
    (#"{"aps":{},"alert":"a"}"#, "\"alert\" in the payload has no effect: write aps.alert"),
    (#"{"APS":{"alert":"a"}}"#, "\"APS\" in the payload has no effect: write aps"),
  ])
  func misplacedMember(json: String, text: String) { #expect(Self.mistakes(json) == [text]) }

  /// Members of the app, members that are also in the right place, and bodies that are no payload.
  @Test(arguments: [
    #"{"aps":{"alert":{"title":"a","subtitle":"b","body":"c","loc-args":[],"launch-image":"x"},"badge":1,"sound":{"critical":1}}}"#,
    #"{"aps":{"alert":"a"},"title":"mine","body":"mine","badge":7,"category":"mine","event":"mine","threadId":"mine"}"#,
    #"{"aps":{"alert":"a","thread-id":"t"},"thread-id":"t"}"#, #"{"aps":{"alert":"a","custom":1,"foo-bar":2}}"#,
    #"{"aps":{"alert":{"title":"a","custom":1}}}"#, #"{"aps":{"badge":1},"alert":"mine"}"#, #"{"alert":"a"}"#, "{}",
    "[]", "", "{", #"{"aps":7}"#,
    #"{"aps":{"alert":"a","alert ":1}}"#,
  ])
  func otherMember(json: String) { #expect(Self.mistakes(json) == []) }

  @Test func fewMembersAreListed() {
    let members = (1...50).map { _ in #""mutable_content":1"# }.joined(separator: ",")
    #expect(Self.mistakes(#"{"aps":{"alert":"a",\#(members)}}"#).count == 3)
  }

  @Test func aLiveActivityHasASoundInItsAlert() {
    var push = TestPush()
    push.use(.liveactivity)
    push.body = Array(
      #"{"aps":{"timestamp":1,"event":"update","content-state":{},"alert":{"title":"a","sound":"x"}}}"#.utf8)
    let (request, verdict) = (push.request, push.validate())
    let mistakes = request.headers.bytes.withUnsafeBytes { headers in
      request.body.withUnsafeBytes { Rulebook.nameMistakes(verdict.facts, headers: headers, body: $0) }
    }
    #expect(mistakes == [])
  }
}
