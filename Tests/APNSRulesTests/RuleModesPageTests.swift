import APNSMockRules
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// Compares every cell of the tables in `RuleModes.md` with the rules and the settings.
struct RuleModesPageTests {
  /// A request whose response depends on the mode, and the name of its row.
  struct ModeRule: Sendable, CustomTestStringConvertible {
    let name: String
    /// Variants of the request; all of them get the response in the row.
    let variants: [@Sendable (inout TestPush) -> Void]

    var testDescription: String { name }

    init(_ name: String, _ variants: (@Sendable (inout TestPush) -> Void)...) {
      self.name = name
      self.variants = variants
    }
  }

  static let rules = [
    ModeRule("No `apns-push-type`", { $0["apns-push-type"] = nil }, { $0["apns-push-type"] = "" }),
    ModeRule(
      "Type `background` with priority 10, or without a priority",
      {
        $0.useBackground()
        $0["apns-priority"] = "10"
      },
      {
        $0.useBackground()
        $0["apns-priority"] = nil
      }),
    ModeRule(
      "Type `liveactivity` or `location` with priority 1",
      {
        $0.use(.liveactivity)
        $0["apns-priority"] = "1"
        $0.body = Array(#"{"aps":{"timestamp":1700000000,"event":"update","content-state":{}}}"#.utf8)
      },
      {
        $0.use(.location)
        $0["apns-priority"] = "1"
      }),
    ModeRule(
      "Body that is not JSON", { $0.body = Array("aps=hello".utf8) }, { $0.body.removeLast() },
      { $0.body = Array("{\"a\":\"".utf8) + [0xff, 0x22, 0x7d] }),
    ModeRule("Type `location` with a client certificate") {
      $0.useCertificate(topics: ["com.example.app.location-query"])
      $0.use(.location)
    },
    ModeRule("Type `mdm` with a provider token") {
      $0.use(.mdm)
      $0.body = Array(#"{"mdm":"00000000-0000-0000-0000-000000000000"}"#.utf8)
    },
    ModeRule("Device token of 64 zeros") { $0[":path"] = "/3/device/" + String(repeating: "0", count: 64) },
    ModeRule(
      "Topic that begins with `<` or with a team id", { $0["apns-topic"] = "<com.example.app>" },
      { $0["apns-topic"] = "MOCKTEAM01.com.example.app" }),
    ModeRule(
      "Broadcast with the push type in another case than `liveactivity`",
      {
        $0.useBroadcast()
        $0["apns-push-type"] = "LiveActivity"
      }),
    ModeRule("New channel with the push type in another case than `LiveActivity`") {
      $0.useChannels("POST", #"{"message-storage-policy":1,"push-type":"liveactivity"}"#)
    },
    ModeRule("New channel with the storage policy as a string") {
      $0.useChannels("POST", #"{"message-storage-policy":"1","push-type":"LiveActivity"}"#)
    },
    ModeRule("Provider token with a DER signature") { $0.token.signature = FakeSignature.der },
    ModeRule(
      "Provider token with base64 padding, or with `+` and `/`", { $0.token.isPadded = true },
      { $0.token.isStandardAlphabet = true }),
    ModeRule(
      "`iat` with a fraction, or as a string of seconds", { $0.token = TestToken(iat: "1700000000.5") },
      { $0.token = TestToken(iat: #""1700000000""#) }),
    ModeRule("`iat` as a number of milliseconds") { $0.token = TestToken(iat: "1700000000000") },
    ModeRule("`alg` ES512 over the P-256 key, as pushok signs") {
      var token = TestToken(alg: "ES512")
      token.signature = FakeSignature.es512
      $0.token = token
    },
    ModeRule("No `alg` in the provider token") { $0.token.header = #"{"kid":"MOCKKEY001"}"# },
    ModeRule("Form of Apple's sample token: no `alg`, `iat` as a string of milliseconds") {
      $0.token.header = #"{ "kid": "MOCKKEY001" }"#
      $0.token.claims = #"{ "iss": "MOCKTEAM01", "iat": "1700000000000" }"#
    },
    ModeRule(
      "`iat` in the future by more than 5 minutes and at most 1 hour", { $0.token = TestToken(secondsAhead: 301) },
      { $0.token = TestToken(secondsAhead: 3600) }),
    ModeRule(
      "`iat` in the future by more than 1 hour", { $0.token = TestToken(secondsAhead: 3601) },
      { $0.token = TestToken(secondsAhead: 1_000_000_000) }),
    ModeRule("New provider token on a connection after a 403 `ExpiredProviderToken`") {
      $0.token = TestToken(secondsAhead: -3601)
      _ = $0.validate()
      $0.token = TestToken()
    },
    ModeRule("Third provider token on a connection within 20 minutes") {
      for age in [-2, -1] {
        $0.token = TestToken(secondsAhead: Int64(age))
        _ = $0.validate()
      }
      $0.token = TestToken()
    },
  ]

  private let page: MarkdownPage

  init() throws { page = try MarkdownPage("RuleModes") }

  @Test func everyRuleHasOneRow() throws {
    #expect(try page.table(under: "## Rules").map { $0["Request"] } == Self.rules.map(\.name))
  }

  @Test(arguments: rules, RuleMode.allCases) func response(_ rule: ModeRule, _ mode: RuleMode) throws {
    let row = try #require(page.table(under: "## Rules").first { $0["Request"] == rule.name })
    for change in rule.variants {
      var push = TestPush(mode: mode)
      change(&push)
      #expect(row[mode.column] == push.response())
    }
  }

  /// A rule that all modes decide alike does not belong in the table.
  @Test(arguments: rules) func modesDiffer(_ rule: ModeRule) {
    for change in rule.variants {
      let responses = RuleMode.allCases.map { mode in
        var push = TestPush(mode: mode)
        change(&push)
        return push.response()
      }
      #expect(Set(responses).count > 1)
    }
  }

  @Test func everySettingHasOneRow() throws {
    #expect(
      try page.table(under: "## Settings").map { $0["Setting"] } == APNSSetting.allCases.map { "`\($0.rawValue)`" })
  }

  @Test(arguments: APNSSetting.allCases, RuleMode.allCases)
  func defaultValue(_ setting: APNSSetting, _ mode: RuleMode) throws {
    let row = try #require(page.table(under: "## Settings").first { $0["Setting"] == "`\(setting.rawValue)`" })
    let cell = try #require(row[mode.column]).replacing("`", with: "")
    #expect(row["Meaning"]?.isEmpty == false)
    switch setting {
    case .tokenFuture: try expectFuture(cell, in: mode)
    case .expiredTokenCloses:
      var push = TestPush(mode: mode)
      push.token = TestToken(secondsAhead: -3601)
      _ = push.validate()
      push.token = TestToken()
      #expect(cell == (push.validate().isAccepted ? "off" : "on"))
    default:
      var settings = APNSSettings()
      try settings.set(setting, to: cell)
      #expect(settings == APNSSettings())
    }
  }

  /// Compares the limit in `cell` with the latest `iat` that a mode accepts.
  private func expectFuture(_ cell: String, in mode: RuleMode) throws {
    var push = TestPush(mode: mode)
    guard cell != "no limit" else {
      push.token = TestToken(secondsAhead: 50_000_000_000)
      #expect(push.validate().isAccepted)
      return
    }
    var settings = APNSSettings()
    try settings.set(.tokenFuture, to: cell)
    let limit = try #require(settings.tokenFuture).components.seconds
    push.token = TestToken(secondsAhead: limit)
    #expect(push.validate().isAccepted)
    push.token = TestToken(secondsAhead: limit + 1)
    #expect(push.validate().reason == .expiredProviderToken)
  }
}

extension RuleMode {
  /// The heading of its column.
  fileprivate var column: String { "`\(rawValue)`" }
}

extension TestToken {
  /// A valid token, issued this long after the time of the tests.
  fileprivate init(secondsAhead: Int64) { self.init(iat: "\(TestPush.nowSeconds + secondsAhead)") }
}

extension TestPush {
  /// Makes it a valid background push with priority 5.
  fileprivate mutating func useBackground() {
    use(.background)
    body = Array(#"{"aps":{"content-available":1}}"#.utf8)
  }

  /// The response as the page writes it: the status, then the reason or the findings.
  fileprivate mutating func response() -> String {
    let verdict = validate()
    if let reason = verdict.reason { return "\(verdict.status) `\(reason.text)`" }
    var findings: [String] = []
    if lacksPushType() { findings.append("missing-push-type") }
    if displayProblem() != nil { findings.append("would-not-show") }
    let hasUndocumentedForm = request.headers.bytes.withUnsafeBytes { headers in
      body.withUnsafeBytes { verdict.facts.hasUndocumentedForm(headers: headers, body: $0) }
    }
    if hasUndocumentedForm { findings.append("channel-request-form") }
    if verdict.token?.algorithm == SigningAlgorithm.es512.rawValue { findings.append("jwt-alg") }
    return (["\(verdict.status)"] + findings.map { "finding `\($0)`" }).joined(separator: ", ")
  }
}
