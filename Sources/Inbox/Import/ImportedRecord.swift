internal import APNSMockNotation

internal import APNSMockRules
internal import APNSMockFaultModel

/// The members of a record's JSON; nil for a member that is absent or null.
///
/// Members derived from others (`kind`, `push_key`, `auth.age`, `apns.priority` …) are computed again and not read.
struct ImportedRecord {
  /// 1 in exports of versions without this member.
  var format = 1
  var seq: Int?
  /// The run and the test of the push.
  var run: String?
  var test: String?
  /// The number of the test in its run; nil in exports of versions without this member.
  private(set) var testNumber: Int?
  var accepted: Bool?
  /// In format 1, a word of `FormerResult.Outcome`.
  var outcome: String?
  var decision: Decision?
  var ending: Ending?
  var violation: WireDetails.ProtocolViolation?
  /// Whether the request is incomplete, and when a push without a response ended. Exports do not contain these members.
  private(set) var isIncomplete = false
  private var endedAt: MonotonicTime?
  var delivery: DeliveryState?
  var listener: Int?
  /// Sandbox in exports of versions without this member.
  var environment = PushEnvironment.sandbox
  var receivedAt: ServerTime?
  var finishedAt: ServerTime?
  var attempt: Int32?
  var connection = ConnectionMembers()
  var request = RequestMembers()
  var apns = IDMembers()
  var auth = AuthMembers()
  var verdict: VerdictMembers?
  /// The injection in `fault`, followed by those in its `also`.
  var injections: [Injection] = []
  /// The `seq` of the push whose rule ended the connection.
  var faultedBy: Int?
  var served = ServedMembers()
  var upstream: WireDetails.UpstreamAnswer?
  var findings: [String] = []

  struct ConnectionMembers {
    var id = ""
    var stream: Int32 = 0
    var client = ""
    var sni: String?
    var tls: String?
    /// HTTP/2 in exports of versions without this member.
    var http = ConnectionFacts.HTTPVersion.http2
  }

  struct RequestMembers {
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
    var isComplete: Bool?
  }

  struct IDMembers {
    var id: String?
    var origin: String?
    var topic: String?
  }

  struct AuthMembers {
    var kind: String?
    var teamID: String?
    var keyID: String?
    var issuedAt: Int64?
    var signature: ProviderToken.Signature?
    var certificate: ProviderCertificate?
  }

  struct VerdictMembers {
    var status = 200
    var reason: Reason?
    var passed: [Check] = []
    var failed: (check: Check, detail: String)?
  }

  struct ServedMembers {
    var status: Int16?
    var reason: String?
    var reset: String?
    var goAway: WireDetails.GoAway?
    var closed: WireDetails.CloseMethod?
    var latency: Int64?
  }
}

extension ImportedRecord {
  /// The nesting of a record around its payload, and more for members that this version does not know.
  private static let depth = 8

  /// Reads the JSON of a record. Unknown members are ignored, but all of the text must be valid JSON: a payload is stored,
  /// and a merge copies the text, as it is.
  ///
  /// - Parameters:
  ///   - text: The JSON.
  ///   - json: Its reader.
  ///   - isStored: Whether it is the column `details` of a store, which has some other members.
  init(_ text: UnsafeRawBufferPointer, _ json: inout JSONReader, isStored: Bool = false) throws(JSONText.Problem) {
    if let problem = JSONText.problem(in: text, maxDepth: JSONText.maxDepth + Self.depth) { throw problem }
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "format": format = try json.wholeOrNull() ?? 1
      case "seq": seq = try json.wholeOrNull()
      case "run" where !isStored: run = try json.text()
      case "test" where !isStored: test = try json.text()
      case "test_number" where !isStored: testNumber = try json.wholeOrNull()
      case "accepted": accepted = try json.unlessNull { json throws(JSONText.Problem) in try json.flag() }
      case "outcome": outcome = try json.text()
      case "decision": decision = try json.choice(name)
      case "ending": ending = try json.choice(name)
      case "violation": violation = isStored ? try .init(&json) : try json.text().map { .malformed($0) }
      case "incomplete" where isStored: isIncomplete = try json.flag()
      case "ended_ns" where isStored: endedAt = try json.wholeOrNull()
      case "delivery": delivery = try DeliveryState(&json, name)
      case "listener": listener = try json.wholeOrNull()
      case "environment": environment = try json.choice(name) ?? .sandbox
      case "received_at": receivedAt = try json.time(name)
      case "finished_at": finishedAt = try json.time(name)
      case "attempt": attempt = try json.wholeOrNull()
      case "connection": connection = try ConnectionMembers(&json)
      case "request": request = try RequestMembers(&json)
      case "apns": apns = try IDMembers(&json)
      case "auth": auth = try AuthMembers(&json)
      case "verdict": verdict = try json.unlessNull { json throws(JSONText.Problem) in try VerdictMembers(&json) }
      case "fault": if !json.readNullIfPresent() { injections = try Injection.imported(&json, by: &faultedBy) }
      case "served": served = try ServedMembers(&json)
      case "upstream":
        upstream = try json.unlessNull { json throws(JSONText.Problem) in try WireDetails.UpstreamAnswer(&json) }
      case "findings": findings = try json.strings()
      default: break
      }
    }
  }
}

