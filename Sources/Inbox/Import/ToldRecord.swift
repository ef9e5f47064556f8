internal import APNSRules
internal import Faults

/// The members of a record's JSON; nil for a member that is absent or null.
///
/// Members derived from others (`push_key`, `auth.age`, `apns.priority` …) are computed again and not read.
struct ToldRecord {
  var seq: Int?
  var accepted: Bool?
  var outcome: Record.Outcome?
  var listener: Int?
  var receivedAt: Int64?
  var finishedAt: Int64?
  var attempt: Int32?
  var connection = Connection()
  var request = Request()
  var apns = Identity()
  var auth = Auth()
  var verdict: Verdict?
  /// The injection in `fault`, followed by those in its `also`.
  var injections: [Injection] = []
  var served = Served()
  var findings: [String] = []

  struct Connection {
    var id = ""
    var stream: Int32 = 0
    var client = ""
    var sni: String?
    var tls = ""
  }

  struct Request {
    var method: String?
    var path: String?
    var fields: [(name: String, value: String)] = []
    /// All fields in Base64; nil if `fields` is exact.
    var fieldBytes: [(name: String, value: String)]?
    /// The JSON text of the payload.
    var payload: UnsafeRawBufferPointer?
    var payloadError: String?
    /// The body in Base64; nil if `payload` is exact.
    var bodyBytes: String?
    var size: Int?
  }

  struct Identity {
    var id: String?
    var origin: String?
    var topic: String?
  }

  struct Auth {
    var kind: String?
    var teamID: String?
    var keyID: String?
    var issuedAt: Int64?
    var signature: ProviderToken.Signature?
    var certificate: ProviderCertificate?
  }

  struct Verdict {
    var reason: Reason?
    var passed: [Check] = []
    var failed: (check: Check, detail: String)?
  }

  struct Served {
    var status: Int16?
    var reason: String?
    var reset: String?
    var goAway: Aftermath.GoAway?
    var closed: Aftermath.Closing?
    var latency: Int64?
  }
}
