internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// The profile to activate.
struct ProfileRequest {
  var name = ""
  var parameters: [String: String?] = [:]
  var seed: UInt64?
  var timeToLive: Duration?
  var scope: String?
  var run: String?

  static let schema = MapSchema(
    "ProfileRequest", ProfileRequest(),
    .required(
      "name", \.name, .text, example: "flaky-503 or flaky-503?rate=0.4",
      "The name of the profile, or a reference with parameters."),
    .defaulted(
      "params", \.parameters, .scalars, default: "those of the reference",
      "Values of its parameters; null sets a parameter to its default."),
    .optional("seed", \.seed, .integer(0...UInt64(Int64.max)), "The seed of the draws."),
    .optional("ttl", \.timeToLive, .positiveDuration, "The time after which `healthy` becomes active again."),
    .optional(
      "scope", \.scope, .text, default: "all pushes",
      "A query: the profile applies only to pushes that match, in addition to the active profile."),
    .optional(
      "run", \.run, .text, default: "none",
      "The id of an open run: the profile applies only to its pushes, in addition to the active profile, until the run ends."
    ))
}

/// Routes for the active faults: the profile, its parameters, the counters of its rules, and pausing.
struct FaultRoutes: Sendable {
  let state: ServerState

  private var faults: FaultControl { state.faults }

  var routes: [Route] {
    [
      .get("/profile", show), .put("/profile", use), .delete("/profile", useHealthy),
      .patch("/profile/params", setParameters),
      .post("/faults/halt") { request, _ in try await setPaused(true, request) },
      .post("/faults/resume") { request, _ in try await setPaused(false, request) },
    ]
  }

  private func show(_ request: Request, _ context: AdminContext) -> Response { shown }

  private func use(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(ProfileRequest.schema.parse)
    let choice = try ProfileChoice(body.name, body.parameters, faults.library.load())
    guard body.scope != nil || body.run != nil else {
      faults.use(choice.chosen, seed: body.seed, timeToLive: body.timeToLive)
      return shown
    }
    guard body.seed == nil else {
      throw Problem.badRequest(
        "seed applies to all pushes", hint: "Omit it, or set it with the profile that has no scope and no run.")
    }
    let binding = try state.binding(scope: body.scope, run: body.run)
    guard try faults.use(choice.chosen, boundTo: binding, timeToLive: body.timeToLive) else { throw Problem.ruleLimit }
    state.runsDidChange()
    return shown
  }

  private func useHealthy(_ request: Request, _ context: AdminContext) throws -> Response {
    var parameters = try QueryParameters(request)
    let (scope, run) = (try parameters.remove("scope"), try parameters.remove("run"))
    if let other = parameters.all.first?.name {
      throw Problem.badRequest(
        "the query has an unknown parameter \"\(other.prefix(80))\"", hint: "The parameters are scope and run.")
    }
    if scope == nil, run == nil { faults.useHealthy() } else { faults.removeProfile(scope: scope, run: run) }
    return shown
  }

  private func setParameters(_ request: Request, _ context: AdminContext) async throws -> Response {
    let values = try await JSONBody(request).parse { Schema<[String: String?]>.scalars.parse($1, $0) }
    guard !values.isEmpty else {
      throw Problem.badRequest(
        "the body has no parameter", hint: #"Send the parameters to set, such as {"rate": 0.4}."#)
    }
    let defaults = faults.selection.profile.parameters.reduce(into: [:]) { $0[$1.name] = $1.defaultValue }
    // Null resets a parameter to its default. An unknown parameter has none and is rejected with any value.
    let parameters = values.reduce(into: [String: String]()) { $0[$1.key] = $1.value ?? defaults[$1.key] ?? "" }
    try faults.setParameters(parameters)
    return shown
  }

  /// Pauses or resumes fault injection. The active profile and rules are kept.
  private func setPaused(_ isPaused: Bool, _ request: Request) async throws -> Response {
    _ = try await JSONBody(request).parse(EmptyBody.schema.parse)
    faults.setPaused(isPaused)
    return .json { $0.member("halted", isPaused) }
  }

  private var shown: Response {
    let selection = faults.selection
    let profile = selection.profile
    let counts = RuleCounts(faults.counters)
    return .json { writer in
      writer.member("name", profile.name)
      writer.member("summary", profile.summary)
      writer.member("reference", selection.selectedProfile.reference)
      writer.objectMember("params") { writer in
        for parameter in profile.parameters { parameter.writeValue(to: &writer) }
      }
      writer.arrayMember("knobs") { profile.parameters.write(to: &$0) }
      writer.member("seed", selection.seed)
      writer.member("halted", selection.isPaused)
      writer.member("ends_in_ms", RemainingTime.milliseconds(until: selection.endsAt))
      writer.arrayMember("rules") { writer in
        for rule in profile.rules {
          writer.object { writer in
            writer.member("name", rule.name)
            writer.member("at", rule.injectionPoint.rawValue)
            writer.member("action", rule.action.name.rawValue)
            counts.write(rule.name, of: profile.name, to: &writer)
          }
        }
      }
      writer.arrayMember("bound") { writer in
        for rules in selection.boundProfiles { writer.object { Self.write(rules, to: &$0) } }
      }
    }
  }

  /// Writes a profile that is bound to some pushes.
  private static func write(_ rules: [FaultControl.AddedRule], to writer: inout JSONWriter) {
    writer.member("reference", rules.first?.profile)
    writer.member("scope", rules.first?.binding.scope)
    writer.member("run", rules.first?.binding.run)
    writer.member("ends_in_ms", RemainingTime.milliseconds(until: rules.first?.endsAt))
    writer.member("rules", rules.map(\.rule.name))
  }
}
