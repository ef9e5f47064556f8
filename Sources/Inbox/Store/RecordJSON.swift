package import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
package import APNSMockNotation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// JSON serialization of a record, with the members and the order that the admin API documents.
extension Record {
  /// Writes the record as the next JSON value.
  ///
  /// - Parameters:
  ///   - rulebook: The rules that determine the findings. Findings are computed now, not when the push arrived.
  ///   - inbox: The inbox of the record, for findings that depend on other records. If nil, only findings that
  ///     follow from this record alone are written.
  package func write(to writer: inout JSONWriter, rulebook: Rulebook, in inbox: Inbox? = nil) {
    writer.object { writeMembers(to: &$0, rulebook: rulebook, in: inbox) }
  }

  /// Writes the members that only exports have.
  func writeExportMembers(to writer: inout JSONWriter, owner: RunAttribution.Owner?) {
    if let number = owner?.number { writer.member("test_number", number) }
    writer.member("format", ImportedRecord.newestFormat)
  }

  /// Writes the members of the record into an object that may have further members.
  ///
  /// - Parameters:
  ///   - name: What names the push; nil for its own name.
  ///   - owner: The run and the test of the push; nil for those that the inbox determines.
  ///   - findings: The names of the findings; nil for those that the inbox determines.
  ///   - shortensChecks: See `Verdict.writeMembers`.
  ///   - prefix: What the `id` of the connection begins with, beside those of other servers.
  package func writeMembers(
    to writer: inout JSONWriter, as name: PushName? = nil, rulebook: Rulebook, in inbox: Inbox? = nil,
    owner: RunAttribution.Owner? = nil, findings: [String]? = nil, shortensChecks: Bool = false,
    connection prefix: String = ""
  ) {
    let owner = owner ?? inbox?.runs.attribution.owner(of: self)
    writer.member("seq", name ?? self.name)
    writer.member("run", owner?.run)
    writer.member("test", owner?.test)
    writer.member(origin)
    writer.member("accepted", accepted)
    writer.member("decision", end.decision.rawValue)
    writer.member("ending", end.ending.rawValue)
    writer.member("outcome", outcome.rawValue)
    writer.member("violation", wireDetails?.violationText)
    writer.member("delivery", delivery?.text)
    writer.member("listener", connection.listener)
    writer.member("kind", kind.rawValue)
    writer.member("environment", connection.environment.rawValue)
    writer.member("received_at", TimestampFormat.text(receivedAt))
    writer.member("finished_at", finishedAt.flatMap(TimestampFormat.text))
    writer.member("push_key", pushKey.text)
    writer.member("attempt", attempt)
    writer.objectMember("connection") { writeConnection(&$0, prefix: prefix) }
    writer.objectMember("request", writeRequest)
    writer.objectMember("apns", writeAPNS)
    writer.objectMember("auth", writeAuth)
    writer.name("verdict")
    if let verdict { writer.object { write(verdict, to: &$0, shortensChecks: shortensChecks) } } else { writer.null() }
    writeFault(to: &writer)
    writer.objectMember("served", writeServed)
    writeUpstream(to: &writer)
    writer.member("findings", findings ?? findingNames(by: rulebook, in: inbox))
  }

  private func writeConnection(_ writer: inout JSONWriter, prefix: String) {
    writer.member("id", prefix + connection.id)
    writer.member("stream", stream)
    writer.member("client", connection.client)
    writer.member("sni", connection.sni)
    writer.member("tls", connection.tls)
    writer.member("http", connection.http.rawValue)
  }

  private func writeRequest(_ writer: inout JSONWriter) {
    writer.member("method", text(facts.method))
    writer.member("path", text(facts.path))
    writer.member("device_token", deviceToken)
    writer.arrayMember("headers", writeHeaders)
    if !hasTextHeaders { writer.arrayMember("headers_base64", writeHeaderBytes) }
    if let problem = payloadProblem {
      writer.nullMember("payload")
      writer.member("payload_error", problem)
    } else {
      writer.name("payload")
      withBody { writer.verbatim($0) }
      writer.nullMember("payload_error")
    }
    if !showsExactBody { writer.member("body_base64", Data(body).base64EncodedString()) }
    writer.objectMember("size") { writer in
      writer.member("bytes", bodySize)
      writer.member("limit", facts.payloadLimit)
    }
    writer.member("complete", isRequestComplete)
  }

  /// Writes the header fields in order of arrival as name and value pairs, without `:method` and `:path`, which have
  /// members of their own.
  private func writeHeaders(_ writer: inout JSONWriter) {
    withHeaders { packed in
      var fields: [(name: ByteRange, value: ByteRange)] = []
      HeaderList.forEachField(in: packed) { fields.append(($0, $1)) }
      for field in fields where field.value != facts.method && field.value != facts.path {
        let name = String(decoding: packed[field.name.indices], as: UTF8.self)
        let value = packed[field.value]
        writer.array { writer in
          writer.string(name)
          writer.string(Self.shown(value, of: name))
        }
      }
    }
  }