extension ImportedRecord {
  /// The newest format of a record that this version knows.
  static let newestFormat = 2

  /// Returns the decision and the ending.
  ///
  /// - Throws: `JSONText.Problem` if members are missing or contradict each other, or in an unknown format.
  func end(_ json: JSONReader) throws(JSONText.Problem) -> AttemptEnd {
    func required<Value>(_ value: Value?, _ name: String) throws(JSONText.Problem) -> Value {
      guard let value else { throw json.problem("no record of a push: \(name) is missing") }
      return value
    }
    switch format {
    case 1:
      let text = try required(outcome, "outcome")
      guard let outcome = FormerResult.Outcome(rawValue: text) else { throw json.unknown("outcome", text) }
      let former = FormerResult(
        outcome: outcome, accepted: try required(accepted, "accepted"), status: served.status.map(Int.init),
        verdictStatus: verdict.map { $0.failed == nil ? 200 : $0.status }, reset: served.reset,
        isExcluded: served.goAway.map { $0.lastStream < connection.stream } ?? false, isClosed: served.closed != nil)
      if let contradiction = former.contradiction {
        throw json.problem("members that contradict each other: \(contradiction)")
      }
      return former.end
    case Self.newestFormat:
      let (decision, ending) = (try required(decision, "decision"), try required(ending, "ending"))
      guard AttemptEnd.isPossible(decision, ending) else {
        throw json.problem("decision \(decision.rawValue) contradicts ending \(ending.rawValue)")
      }
      if let accepted, accepted != (decision == .accepted) {
        throw json.problem("decision \(decision.rawValue) contradicts accepted \(accepted)")
      }
      return AttemptEnd(decision, ending)
    default:
      throw json.problem("format \(format) is unknown, use a newer version of apns-mock: this one knows 1 and 2")
    }
  }

  /// Reads the column `details` of a store; nil if it is damaged.
  init?(stored text: String) {
    var text = text
    let details = text.withUTF8 { bytes in
      let bytes = UnsafeRawBufferPointer(bytes)
      var json = JSONReader(bytes)
      return try? ImportedRecord(bytes, &json, isStored: true)
    }
    guard let details else { return nil }
    self = details
  }

  /// What happened beyond an ordinary response; nil if nothing did.
  var wireDetails: WireDetails? {
    let unusualReason = served.reason.flatMap { Reason(text: $0) == nil ? $0 : nil }
    guard
      !injections.isEmpty || unusualReason != nil || served.reset != nil || served.goAway != nil
        || served.closed != nil || violation != nil || endedAt != nil || upstream != nil
    else { return nil }
    return WireDetails(
      injections: Injections(injections), unusualReason: unusualReason, reset: served.reset, goAway: served.goAway,
      closed: served.closed, violation: violation, by: faultedBy.map { .seq($0) }, endedAt: endedAt,
      upstream: upstream)
  }
}

extension WireDetails.UpstreamAnswer {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    var status: Int?
    var texts: [String: String] = [:]
    var latency: Int64?
    var connection: Int?
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "status": status = try json.wholeOrNull()
      case "reason", "apns_id", "problem": texts[name] = try json.text()
      case "latency_ms":
        let milliseconds = try json.unlessNull { json throws(JSONText.Problem) in try json.number() }
        latency = milliseconds.flatMap { Int64(exactly: ($0 * 1e6).rounded()) }
      case "connection": connection = try json.wholeOrNull()
      default: break
      }
    }
    self.init(
      status: status, reason: texts["reason"], apnsID: texts["apns_id"], problem: texts["problem"], latency: latency,
      connection: connection)
  }
}

extension DeliveryState {
  /// Reads a state by its text; nil for null.
  fileprivate init?(_ json: inout JSONReader, _ name: String) throws(JSONText.Problem) {
    guard let text = try json.text() else { return nil }
    guard let state = DeliveryState(text: text) else { throw json.unknown(name, text) }
    self = state
  }
}

extension ImportedRecord.ConnectionMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "id": id = try json.string()
      case "stream": stream = try json.whole()
      case "client": client = try json.string()
      case "sni": sni = try json.text()
      case "tls": tls = try json.text()
      case "http": http = try json.choice(name) ?? .http2
      default: break
      }
    }
  }
}

