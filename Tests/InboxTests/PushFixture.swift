import APNSMockRules
import Foundation
import APNSMockHTTPMessage

@testable import APNSMockInbox
import APNSMockNotation
import APNSMockTestSupport

/// A push with valid defaults for everything; a test changes the part it is about.
struct PushFixture: Sendable {
  static let deviceToken = String(repeating: "ab12", count: 16)
  /// 2026-01-31T12:00:00.000Z.
  static let noon: Int64 = 1_769_860_800_000

  var method = "POST"
  var deviceToken = PushFixture.deviceToken
  /// Nil for the path of a push to `deviceToken`.
  var path: String?
  var headers = [("apns-topic", "com.acme.app"), ("apns-push-type", "alert")]
  var authorization = PushFixture.defaultAuthorization
  var body = Array(#"{"aps":{"alert":"hi"}}"#.utf8)
  var bodySize: Int?
  var generatedID = "9D3220FE-444B-633E-D1F1-5D0DCB4F537A"
  var connection = ConnectionFacts(id: "c17", listener: 0, client: "127.0.0.1:52114", sni: "localhost", tls: "TLSv1.3")
  var outcome: Record.Outcome?
  var accepted: Bool?
  var delivery: DeliveryState?
  /// Nil for the verdict of `rulebook`.
  var verdict: (@Sendable (PushFacts) -> Verdict)?
  var sentResponse: Record.SentResponse?
  var wireDetails: WireDetails?
  var attempt: Int32 = 1
  var isComplete = true
  var now = PushFixture.noon
  /// Monotonic time in nanoseconds; nil to derive it from `now`.
  var arrivedAt: Int64?

  init(_ change: (inout PushFixture) -> Void = { _ in }) { change(&self) }

  private static let defaultAuthorization = [authorization()]

  /// Returns the value of an `authorization` field; the key ring of `record` accepts any signature.
  static func authorization(
    keyID: String = "MOCKKEY001", teamID: String = "MOCKTEAM01", issuedAt: Int64 = noon / 1000,
    signature: String = signature
  ) -> String {
    "bearer " + TestToken(kid: keyID, iss: teamID, iat: "\(issuedAt)").message + "." + signature
  }

  /// A signature that no record may contain.
  static let signature = String(repeating: "SECRET", count: 14) + "ab"

  var request: HTTPRequest {
    var fields = [(":method", method), (":scheme", "https"), (":path", path ?? "/3/device/\(deviceToken)")]
    fields += authorization.map { ("authorization", $0) } + headers
    var request = HTTPRequest(stream: 39, headers: HeaderList(fields), body: body)
    if let bodySize { request.bodySize = bodySize }
    return request
  }

  static let rulebook = Rulebook()

  private static let keys = TrustedKeySet(
    version: 1,
    keys: [("MOCKKEY001", "MOCKTEAM01"), ("OTHERKEY02", "OTHERTEAM2")].map {
      TrustedKey(keyID: $0, teamID: $1, verifies: { _, _, _ in true })
    })

  var record: Record {
    var authentication = ConnectionAuthentication(certificate: connection.certificate)
    let request = request
    let verdict =
      verdict?(PushFacts(request.headers))
      ?? Self.rulebook.validate(
        request, authentication: &authentication, keys: Self.keys, now: now)
    let outcome = outcome ?? (verdict.isAccepted ? .accepted : .rejected)
    let hasResponse = outcome.end().ending == .response
    let result = Record.Result(
      outcome: outcome, accepted: accepted,
      sentResponse: sentResponse
        ?? (hasResponse
          ? Record.SentResponse(status: verdict.status, reason: verdict.reason, latencyNanoseconds: 1_800_000)
          : Record.SentResponse()),
      wireDetails: wireDetails, finishedAt: outcome == .pending ? nil : now + 2, delivery: delivery)
    return Record(
      request: request, verdict: verdict, hasVerdict: isComplete,
      isRequestComplete: outcome != .incomplete && outcome != .malformed,
      generatedID: ArraySlice(generatedID.utf8), connection: connection, attempt: attempt, receivedAt: now,
      arrivedAt: arrivedAt, result: result)
  }

  /// Returns an accepted broadcast.
  static func broadcast(_ change: (inout PushFixture) -> Void = { _ in }) -> Record {
    PushFixture {
      $0.path = "/4/broadcasts/apps/com.acme.app"
      $0.headers = [
        ("apns-push-type", "liveactivity"), ("apns-expiration", "0"), ("apns-channel-id", "dHN0LXNyY2gtY2hubA=="),
      ]
      $0.verdict = { Verdict(facts: $0, credential: .none, token: nil, passed: [], failed: nil) }
      change(&$0)
    }.record
  }

  /// Returns an accepted request that creates a channel.
  static func channel(
    _ body: String = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#,
    _ change: (inout PushFixture) -> Void = { _ in }
  ) -> Record {
    PushFixture {
      $0.path = "/1/apps/com.acme.app/channels"
      $0.headers = []
      $0.body = Array(body.utf8)
      $0.verdict = { Verdict(facts: $0, credential: .none, token: nil, passed: [], failed: nil) }
      $0.sentResponse = Record.SentResponse(status: 201)
      change(&$0)
    }.record
  }

  /// The key that identifies the push when attempts are counted.
  var pushKey: PushKey {
    let request = request
    return PushKey(
      request, PushFacts(request.headers), defaultTopic: connection.certificate?.defaultTopic)
  }

  /// Returns the record as JSON text.
  static func json(_ record: Record) -> String {
    var writer = JSONWriter()
    record.write(to: &writer, rulebook: rulebook)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