  /// Writes all header fields, names and values in Base64: `headers` is lossy where a field is not valid UTF-8.
  private func writeHeaderBytes(_ writer: inout JSONWriter) {
    withHeaders { packed in
      HeaderList.forEachField(in: packed) { name, value in
        writer.array { writer in
          writer.string(Data(packed[name.indices]).base64EncodedString())
          writer.string(Data(packed[value.indices]).base64EncodedString())
        }
      }
    }
  }

  private var hasTextHeaders: Bool {
    withHeaders { packed in
      var isText = true
      HeaderList.forEachField(in: packed) { name, value in
        isText =
          isText && String(validating: packed[name.indices], as: UTF8.self) != nil
          && String(validating: packed[value.indices], as: UTF8.self) != nil
      }
      return isText
    }
  }

  /// Whether the members `payload` and `size` reproduce the body byte for byte. False if the body is not JSON, was
  /// cut, contains a line break, or begins or ends with white space. True for an empty body.
  private var showsExactBody: Bool {
    guard bodySize > 0 else { return true }
    guard payloadProblem == nil else { return false }
    return withBody { body in
      !body.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        && body.first.map { $0 > 0x20 } ?? true && body.last.map { $0 > 0x20 } ?? true
    }
  }

  private func writeAPNS(_ writer: inout JSONWriter) {
    let id = apnsID
    writer.member("id", id)
    writer.member("id_origin", id == nil ? nil : idOrigin)
    writer.member("topic", topic)
    writer.member("push_type", pushType)
    writer.member("priority", priority)
    writer.member("expiration", expiration)
    writer.member("collapse_id", collapseID)
  }

  /// Who made the `apns-id`. That of upstream is not stored as one of this server.
  private var idOrigin: String {
    if head({ $0.idSize }) > 0 { return "server" }
    return withID { $0 != nil } ? "client" : "server"
  }

  private func writeAuth(_ writer: inout JSONWriter) {
    let credential = verdict?.credential ?? .none
    let token = credential == .token ? verdict?.token : nil
    writer.member("kind", credential.name)
    writer.member("team_id", token?.teamID)
    writer.member("key_id", token?.keyID)
    writer.member("issued_at", token?.issuedAt.flatMap(TimestampFormat.text))
    writer.member("age_ms", token?.issuedAt.flatMap(age))
    writer.member("signature", token?.signature.rawValue)
    guard credential == .certificate, let certificate = connection.certificate else { return }
    writer.objectMember("certificate", certificate.write)
  }

  func write(_ verdict: Verdict, to writer: inout JSONWriter, shortensChecks: Bool = false) {
    verdict.writeMembers(to: &writer, shortensChecks: shortensChecks) { detail(of: verdict) }
  }

  /// Writes the decisive injection, and under `also` the other injections that contributed.
  func writeFault(to writer: inout JSONWriter) {
    guard let injections = wireDetails?.injections, let first = injections.first else {
      return writer.nullMember("fault")
    }
    writer.objectMember("fault") { writer in
      Self.write(first, to: &writer)
      writer.member("by", faultedBy.map(name(ofOther:)))
      guard injections.count > 1 else { return }
      writer.arrayMember("also") { writer in
        for injection in injections.dropFirst() { writer.object { Self.write(injection, to: &$0) } }
      }
    }
  }

  private static func write(_ injection: Injection, to writer: inout JSONWriter) {
    writer.member("profile", injection.profile)
    writer.member("rule", injection.rule)
    writer.member("action", injection.action.name.rawValue)
    writer.member("draw", injection.draw)
    writer.member("p", injection.probability)
    writer.member("ordinal", injection.ordinal)
  }

  func writeServed(_ writer: inout JSONWriter) {
    writer.member("status", sentResponse.status)
    writer.member("reason", sentReason)
    writer.member("reset", wireDetails?.reset)
    if let goAway = wireDetails?.goAway {
      writer.objectMember("goaway") { writer in
        writer.member("code", goAway.code)
        writer.member("last_stream", goAway.lastStream)
        writer.member("debug", goAway.debugData)
      }
    } else {
      writer.nullMember("goaway")
    }
    writer.member("closed", wireDetails?.closed?.rawValue)
    writer.member("latency_ms", sentResponse.latencyNanoseconds.map { Double($0) / 1e6 })
  }
}

extension Record {
  /// Whether upstream's answer differs, in status or reason, from that of APNs' rules. False for a push without an answer.
  package var isDeviating: Bool {
    guard let upstream = wireDetails?.upstream, let status = upstream.status, let verdict else { return false }
    return status != verdict.status || upstream.reason != verdict.reason?.text
  }

  /// Writes what upstream did with the push as a member; nothing for a push that was not forwarded.
  func writeUpstream(to writer: inout JSONWriter) {
    guard let upstream = wireDetails?.upstream else { return }
    writer.objectMember("upstream") { writer in
      writer.member("status", upstream.status)
      writer.member("reason", upstream.reason)
      writer.member("apns_id", upstream.apnsID)
      writer.member("problem", upstream.problem)
      writer.member("latency_ms", upstream.latency.map { Double($0) / 1e6 })
      writer.member("connection", upstream.connection)
      writer.member("deviating", isDeviating)
    }
  }
}

