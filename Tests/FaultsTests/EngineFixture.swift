import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Foundation
import APNSMockHTTPMessage
import APNSMockTestSupport

/// Traffic for tests of the engine: by default a push that APNs accepts; a test changes the part it is about.
struct EngineFixture: Sendable {
  static let deviceToken = String(repeating: "ab12", count: 16)
  /// 2026-01-31T12:00:00.000Z.
  static let noon: Int64 = 1_769_860_800_000

  var deviceToken = Self.deviceToken
  /// Nil for the path of a push to `deviceToken`. APNs accepts a request with another path.
  var path: String?
  var fields = [("apns-topic", "com.acme.shop"), ("apns-push-type", "alert"), ("apns-priority", "10")]
  var tokenAge: Int64 = 0
  var body = #"{"aps":{"alert":"hi"}}"#
  var bodySize: Int?
  var attempt = 1
  var connection = Traffic.Connection(number: 7, client: "127.0.0.1", streamsOpened: 1)
  /// The client certificate; if there is one, the push has no provider token.
  var certificate: ProviderCertificate?
  var response: Traffic.Response?

  init(_ change: (inout EngineFixture) -> Void = { _ in }) { change(&self) }

  /// Returns a different device token for each number below 160; never 64 zeros, which APNs rejects.
  static func deviceToken(_ number: Int) -> String {
    let digits = number == 0 ? "a0" : String(number, radix: 16)
    return String(repeating: "0", count: 64 - digits.count) + digits
  }

  var request: HTTPRequest {
    var all = [(":method", "POST"), (":scheme", "https"), (":path", path ?? "/3/device/\(deviceToken)")]
    if certificate == nil { all.append(("authorization", Self.authorization(age: tokenAge))) }
    var request = HTTPRequest(headers: HeaderList(all + fields), body: Array(body.utf8))
    if let bodySize { request.bodySize = bodySize }
    return request
  }

  var push: Traffic.Push {
    var authentication = ConnectionAuthentication(certificate: certificate)
    let request = request
    let verdict =
      path.map { _ in
        Verdict(
          facts: PushFacts(request.headers), credential: .none, token: nil, passed: [], failed: nil)
      }
      ?? Self.rulebook.validate(
        request, authentication: &authentication, keys: Self.keys, now: Self.noon)
    return Traffic.Push(
      request: request, verdict: verdict,
      key: PushKey(request, verdict.facts, defaultTopic: certificate?.defaultTopic),
      defaultTopic: certificate?.defaultTopic, attempt: attempt, receivedAt: Self.noon)
  }

  var traffic: Traffic { Traffic(connection: connection, push: push, response: response) }

  /// The connection alone, before its first push.
  var connecting: Traffic { Traffic(connection: connection) }

  private static let rulebook = Rulebook()
  private static let keys = TrustedKeySet(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])

  private static let defaultAuthorization = TestToken(iat: "\(noon / 1000)").authorization

  static func authorization(age: Int64) -> String {
    age == 0 ? defaultAuthorization : TestToken(iat: "\(noon / 1000 - age)").authorization
  }
}

extension Int64 {
  /// Converts seconds to nanoseconds.
  static func seconds(_ seconds: Double) -> Int64 { Int64((seconds * 1e9).rounded()) }
}

extension Action {
  static let unavailable = Action.respond(Response(status: 503, reason: "ServiceUnavailable"))

  static func answer(_ status: Int) -> Action { .respond(Response(status: status, reason: nil)) }
}

extension FaultPlan {
  /// Creates a plan of a profile with these rules, activated at time 0.
  convenience init(
    _ rules: [Rule], addedRules: [Rule] = [], seed: UInt64 = 1, limits: Profile.Limits = Profile.Limits(),
    pushIdentity: Profile.PushIdentity = .content, magicTokens: Bool = false, isPaused: Bool = false,
    ruleCounters: RuleCounters = RuleCounters()
  ) {
    self.init(
      profile: Profile(name: "test", limits: limits, pushIdentity: pushIdentity, rules: rules), addedRules: addedRules,
      seed: seed, magicTokens: magicTokens, isPaused: isPaused, activatedAt: 0, ruleCounters: ruleCounters)
  }

  /// Returns whether any fault applies to a push.
  func fires(_ fixture: EngineFixture = EngineFixture(), at injectionPoint: InjectionPoint = .request, now: Int64 = 0)
    -> Bool
  {
    !decide(
      injectionPoint == .request || injectionPoint == .response ? fixture.traffic : fixture.connecting,
      at: injectionPoint, now: now
    )
    .isEmpty
  }
}

extension Rule {
  /// Returns a rule that responds with 503.
  static func unavailable(
    _ name: String = "rule", when tests: [Condition.Test] = [], trigger: Trigger = Trigger()
  ) -> Rule {
    Rule(name: name, condition: Condition(tests), trigger: trigger, action: .unavailable)
  }
}

extension HeaderList {
  /// Overwrites the device token in the path; the new token must have the same length.
  mutating func setDeviceToken(_ token: String) {
    var path: ByteRange?
    forEachField { name, value in if string(name) == ":path" { path = value } }
    guard let path else { return }
    withMutableValue(path) { bytes in
      for (index, byte) in "/3/device/\(token)".utf8.enumerated() where index < bytes.count { bytes[index] = byte }
    }
  }
}
