import APNSMockRules
import APNSMockTestSupport
import Testing

/// The form of a provider token, in each mode (Protocol.md, section 3.1). `ModeTableTests` tests the differences
/// between the modes.
struct ProviderTokenRulesTests {
  @Test(arguments: rows) func shape(_ row: Row) {
    let verdict = row.validate()
    expect(verdict, row.reason)
    #expect(verdict.credential == .token)
    if row.reason != nil { #expect(verdict.failed == .providerToken) }
  }

  static let rows: [Row] = [
    Row.always("alg none", .invalidProviderToken) { $0.token = TestToken(alg: "none") },
    Row.always("alg HS256", .invalidProviderToken) { $0.token = TestToken(alg: "HS256") },
    Row.always("alg es256", .invalidProviderToken) { $0.token = TestToken(alg: "es256") },
    Row.always("alg is a number", .invalidProviderToken) {
      $0.token.header = #"{"alg":256,"kid":"MOCKKEY001"}"#
    },
    Row.always("kid unknown", .invalidProviderToken) { $0.token = TestToken(kid: "OTHERKEY01") },
    Row.always("no kid", .invalidProviderToken) { $0.token.header = #"{"alg":"ES256"}"# },
    Row.always("kid in the claims only", .invalidProviderToken) {
      $0.token.header = #"{"alg":"ES256"}"#
    },
    Row.always("iss of no team", .invalidProviderToken) { $0.token = TestToken(iss: "OTHERTEAM1") },
    Row.always("no iss", .invalidProviderToken) { $0.token.claims = #"{"iat":1700000000}"# },
    Row.always("iss and kid swapped", .invalidProviderToken) {
      $0.token = TestToken(kid: "MOCKTEAM01", iss: "MOCKKEY001")
    },
    Row.always("no iat", .invalidProviderToken) { $0.token.claims = #"{"iss":"MOCKTEAM01"}"# },
    Row.each(
      [
        "null", "true", "\"\"", "\"soon\"", "\"nan\"", "\"inf\"", "\"-1700000000\"", "{}", "[]",
        "1e300", "1e400",
      ], "iat", .invalidProviderToken
    ) { $0.token = TestToken(iat: $1) },
    Row.always("wrong signature", .invalidProviderToken) {
      $0.token.signature = FakeSignature.wrong
    },
    Row.always("no signature", .invalidProviderToken) { $0.token.signature = [] },
    Row.always("typ and other members", nil) {
      $0.token.header = #"{"typ":"JWT","alg":"ES256","kid":"MOCKKEY001","cty":["x"]}"#
    },
    Row.always("extra claims, a stray kid and sub among them", nil) {
      $0.token.claims =
        #"{"iss":"MOCKTEAM01","iat":1700000000,"kid":"x","sub":"com.example.app","exp":1}"#
    },
    Row.always("Bearer with a capital", nil) { $0["authorization"] = "Bearer " + TestToken().text },
    Row.always("BEARER", nil) { $0["authorization"] = "BEARER " + TestToken().text },
    Row.always("two spaces", nil) { $0["authorization"] = "bearer  " + TestToken().text },
    Row.always("no scheme", .invalidProviderToken) { $0["authorization"] = TestToken().text },
    Row.always("Basic", .invalidProviderToken) { $0["authorization"] = "Basic dXNlcjpwYXNz" },
    Row.always("a tab after bearer", .invalidProviderToken) {
      $0["authorization"] = "bearer\t" + TestToken().text
    },
    Row.always("white space after it", .invalidProviderToken) {
      $0["authorization"] = TestToken().authorization + " "
    },
    Row.always("a line break after it", .invalidProviderToken) {
      $0["authorization"] = TestToken().authorization + "\n"
    },
    Row.always("one part", .invalidProviderToken) { $0["authorization"] = "bearer fake" },
    Row.always("two parts", .invalidProviderToken) { $0["authorization"] = "bearer a.b" },
    Row.always("four parts", .invalidProviderToken) {
      $0["authorization"] = TestToken().authorization + ".AAAA"
    },
    Row.always("dots alone", .invalidProviderToken) { $0["authorization"] = "bearer .." },
    Row.always("not base64", .invalidProviderToken) {
      $0["authorization"] = "bearer !!!!.????.****"
    },
    Row.always("a length no base64 has", .invalidProviderToken) {
      $0["authorization"] = "bearer abcde.abcd.abcd"
    },
    Row.always("header is not JSON", .invalidProviderToken) { $0.token.header = "alg=ES256" },
    Row.always("header is an array", .invalidProviderToken) { $0.token.header = #"["ES256"]"# },
    Row.always("claims are not JSON", .invalidProviderToken) { $0.token.claims = "{" },
    Row.always("claims are not UTF-8", .invalidProviderToken) {
      $0["authorization"] = "bearer eyJhbGciOiJFUzI1NiIsImtpZCI6Ik1PQ0tLRVkwMDEifQ.__79_A.AAAA"
    },
    Row.always("a comma too much in the claims", .invalidProviderToken) {
      $0.token.claims = #"{"iss":"MOCKTEAM01","iat":1700000000,}"#
    },
    Row.always("a byte order mark before the claims", .invalidProviderToken) {
      $0.token.claims = "\u{feff}" + #"{"iss":"MOCKTEAM01","iat":1700000000}"#
    },
    Row.always("text after the claims", .invalidProviderToken) {
      $0.token.claims = #"{"iss":"MOCKTEAM01","iat":1700000000} {}"#
    },
    // RFC 7519 section 4.
    Row.always("a claim twice, the later one good", nil) {
      $0.token.claims = #"{"iss":"OTHERTEAM1","iat":1700000000,"iss":"MOCKTEAM01"}"#
    },
    Row.always("a claim twice, the earlier one good", .invalidProviderToken) {
      $0.token.claims = #"{"iss":"MOCKTEAM01","iat":1700000000,"iss":"OTHERTEAM1"}"#
    },
    Row.always("white space wherever it may be", nil) {
      $0.token.header = #" { "x" : 1 , "alg" : "ES256" , "kid" : "MOCKKEY001" } "#
    },
    Row.always("names and values with escapes", nil) {
      $0.token.header = #"{"\u0061lg":"ES\u003256","kid":"MOCKKEY001"}"#
    },
    Row.always("kid is a number", .invalidProviderToken) { $0.token.header = #"{"alg":"ES256", "kid": 1 }"# },
    Row.each(["1700000000.0", "1.7e9", "17E+8"], "iat a whole number written", nil) {
      $0.token = TestToken(iat: $1)
    },
    Row.always("nested a thousand deep", .invalidProviderToken) {
      $0.token.claims = String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000)
    },
    Row.always("a member nested a thousand deep", .invalidProviderToken) {
      $0.token.claims =
        #"{"iss":"MOCKTEAM01","iat":1700000000,"x":"#
        + String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000) + "}"
    },
    Row.always("8 KB", .invalidProviderToken) {
      $0.token.claims =
        #"{"iss":"MOCKTEAM01","iat":1700000000,"x":""# + String(repeating: "y", count: 6000)
        + #""}"#
    },
    Row.always("2 KB", nil) {
      $0.token.claims =
        #"{"iss":"MOCKTEAM01","iat":1700000000,"x":""# + String(repeating: "y", count: 2000)
        + #""}"#
    },
  ].flatMap { $0 }

  /// The facts that a record shows about a token.
  @Test func factsOfAGoodToken() throws {
    var push = TestPush()
    let token = try #require(push.validate().token)
    #expect(token.keyID == "MOCKKEY001")
    #expect(token.teamID == "MOCKTEAM01")
    #expect(token.algorithm == "ES256")
    #expect(token.issuedAt == TestPush.nowSeconds * 1000)
    #expect(token.signature == .valid)
    #expect(token.problem == nil)
  }

  @Test func factsOfABadToken() throws {
    var push = TestPush()
    push.token = TestToken(kid: String(repeating: "K", count: 2000), iat: "1699999990")
    let unknown = try #require(push.validate().token)
    #expect(unknown.signature == .unchecked)
    #expect(unknown.keyID == String(repeating: "K", count: 64))
    #expect(unknown.issuedAt == 1_699_999_990_000)
    push.token = TestToken()
    push.token.signature = FakeSignature.wrong
    #expect(push.validate().token?.signature == .invalid)
    push["authorization"] = "Basic dXNlcjpwYXNz"
    #expect(push.validate().token?.keyID == nil)
  }

  /// Each message names the error and the remedy.
  @Test(arguments: [
    (
      TestToken(kid: "ABC"),
      "kid \"ABC\" is not among the trusted keys (MOCKKEY001): add its public key to provider.yaml"
    ),
    (TestToken(kid: "MOCKTEAM01", iss: "MOCKKEY001"), "iss and kid look swapped"),
    (TestToken(iss: "T"), "iss \"T\" is not the team of key MOCKKEY001: it must be MOCKTEAM01"),
    (TestToken(alg: "none"), "alg \"none\" is not accepted: sign with ES256"),
    (TestToken(iat: "1699996220"), "iat is 63 min old"),
    (TestToken(iat: "1700000000000"), "at most 60 min are allowed: it looks like milliseconds, write seconds"),
    (TestToken(iat: "1700000000000000"), "it looks like microseconds, write seconds"),
    (TestToken(iat: "1700000000000000000"), "it looks like nanoseconds, write seconds"),
    (
      TestToken(iat: "1700007200"),
      "iat is 2 h 0 min in the future (2023-11-15T00:13:20Z), at most 60 min"
    ),
  ])
  func explanation(_ token: TestToken, _ text: String) {
    var push = TestPush()
    push.token = token
    let detail = push.explain()
    #expect(detail.contains(text), "\(detail)")
  }

  @Test func explanationOfAWrongSignature() {
    var push = TestPush()
    push.token.signature = FakeSignature.wrong
    #expect(
      push.explain()
        == "the signature does not verify with key MOCKKEY001: is this .p8 the one with that key id?"
    )
  }

  /// A token costs one signature check per connection, valid or not, until the keys change.
  @Test(arguments: [FakeSignature.raw, FakeSignature.wrong]) func verifiedOnce(_ signature: [UInt8]) {
    let counter = Counter()
    var push = TestPush()
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    push.token.signature = signature
    let first = push.validate().token
    for _ in 1...5 { #expect(push.validate().token === first) }
    #expect(counter.value == 1)
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    _ = push.validate()
    #expect(counter.value == 2)
    push.authentication = ConnectionAuthentication()
    _ = push.validate()
    #expect(counter.value == 3)
  }

  /// A token that passed on one connection needs no new signature check on the next; all other checks are repeated.
  @Test func verifiedOnceForSeveralConnections() {
    let counter = Counter()
    var push = TestPush()
    push.settings.expiredTokenCloses = false
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    let first = push.validate().token
    var known = ProviderTokenCache()
    known.learn(from: push.authentication)
    push.authentication = ConnectionAuthentication(certificate: nil, known: known)
    #expect(!push.authentication.providerTokenAccepted)
    #expect(push.validate().token === first)
    #expect(push.authentication.providerTokenAccepted)
    #expect(counter.value == 1)
    push.authentication = ConnectionAuthentication(certificate: nil, known: known)
    push.now += 3_601_000
    expect(push.validate(), .expiredProviderToken)
    push.now = TestPush.nowSeconds * 1000
    // It counts toward its connection's token updates like any other.
    for iat in ["1699999999", "1699999998"] {
      push.token = TestToken(iat: iat)
      expect(push.validate(), nil)
    }
    push.token = TestToken()
    expect(push.validate(), .tooManyProviderTokenUpdates)
  }

  /// Only accepted tokens are handed to other connections, and none after the keys, the mode or the environment
  /// changed.
  @Test func onlyVerifiedTokensAreShared() {
    let counter = Counter()
    var push = TestPush()
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    push.token.signature = FakeSignature.wrong
    var known = ProviderTokenCache()
    expect(push.validate(), .invalidProviderToken)
    known.learn(from: push.authentication)
    push.authentication = ConnectionAuthentication(certificate: nil, known: known)
    expect(push.validate(), .invalidProviderToken)
    #expect(counter.value == 2)
    push.token = TestToken()
    expect(push.validate(), nil)
    known.learn(from: push.authentication)
    push.trustedKeys = []
    push.authentication = ConnectionAuthentication(certificate: nil, known: known)
    expect(push.validate(), .invalidProviderToken)
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    expect(push.validate(), nil)
    #expect(counter.value == 4)
  }

  /// Only the most recent tokens are handed on.
  @Test func sharedTokensAreBounded() {
    let counter = Counter()
    var known = ProviderTokenCache()
    var push = TestPush()
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    for number in Int64(0)..<100 {
      push.token = TestToken(iat: "\(TestPush.nowSeconds - number)")
      push.authentication = ConnectionAuthentication(certificate: nil, known: known)
      expect(push.validate(), nil)
      known.learn(from: push.authentication)
    }
    #expect(counter.value == 100)
    for number in [Int64(99), 98, 97, 0] {
      push.token = TestToken(iat: "\(TestPush.nowSeconds - number)")
      push.authentication = ConnectionAuthentication(certificate: nil, known: known)
      expect(push.validate(), nil)
    }
    #expect(counter.value == 101)
  }

  /// A flood of invalid tokens replaces other invalid tokens, not the one in use.
  @Test func floodOfBadTokens() {
    let counter = Counter()
    var push = TestPush()
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    expect(push.validate(), nil)
    let good = push["authorization"]
    for number in 0..<100 {
      push.token = TestToken(iat: "\(TestPush.nowSeconds - Int64(number))")
      push["authorization"]?.removeLast()
      expect(push.validate(), .invalidProviderToken)
    }
    let before = counter.value
    push["authorization"] = good
    expect(push.validate(), nil)
    #expect(counter.value == before)
  }

  /// A key that is no longer trusted, on a connection that has used it.
  @Test func revokedKey() {
    var push = TestPush()
    expect(push.validate(), nil)
    push.trustedKeys = []
    expect(push.validate(), .invalidProviderToken)
    push.trustedKeys = [FakeSignature.key()]
    expect(push.validate(), nil)
  }

  /// A change of mode on an open connection discards earlier results.
  @Test func changedMode() {
    var push = TestPush(mode: .strict)
    push.token.signature = FakeSignature.der
    expect(push.validate(), .invalidProviderToken)
    push.mode = .apple
    expect(push.validate(), nil)
  }
}
