internal import APNSRules
internal import Faults

/// What a record's JSON says, member by member; nil for what it does not say, or says is null.
///
/// Members that follow from others (`push_key`, `auth.age`, `apns.priority` …) are made again and not read.
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
  /// The rule of `fault`, and those of `also` in it.
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
    /// In base64; nil where `fields` say it all.
    var fieldBytes: [(name: String, value: String)]?
    /// As it is written.
    var payload: UnsafeRawBufferPointer?
    var payloadError: String?
    /// In base64; nil where `payload` says it all.
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