extension JSONWriter {
  /// Writes the server and the number of a record of a view of several servers as members; nothing for nil.
  mutating func member(_ origin: RecordOrigin?) {
    guard let origin else { return }
    member("server", origin.server)
    member("server_seq", origin.seq)
  }
}

/// Values derived from the stored content of a record.
extension Record {
  /// The device token in the path, lowercased, whether well formed or not; nil if the path has none.
  package var deviceToken: String? { text(facts.deviceToken)?.lowercased() }

  /// The push's `apns-id`: the client's, or the one that the server generated; nil without one.
  package var apnsID: String? { withID { $0.map { TokenRedaction.text($0) } } ?? wireDetails?.upstream?.apnsID }

  /// The topic: that of the header, else the only one that the provider certificate allows; nil without one.
  package var topic: String? { withTopic { $0.map { TokenRedaction.text($0) } } }

  /// The value of `apns-push-type`, valid or not; nil without one.
  package var pushType: String? { text(facts.pushTypeText) }

  /// The value of `apns-collapse-id`; nil without one.
  package var collapseID: String? { text(facts.collapseID) }

  /// The header fields with the pseudo header fields, in order of arrival. The signature of a JWT is shown as an
  /// ellipsis.
  package var headers: [(name: String, value: String)] {
    withHeaders { packed in
      var fields: [(String, String)] = []
      HeaderList.forEachField(in: packed) { name, value in
        let name = String(decoding: packed[name.indices], as: UTF8.self)
        let value = packed[value]
        fields.append((name, Self.shown(value, of: name)))
      }
      return fields
    }
  }

  /// The reason in the response that was sent; nil without one.
  package var sentReason: String? { sentResponse.reason?.text ?? wireDetails?.unusualReason }

  /// The push's priority, 10 if the request has no `apns-priority`; nil if that header is invalid.
  package var priority: UInt8? { facts.priority == 0 ? nil : facts.priority }

  /// The time at which the push expires: the digits of the request if it lies after the year 9999; nil without one.
  private var expiration: String? {
    guard let seconds = facts.expiration else { return nil }
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return (overflow ? nil : TimestampFormat.text(milliseconds)) ?? text(facts.expirationText)
  }

  /// The age in milliseconds of the provider token when the push arrived.
  private func age(issuedAt: Int64) -> Int64? {
    let (age, overflow) = receivedAt.subtractingReportingOverflow(issuedAt)
    return overflow ? nil : age
  }

  /// The reason why the body cannot be shown as JSON; nil if it can.
  package var payloadProblem: String? {
    if bodySize == 0 { return "the body is empty" }
    if isBodyCut { return "the body has \(bodySize) bytes, of which the first \(keptBodySize) are stored" }
    return withBody { JSONText.problem(in: $0).map { "the body is not JSON: \($0)" } }
  }

  /// The value of a field for display. A signature, which was overwritten with zeros when the record was made, is shown
  /// as an ellipsis.
  static func shown(_ value: UnsafeRawBufferPointer, of name: String) -> String {
    guard name == "authorization", let blanked = value.firstIndex(of: 0) else { return TokenRedaction.text(value) }
    return String(decoding: value[..<blanked], as: UTF8.self) + TokenRedaction.ellipsis
  }
}

extension ProviderCertificate {
  /// Writes the certificate as members of an object.
  func write(to writer: inout JSONWriter) {
    writer.member("subject_uid", subjectUID)
    writer.member("common_name", commonName)
    writer.member("fingerprint", fingerprint)
    writer.member("topics", topics)
  }
}

extension Verdict.Credential {
  /// The kind of credential in a record.
  var name: String {
    switch self {
    case .none: "none"
    case .token: "token"
    case .certificate: "certificate"
    }
  }
}

extension Verdict {
  /// Writes the status, the reason and the checks as members of an object.
  ///
  /// - Parameters:
  ///   - shortensChecks: Whether the checks that passed are one number, `passed`, with a bit for each of `Check.allCases`, the first
  ///     one being the lowest. As objects they are half of a record.
  ///   - detail: Returns the explanation of the failed check.
  package func writeMembers(to writer: inout JSONWriter, shortensChecks: Bool = false, detail: () -> String) {
    let checks = checks
    writer.member("status", status)
    writer.member("reason", reason?.text)
    if shortensChecks {
      let passed = checks.lazy.filter(\.ok).map { Check.allCases.firstIndex(of: $0.check) ?? 0 }
      writer.member("passed", passed.reduce(0) { $0 | 1 << $1 })
    }
    writer.arrayMember("checks") { writer in
      for (check, ok) in checks where !(ok && shortensChecks) {
        writer.object { writer in
          writer.member("check", check.name)
          writer.member("ok", ok)
          if !ok { writer.member("detail", detail()) }
        }
      }
    }
  }
}
