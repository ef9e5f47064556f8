package import APNSMockRules
package import APNSMockNotation

/// The members of a record to show, such as `seq,apns.topic,served.status`.
package struct RecordMembers: Sendable {
  /// A requested member and, unless it is requested as a whole, its requested members.
  private struct Member: Sendable {
    let name: String
    var isWhole = false
    var members: [Member] = []
  }

  private var members: [Member] = []

  /// Creates a selection without members.
  package init() {}

  /// The names of all members that can be requested. Members of payloads and elements of lists cannot; they are
  /// shown as a whole.
  static let names = [
    "seq", "run", "test", "server", "server_seq", "accepted", "decision", "ending", "outcome", "violation", "delivery",
    "listener",
    "kind", "environment",
    "received_at", "finished_at",
    "push_key",
    "attempt",
    "connection", "connection.id", "connection.stream", "connection.client", "connection.sni", "connection.tls",
    "connection.http",
    "request", "request.method", "request.path", "request.device_token", "request.headers", "request.headers_base64",
    "request.payload", "request.payload_error", "request.body_base64", "request.size", "request.size.bytes",
    "request.size.limit", "request.complete",
    "apns", "apns.id", "apns.id_origin", "apns.topic", "apns.push_type", "apns.priority", "apns.expiration",
    "apns.collapse_id",
    "auth", "auth.kind", "auth.team_id", "auth.key_id", "auth.issued_at", "auth.age_ms", "auth.signature",
    "auth.certificate", "auth.certificate.subject_uid", "auth.certificate.common_name",
    "auth.certificate.fingerprint", "auth.certificate.topics",
    "verdict", "verdict.status", "verdict.reason", "verdict.checks",
    "fault", "fault.profile", "fault.rule", "fault.action", "fault.draw", "fault.p", "fault.ordinal",
    "fault.by", "fault.also",
    "served", "served.status", "served.reason", "served.reset", "served.goaway", "served.goaway.code",
    "served.goaway.last_stream", "served.goaway.debug", "served.closed", "served.latency_ms",
    "upstream", "upstream.status", "upstream.reason", "upstream.apns_id", "upstream.problem", "upstream.latency_ms",
    "upstream.connection", "upstream.deviating",
    "findings",
  ]

  /// Adds names separated by commas.
  ///
  /// - Throws: `FilterError` for an unknown name.
  package mutating func add(_ text: String) throws(FilterError) {
    for name in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
      guard Self.names.contains(name) else {
        let guess = Spelling.suggestion(for: name, among: Self.names)
        throw FilterError(
          field: "fields", value: name,
          hint: "\(guess)Use a list such as seq,apns.topic of \(Spelling.choices(for: name, among: Self.names)).")
      }
      Self.add(name.split(separator: ".").map(String.init)[...], to: &members)
    }
  }

  private static func add(_ path: ArraySlice<String>, to members: inout [Member]) {
    guard let name = path.first else { return }
    let index = members.firstIndex { $0.name == name } ?? members.endIndex
    if index == members.endIndex { members.append(Member(name: name)) }
    if path.count == 1 {
      members[index].isWhole = true
    } else {
      add(path.dropFirst(), to: &members[index].members)
    }
  }

  /// Whether findings are requested. Evidence from other records is looked up only then.
  var includesFindings: Bool { members.contains { $0.name == "findings" } }

  /// Writes the requested members of a record as the next value, in the order of the request. Members that the
  /// record lacks are null.
  package func write(_ record: Record, to writer: inout JSONWriter, rulebook: Rulebook, in inbox: Inbox? = nil) {
    var whole = JSONWriter()
    whole.object {
      record.writeMembers(to: &$0, rulebook: rulebook, in: inbox, findings: includesFindings ? nil : [])
    }
    whole.bytes.withUnsafeBytes { document in
      writer.object { Self.write(members, of: document, at: 0, to: &$0) }
    }
  }

  /// Writes the requested members of the object at a position of a document, which is read once.
  private static func write(
    _ members: [Member], of document: UnsafeRawBufferPointer, at position: Int, to writer: inout JSONWriter
  ) {
    var scanner = JSONScanner(document, at: position)
    var values = [Range<Int>?](repeating: nil, count: members.count)
    guard scanner.enterObject() else { return }
    while let found = scanner.nextMember() {
      let index = members.firstIndex {
        $0.name.utf8.count == found.name.count && $0.name.utf8.elementsEqual(document[found.name])
      }
      if let index { values[index] = found.value }
    }
    for (member, value) in zip(members, values) {
      writer.name(member.name)
      guard let value else {
        writer.null()
        continue
      }
      if !member.isWhole, document[value.lowerBound] == UInt8(ascii: "{") {
        writer.object { write(member.members, of: document, at: value.lowerBound, to: &$0) }
      } else {
        writer.verbatim(document.part(value))
      }
    }
  }
}