extension ImportedRecord.RequestMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "method": method = try json.text()
      case "path": path = try json.text()
      case "headers": fields = try json.pairs()
      case "headers_base64": fieldBytes = try json.pairs()
      case "payload": payload = try json.verbatim()
      case "payload_error": payloadError = try json.text()
      case "body_base64": bodyBytes = try json.text()
      case "size":
        try json.object { name, json throws(JSONText.Problem) in
          if name == "bytes" { size = try json.whole() }
        }
      case "complete": isComplete = try json.unlessNull { json throws(JSONText.Problem) in try json.flag() }
      default: break
      }
    }
  }
}

extension ImportedRecord.IDMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "id": id = try json.text()
      case "id_origin": origin = try json.text()
      case "topic": topic = try json.text()
      default: break
      }
    }
  }
}

extension ImportedRecord.AuthMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "kind": kind = try json.text()
      case "team_id": teamID = try json.text()
      case "key_id": keyID = try json.text()
      case "issued_at": issuedAt = try json.time(name)
      case "signature": signature = try json.choice(name)
      case "certificate": certificate = try ProviderCertificate(&json)
      default: break
      }
    }
  }
}

extension ProviderCertificate {
  init(_ json: inout JSONReader) throws(JSONText.Problem) {
    self.init(
      subjectUID: nil, topics: [], development: false, production: false, commonName: nil, fingerprint: "")
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "subject_uid": subjectUID = try json.text()
      case "common_name": commonName = try json.text()
      case "fingerprint": fingerprint = try json.string()
      case "topics": topics = try json.strings()
      default: break
      }
    }
  }
}

extension ImportedRecord.VerdictMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "status": status = try json.wholeOrNull() ?? 200
      case "reason":
        guard let text = try json.text() else { return }
        reason = Reason(text: text)
        if reason == nil { throw json.unknown(name, text) }
      case "checks":
        try json.list { json throws(JSONText.Problem) in try readCheck(&json) }
      default: break
      }
    }
  }

  private mutating func readCheck(_ json: inout JSONReader) throws(JSONText.Problem) {
    var check: Check?
    var ok = true
    var detail = ""
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "check":
        let text = try json.string()
        check = Check(named: text)
        if check == nil { throw json.unknown(name, text) }
      case "ok": ok = try json.flag()
      case "detail": detail = try json.string()
      default: break
      }
    }
    guard let check else { throw json.problem("a check without a name") }
    if ok { passed.append(check) } else { failed = (check, detail) }
  }
}

extension Injection {
  fileprivate static func imported(_ json: inout JSONReader, by: inout Int?) throws(JSONText.Problem) -> [Injection] {
    var profile: String?
    var rule = ""
    var action: Action.Name?
    var draw: Double?
    var probability: Double?
    var ordinal = 0
    var others: [Injection] = []
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "profile": profile = try json.text()
      case "rule": rule = try json.string()
      case "action": action = try json.choice(name)
      case "draw": draw = try json.numberOrNull()
      case "p": probability = try json.numberOrNull()
      case "ordinal": ordinal = try json.whole()
      case "by": by = try json.otherSeq()
      case "also":
        var ignored: Int?
        try json.list { json throws(JSONText.Problem) in others += try Injection.imported(&json, by: &ignored) }
      default: break
      }
    }
    guard let action else { throw json.problem("a fault without an action") }
    let first = Injection(
      profile: profile, rule: rule, action: action.bare, continues: false, draw: draw, probability: probability,
      ordinal: ordinal)
    return [first] + others
  }
}

extension ImportedRecord.ServedMembers {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "status": status = try json.wholeOrNull()
      case "reason": reason = try json.text()
      case "reset": reset = try json.text()
      case "goaway": goAway = try json.unlessNull { json throws(JSONText.Problem) in try WireDetails.GoAway(&json) }
      case "closed": closed = try json.choice(name)
      case "latency_ms":
        latency = try json.unlessNull { json throws(JSONText.Problem) in
          let number = try json.number()
          guard let nanoseconds = Int64(exactly: (number * 1e6).rounded()) else {
            throw json.unknown(name, "\(number)")
          }
          return nanoseconds
        }
      // Format 1 has a text.
      case "latency":
        guard let text = try json.text() else { return }
        guard let duration = DurationFormat.duration(text) else { throw json.unknown(name, text) }
        latency = duration.nanoseconds
      default: break
      }
    }
  }
}

extension WireDetails.GoAway {
  fileprivate init(_ json: inout JSONReader) throws(JSONText.Problem) {
    var code = ""
    var lastStream: Int32 = 0
    var debugData = ""
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "code": code = try json.string()
      case "last_stream": lastStream = try json.whole()
      case "debug": debugData = try json.string()
      default: break
      }
    }
    self.init(code: code, lastStream: lastStream, debugData: debugData)
  }
}
