internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes for the server as a whole: its status, and resetting it for the next test.
struct ServerRoutes: Sendable {
  let state: ServerState
  let version: String

  var routes: [Route] { [.get("/status", status), .post("/reset", reset)] }

  private func status(_ request: Request, _ context: AdminContext) -> Response {
    let configuration = state.configuration
    let inbox = state.inbox.snapshot()
    let faults = state.faults.selection
    return .json { writer in
      writer.member("version", version)
      writer.member("phase", state.phase.name)
      writer.member("uptime_ms", Int64(state.uptime / .milliseconds(1)))
      writer.member("seed", state.seed)
      writer.member("environment", configuration.environment.rawValue)
      writer.member("rules", configuration.rules.rawValue)
      writer.member("profile", faults.selectedProfile.reference)
      writer.member("halted", faults.isPaused)
      writer.member("added_rules", faults.added.count)
      writer.objectMember("addresses") { writer in
        let listeners = state.listeners
        func write(_ name: String, _ isIncluded: (ListenerKind) -> Bool) {
          writer.arrayMember(name) { writer in
            for listener in listeners where isIncluded(listener.kind) { writer.object(listener.write) }
          }
        }
        write("apns", \.isAPNs)
        write("apns_plain") { $0 == .cleartext }
        if let proxy = listeners.first(where: { $0.kind == .connectProxy }) {
          writer.objectMember("proxy", proxy.write)
        } else {
          writer.nullMember("proxy")
        }
        write("manage") { $0 == .management }
        writer.member("admin", state.adminAddress)
      }
      writer.objectMember("ca") { writer in
        writer.member("path", state.certificates.caPath)
        writer.member("fingerprint", state.certificates.caFingerprint)
      }
      writer.objectMember("inbox") { inbox.write(to: &$0, of: state.inbox) }
      if let store = state.inbox.writer {
        writer.objectMember("store") { store.write(to: &$0) }
      } else {
        writer.nullMember("store")
      }
      writer.objectMember("limits") { writer in
        writer.member("max_records", configuration.maxRecords == .max ? nil : configuration.maxRecords)
        writer.member("max_bytes", configuration.maxBytes == .max ? nil : configuration.maxBytes)
        writer.member("record", configuration.recording.text)
      }
      if let upstream = state.upstream {
        writer.objectMember("upstream") { upstream.write(to: &$0) }
      } else {
        writer.nullMember("upstream")
      }
      writer.member("warnings", warnings(inbox))
    }
  }

  private func warnings(_ inbox: InboxSnapshot) -> [String] {
    var warnings: [String] = []
    if let address = state.adminAddress,
      let warning = AdminServer.openListenerWarning(at: address, token: state.configuration.adminToken)
    {
      warnings.append(warning)
    }
    if inbox.evicted > 0 {
      let recording = state.configuration.recording
      let cause =
        if recording != .all {
          "not kept because of --record \(recording.text): use --record all"
        } else if state.inbox.writer == nil {
          "evicted because the inbox is full: raise --max-records or --max-bytes"
        } else {
          "removed (--retain, --max-records, --max-bytes) or lost: a verification that includes them is inconclusive"
        }
      warnings.append("\(inbox.evicted) pushes were \(cause)")
    }
    if state.faults.selection.isPaused {
      warnings.append("fault injection is paused: the profile, rules and magic device tokens have no effect")
    }
    if state.chain.authority == .next {
      warnings.append(
        "the server presents a certificate of ca-next.pem: run apns-mock certs rotate --to current to go back")
    }
    if let store = state.inbox.writer {
      let figures = store.figures
      if let problem = figures.problem { warnings.append("the store \(store.store.place) fails: \(problem)") }
      if figures.lost > 0 { warnings.append("\(figures.lost) pushes were lost because the store failed") }
      if figures.refused > 0 { warnings.append("\(figures.refused) pushes were refused because the store failed") }
    }
    for problem in state.faults.folderProblems where problem.severity == .error { warnings.append("\(problem)") }
    return warnings
  }

  private func reset(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(ResetRequest.schema.parse)
    if let scope = try body.onlyScope() { return try await reset(scope) }
    let parts = try body.parts()
    state.reset(Set(parts))
    if parts.contains(.inbox) { try state.inbox.checkIsEmptied() }
    return .json { $0.member("reset", parts.map(\.rawValue)) }
  }

  private func reset(_ scope: String) async throws -> Response {
    let deleted = try await QueryExecutor.run {
      let context = state.filterContext(state.inbox.snapshot())
      let selection = try await Selection(searching: [(name: "scope", value: scope)], in: context)
      return try await state.reset(selection, query: scope)
    }
    return .json { writer in
      writer.member("reset", [MockServer.ResetPart.inbox.rawValue])
      writer.member("scope", scope)
      writer.member("deleted", deleted)
    }
  }
}

