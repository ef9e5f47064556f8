internal import APNSRules
internal import FaultModel
internal import Faults
internal import Hummingbird
internal import Inbox
internal import MockAPNS
internal import Notation

/// Routes for the server as a whole: its status, and resetting it for the next test.
struct ServerRoutes: Sendable {
  let state: ServerState
  let version: String

  var routes: [Route] { [.get("/status", status), .post("/reset", reset)] }

  private func status(_ request: Request, _ context: BasicRequestContext) -> Response {
    let configuration = state.configuration
    let inbox = state.inbox.snapshot()
    let faults = state.faults.selection
    return .json { writer in
      writer.member("version", version)
      writer.member("phase", state.phase.name)
      writer.member("uptime", DurationFormat.text(.milliseconds(state.uptime / .milliseconds(1))))
      writer.member("seed", state.seed)
      writer.member("environment", configuration.environment.rawValue)
      writer.member("rules", configuration.rules.rawValue)
      writer.member("profile", faults.chosen.reference)
      writer.member("halted", faults.isPaused)
      writer.member("added_rules", faults.added.count)
      writer.objectMember("addresses") { writer in
        writer.arrayMember("apns") { writer in
          for address in state.apnsAddresses { writer.object { address.write(to: &$0) } }
        }
        writer.name("admin")
        if let address = state.adminAddress { writer.object { address.write(to: &$0) } } else { writer.null() }
      }
      writer.objectMember("ca") { writer in
        writer.member("path", state.certificates.caPath)
        writer.member("fingerprint", state.certificates.caFingerprint)
      }
      writer.objectMember("inbox") { Self.write(inbox, to: &$0) }
      writer.objectMember("limits") { writer in
        writer.member("max_records", configuration.maxRecords)
        writer.member("max_bytes", configuration.maxBytes)
      }
      writer.member("warnings", warnings(inbox))
    }
  }

  static func write(_ inbox: InboxSnapshot, to writer: inout JSONWriter) {
    writer.member("records", inbox.count)
    writer.member("bytes", inbox.bytes)
    writer.member("evicted", inbox.evicted)
    writer.member("last_seq", inbox.lastSeq)
  }

  private func warnings(_ inbox: InboxSnapshot) -> [String] {
    var warnings: [String] = []
    if let address = state.adminAddress, !address.isLoopback, state.configuration.adminToken == nil {
      warnings.append(
        "everybody who can reach \(address) can read and change everything: set --admin-token, or listen on 127.0.0.1")
    }
    if inbox.evicted > 0 {
      warnings.append(
        "\(inbox.evicted) pushes were evicted because the inbox is full: raise --max-records or --max-bytes")
    }
    if state.faults.selection.isPaused {
      warnings.append("fault injection is paused: the profile, rules and magic device tokens have no effect")
    }
    for problem in state.faults.folderProblems where problem.severity == .error { warnings.append("\(problem)") }
    return warnings
  }

  /// The parts of the state that can be reset.
  private static let scopes = ["inbox", "rules", "profile", "counters", "clock", "devices"]

  /// Returns the parts that a request to reset selects: everything for an empty body, otherwise the members that are
  /// true; `keep` lists exceptions from everything.
  private static func selection(_ body: JSONBody) throws(Problem) -> [String] {
    var isSilent = true
    var named: [String] = []
    for scope in scopes {
      guard let flag = try body.flag(scope) else { continue }
      isSilent = false
      if flag { named.append(scope) }
    }
    let all = try body.flag("all")
    guard let kept = try body.textOrTexts("keep") else { return all ?? isSilent ? scopes : named }
    for name in kept where !scopes.contains(name) {
      let guess = Spelling.nearest(to: name, among: scopes).map { "Did you mean \($0)? " } ?? ""
      throw .badRequest(
        "keep cannot have \"\(name.prefix(80))\"", hint: "\(guess)Expected \(scopes.joined(separator: ", ")).")
    }
    guard all ?? isSilent else {
      throw .badRequest(
        "keep excludes other members", hint: "Omit the other members, send all: true, or omit keep.")
    }
    return scopes.filter { !kept.contains($0) }
  }

  private func reset(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let chosen = try Self.selection(try await JSONBody(request, allowing: Self.scopes + ["all", "keep"]))
    if chosen.contains("rules") { state.faults.removeRules() }
    if chosen.contains("profile") { state.faults.restoreProfile() }
    if chosen.contains("counters") { state.resetCounters() }
    if chosen.contains("clock") { state.clock.runReal() }
    if chosen.contains("devices") { state.devices.update { $0.removeAll() } }
    // Report the reset once, after everything is done: together with emptying the inbox, otherwise as an event of
    // its own.
    if chosen.contains("inbox") {
      state.inbox.removeAll(reset: chosen)
    } else if !chosen.isEmpty {
      state.events.note(.reset) { $0.member("reset", chosen) }
    }
    return .json { $0.member("reset", chosen) }
  }
}

extension Endpoint {
  /// Writes the address's members.
  func write(to writer: inout JSONWriter) {
    writer.member("host", host)
    writer.member("port", port)
  }
}

extension ServerState.Phase {
  /// The phase's name in the API.
  var name: String {
    switch self {
    case .starting: "starting"
    case .ready: "ready"
    case .stopping: "stopping"
    }
  }
}
