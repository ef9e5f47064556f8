import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// The text of `Verdict.detail`: the value, the rule and the remedy; no secrets, no invisible characters, bounded
/// length.
struct ExplanationTests {
  @Test(arguments: details) func detail(
    _ text: String, _ change: @Sendable (inout TestPush) -> Void
  ) {
    var push = TestPush()
    change(&push)
    let detail = push.explain()
    #expect(detail.contains(text), "\(detail)")
  }

  static let details: [(String, @Sendable (inout TestPush) -> Void)] = [
    ("accepted", { _ in }),
    ("the method is \"GET\", a push is sent with POST", { $0[":method"] = "GET" }),
    ("the path is \"/x\"", { $0[":path"] = "/x" }),
    ("the path is missing", { $0[":path"] = nil }),
    ("the header \"x-a\" is repeated", { $0.fields += [("x-a", ""), ("x-a", "")] }),
    ("send authorization: bearer <JWT>", { $0["authorization"] = nil }),
    ("put the word bearer and a space", { $0["authorization"] = TestToken().text }),
    ("ends in white space", { $0["authorization"] = TestToken().authorization + "\n" }),
    ("two parts, a JWT has three", { $0["authorization"] = "bearer a.b" }),
    ("apns-id \"1\" is not a UUID", { $0["apns-id"] = "1" }),
    ("apns-expiration \"1.5\" is not a UNIX time", { $0["apns-expiration"] = "1.5" }),
    ("apns-priority \"\" is not one of 10, 5 and 1", { $0["apns-priority"] = "" }),
    ("has 65 bytes, at most 64", { $0["apns-collapse-id"] = String(repeating: "c", count: 65) }),
    (
      "apns-push-type \"banner\" is unknown: expected one of alert, background, ",
      { $0["apns-push-type"] = "banner" }
    ),
    ("the path has no device token after /3/device/", { $0[":path"] = "/3/device/" }),
    ("the device token \"abc\" has an odd number of digits", { $0[":path"] = "/3/device/abc" }),
    ("the device token \"xy\" has other characters", { $0[":path"] = "/3/device/xy" }),
    ("with a provider token it is always needed", { $0["apns-topic"] = nil }),
    ("apns-topic is empty", { $0["apns-topic"] = "" }),
    (
      "is for type voip, apns-push-type is alert, whose topic has no suffix",
      { $0["apns-topic"] = "a.voip" }
    ),
    ("add the suffix .voip", { $0["apns-push-type"] = "voip" }),
    ("the body has 4097 bytes, at most 4096", { $0.body = [UInt8](repeating: 1, count: 4097) }),
    ("send the payload as JSON", { $0.body = [] }),
    (
      "device token 0123…ef has been unregistered since 2023-11-14T22:13:20Z",
      { $0.tokens.append(SingleToken(token: TestPush.deviceToken, state: .unregistered, since: $0.now)) }
    ),
    (
      "belongs to \"com.other\", apns-topic is \"com.example.app\"",
      { $0.tokens.append(SingleToken(token: TestPush.deviceToken, topic: "com.other", since: 0)) }
    ),
    (
      "the client certificate has several topics (a, b): send one of them",
      {
        $0.useCertificate(topics: ["b", "a"])
        $0["apns-topic"] = nil
      }
    ),
    ("is not in the client certificate (com.other)", { $0.useCertificate(topics: ["com.other"]) }),
    ("apns-mock certs client", { $0.useCertificate(development: false, production: false) }),
  ]

  /// Invisible characters are shown by their code points.
  @Test(arguments: [
    ("com.example.app\n", "com.example.app\\n"), ("com\u{200B}.app", "com\\u{200B}.app"),
    ("\u{FEFF}com", "\\u{FEFF}com"),
    ("a\u{202E}b", "a\\u{202E}b"), ("a\u{A0}b", "a\\u{A0}b"), ("a\"b", "a\\\"b"),
    ("a\0b", "a\\u{0}b"), ("é", "é"),
  ])
  func hiddenCharacters(_ value: String, _ shown: String) {
    var push = TestPush()
    push["apns-priority"] = value
    let detail = push.explain()
    #expect(detail.contains("\"" + shown + "\""), "\(detail)")
  }

  /// The token printed in Apple's "Sending notification requests to APNs", byte for byte.
  @Test(arguments: [RuleMode.apple, .strict]) func applesSampleTokenIsReported(_ mode: RuleMode) {
    var push = TestPush(mode: mode)
    push["authorization"] =
      "bearer eyAia2lkIjogIjhZTDNHM1JSWDciIH0."
      + "eyAiaXNzIjogIkM4Nk5WOUpYM0QiLCAiaWF0IjogIjE0NTkxNDM1ODA2NTAiIH0."
      + "MEYCIQDzqyahmH1rz1s-LFNkylXEa2lZ_aOCX4daxxTZkVEGzwIhALvkClnx5m5eAT6Lxw7LZtEQcH6JENhJTMArwLf3sXwi"
    let verdict = push.validate()
    expect(verdict, .invalidProviderToken)
    #expect(push.explanation(of: verdict).contains("sample token of Apple's documentation"))
    // A token of one's own that only lacks alg gets the ordinary explanation.
    push.token.header = #"{"kid":"MOCKKEY001"}"#
    #expect(push.explain().contains("has no alg"))
  }

  @Test func longValuesAreCut() {
    var push = TestPush()
    push["apns-priority"] = String(repeating: "9", count: 5000)
    let detail = push.explain()
    #expect(detail.contains("(5000 bytes)"))
    #expect(detail.utf8.count < 300)
    push["apns-priority"] = nil
    push.token = TestToken(
      kid: String(repeating: "k", count: 2000), iss: String(repeating: "t", count: 1000))
    #expect(push.explain().utf8.count < 300)
    push.trustedKeys = (0..<400).map { FakeSignature.key("KEY\($0)") }
    #expect(push.explain().utf8.count < 300)
  }

  /// No explanation shows a provider token or its signature, in whatever field it was sent.
  @Test(arguments: TestPush().fields.map(\.name) + ["apns-collapse-id", "x-token"])
  func explanationsNeverContainTheToken(_ name: String) {
    let jwt = TestToken().text
    let signature = jwt.split(separator: ".")[2]
    for value in [jwt, "bearer " + jwt, "/3/device/" + jwt, jwt + "\n", "x" + jwt + "." + jwt] {
      for mode in RuleMode.allCases {
        var push = TestPush(mode: mode)
        push[name] = value
        if name == "x-token" { push.fields.append((name, value)) }
        let verdict = push.validate()
        let shown = push.explanation(of: verdict) + (verdict.token?.problem ?? "")
        #expect(!shown.contains(signature.prefix(10)), "\(shown)")
        #expect(!shown.contains(jwt.prefix(30)), "\(shown)")
      }
    }
  }
}