/// What to reset: parts of the server, everything except some, or the pushes that match a query.
struct ResetRequest {
  var flags: [MockServer.ResetPart: Bool] = [:]
  var all: Bool?
  var kept: [String]?
  var scope: String?

  private static let flagFields: [Field<Self>] = MockServer.ResetPart.allCases.map { part in
    .optional(part.rawValue, \.flags[part], .flag, "Whether to reset it.")
  }

  static let schema = MapSchema(
    "ResetRequest", ResetRequest(),
    fields: flagFields + [
      .optional("all", \.all, .flag, default: "true without other members", "Whether to reset everything."),
      .optional("keep", \.kept, .textOrTexts, "The parts to keep: everything else is reset."),
      .optional("scope", \.scope, .text, "A query: only pushes that match are deleted."),
    ])

  /// The parts that are selected: everything for an empty body, otherwise the members that are true; `keep` lists
  /// exceptions from everything.
  fileprivate func parts() throws(Problem) -> [MockServer.ResetPart] {
    let selectsAll = all ?? flags.isEmpty
    guard let kept else { return MockServer.ResetPart.allCases.filter { selectsAll || flags[$0] == true } }
    let names = MockServer.ResetPart.allCases.map(\.rawValue)
    for name in kept where !names.contains(name) {
      let guess = Spelling.suggestion(for: name, among: names)
      throw .badRequest("keep cannot have \"\(name.prefix(80))\"", hint: "\(guess)Expected \(names.joinedWithOr).")
    }
    guard selectsAll else {
      throw .badRequest(
        "keep excludes other members", hint: "Omit the other members, send all: true, or omit keep.")
    }
    return MockServer.ResetPart.allCases.filter { !kept.contains($0.rawValue) }
  }

  /// The query; nil if the body selects parts.
  fileprivate func onlyScope() throws(Problem) -> String? {
    guard let scope else { return nil }
    guard flags.isEmpty, all == nil, kept == nil else {
      throw .badRequest(
        "scope excludes other members",
        hint: "Omit the other members: only pushes belong to a scope, and all other parts are shared.")
    }
    return scope
  }
}

extension UpstreamPool {
  /// Writes where pushes are forwarded to, and what became of them, as members.
  fileprivate func write(to writer: inout JSONWriter) {
    let figures = figures
    writer.member("url", "https://\(settings.authority)")
    writer.member("proxy", settings.proxy?.endpoint.description)
    writer.member("connections", figures.connections)
    writer.member("connections_made", figures.connectionsMade)
    writer.member("max_connections", settings.connections)
    writer.member("max_concurrent_streams", figures.settings?.maxConcurrentStreams.map { Int($0) })
    writer.member("waiting", figures.waiting)
    writer.member("open", figures.open)
    writer.member("answered", figures.answered)
    writer.member("refused", figures.refused)
    writer.member("unknown", figures.unknown)
    writer.arrayMember("problems") { writer in
      for problem in figures.problems {
        writer.object { writer in
          writer.member("text", problem.text)
          writer.member("count", problem.count)
        }
      }
    }
  }
}

extension Inbox {
  /// Waits until the store has removed the pushes of an inbox that was emptied.
  ///
  /// - Throws: `StoreUnavailable` if that fails or takes long.
  func checkIsEmptied() throws(StoreUnavailable) {
    guard let writer, !writer.flush() else { return }
    throw StoreUnavailable(problem: "the inbox is empty, but would have its pushes again after a restart")
  }
}

extension InboxSnapshot {
  /// Writes the size of the inbox as members.
  func write(to writer: inout JSONWriter, of inbox: Inbox) {
    writer.member("id", inbox.isOfSeveralServers ? nil : inbox.id)
    writer.member("records", count)
    writer.member("bytes", bytes)
    writer.member("evicted", evicted)
    // The newest push of a view is that of a server, which only the database knows.
    writer.member("last_seq", inbox.isOfSeveralServers ? nil : PushName.seq(lastSeq))
  }
}

extension JSONWriter {
  /// Writes an address as a member; null for nil.
  mutating func member(_ name: String, _ address: MockServer.Endpoint?) {
    guard let address else { return nullMember(name) }
    objectMember(name, address.write)
  }
}

extension MockServer.Endpoint {
  /// Writes the address's members.
  func write(to writer: inout JSONWriter) {
    writer.member("host", host)
    writer.member("port", port)
  }
}

extension BoundListener {
  /// Writes the listener's members.
  fileprivate func write(to writer: inout JSONWriter) {
    endpoint.write(to: &writer)
    writer.member("environment", environment.rawValue)
  }
}

extension ServerState.Phase {
  /// The phase's name in the API.
  var name: String {
    switch self {
    case .starting: "starting"
    case .standby: "standby"
    case .ready: "ready"
    case .stopping: "stopping"
    }
  }
}
