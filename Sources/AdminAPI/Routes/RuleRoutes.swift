internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes for rules added to those of the profile, and for the explanation of any rule.
struct RuleRoutes: Sendable {
  let state: ServerState

  private var faults: FaultControl { state.faults }

  var routes: [Route] {
    [
      .get("/rules", list), .post("/rules", add), .get("/rules/:name", show), .put("/rules/:name", set),
      .delete("/rules/:name", remove), .get("/rules/:name/explain", explain), .post("/faults/preview", preview),
    ]
  }

  private func list(_ request: Request, _ context: AdminContext) -> Response {
    let added = faults.selection.added
    let counts = RuleCounts(faults.counters)
    return .json { writer in
      writer.arrayMember("items") { writer in
        for rule in added { rule.write(counts, to: &writer) }
      }
      writer.member("total", added.count)
    }
  }

  private func add(_ request: Request, _ context: AdminContext) async throws -> Response {
    let text = try await DocumentBody.text(of: request)
    return try put(try faults.parseRule(text))
  }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let name = context.parameters.get("name") ?? ""
    if let problem = ProfileName.problem(with: name) {
      throw Problem.badRequest("\"\(name.prefix(80))\" is not a valid rule name", hint: "In the path, \(problem).")
    }
    let text = try await DocumentBody.text(of: request)
    let definition = try AddedRuleDefinition.parse(text, defaultName: name)
    guard definition.rule.name == name else {
      throw Problem.badRequest("the body has another rule name than the path", hint: "Omit name in the body.")
    }
    return try put(definition)
  }

  /// The number of newest records that a rule is evaluated for before it is added.
  private static let previewedPushes = 1000

  /// Lints a rule, and evaluates it for the newest records without adding it.
  private func preview(_ request: Request, _ context: AdminContext) async throws -> Response {
    let text = try await DocumentBody.text(of: request)
    let definition: AddedRuleDefinition
    do throws(ProfileFailure) {
      definition = try AddedRuleDefinition.parse(text)
    } catch {
      return .json { writer in
        writer.member("valid", false)
        writer.arrayMember("problems") { error.problems.write(to: &$0) }
        RulePreview().writeMembers(to: &writer)
      }
    }
    let snapshot = state.inbox.snapshot()
    let rule = try state.binding(scope: definition.scope, run: definition.run).applied(to: definition.rule)
    let seed = faults.selection.seed
    let result = try await QueryExecutor.runLimited {
      try await RulePreview(of: rule, seed: seed, newest: Self.previewedPushes, in: snapshot)
    }
    return .json { writer in
      writer.member("valid", true)
      writer.arrayMember("problems") { definition.warnings.write(to: &$0) }
      result.writeMembers(to: &writer)
    }
  }

  private func put(_ definition: AddedRuleDefinition) throws -> Response {
    let name = definition.rule.name
    let result = try state.add(definition)
    guard result != .limitReached else { throw Problem.ruleLimit }
    // Missing only if the rule's time to live was shorter than this.
    guard let rule = faults.selection.added.first(where: { $0.rule.name == name }) else {
      throw Problem.notFound("the rule \(name) has already expired", hint: "Specify a longer ttl.")
    }
    return .stored(at: "/rules/\(name)", isNew: result == .added) { writer in
      rule.write(RuleCounts(faults.counters), warnings: definition.warnings, to: &writer)
    }
  }

  private func show(_ request: Request, _ context: AdminContext) throws -> Response {
    let name = context.parameters.get("name") ?? ""
    guard let rule = faults.selection.added.first(where: { $0.rule.name == name }) else { throw unknown(name) }
    return .jsonValue { rule.write(RuleCounts(faults.counters), to: &$0) }
  }

  private func remove(_ request: Request, _ context: AdminContext) throws -> Response {
    let name = context.parameters.get("name") ?? ""
    guard faults.removeRule(name) else { throw unknown(name) }
    return Response(status: .noContent)
  }

  private func unknown(_ name: String) -> Problem {
    let selection = faults.selection
    if selection.profile.rules.contains(where: { $0.name == name }) {
      return .notFound(
        "the rule \(name) is one of the profile \(selection.profile.name)",
        hint: "GET /api/v1/profile shows it, GET /api/v1/rules/\(name)/explain explains what it did.")
    }
    return missing(name, among: selection.added.map(\.rule.name))
  }

  private func missing(_ name: String, among names: [String]) -> Problem {
    let guess = Spelling.suggestion(for: name, among: names)
    let list = names.listed(20)
    return .notFound(
      "unknown rule \"\(name.prefix(80))\"",
      hint: names.isEmpty ? "No rules are active; a rule with a ttl expires." : "\(guess)The rules are \(list).")
  }

  private func explain(_ request: Request, _ context: AdminContext) throws -> Response {
    let name = context.parameters.get("name") ?? ""
    guard let explanation = faults.counters.explain(name) else {
      let selection = faults.selection
      throw missing(name, among: selection.added.map(\.rule.name) + selection.profile.rules.map(\.name))
    }
    return .jsonValue(explanation.write)
  }
}

extension FaultControl.AddedRule {
  /// Writes the rule with its remaining time and its counts as the next value.
  ///
  /// - Parameter warnings: The warnings of the parser; nil to omit them.
  fileprivate func write(
    _ counts: RuleCounts, warnings: [ProfileProblem]? = nil, to writer: inout JSONWriter
  ) {
    rule.write(to: &writer) { writer in
      writer.member("scope", binding.scope)
      writer.member("run", binding.run)
      writer.member("profile", profile)
      writer.member("ends_in_ms", RemainingTime.milliseconds(until: endsAt))
      counts.write(rule.name, of: nil, to: &writer)
      if let warnings { writer.arrayMember("problems") { warnings.write(to: &$0) } }
    }
  }
}

extension Problem {
  /// The problem of too many rules.
  static var ruleLimit: Problem {
    Problem(
      status: .conflict, detail: "the limit of \(FaultControl.ruleLimit) rules is reached",
      hint: "Remove some, or all of them with POST /api/v1/reset {\"rules\": true}.")
  }
}

/// A snapshot of how often each active rule was evaluated and fired.
struct RuleCounts {
  private struct Key: Hashable {
    var profile: String?
    var rule: String
  }

  private let counts: [Key: (evaluations: Int, fired: Int)]

  init(_ ruleCounters: RuleCounters) {
    counts = Dictionary(
      ruleCounters.explanations.map {
        (Key(profile: $0.profile, rule: $0.rule), (evaluations: $0.evaluations, fired: $0.fired))
      },
      uniquingKeysWith: { first, _ in first })
  }

  /// Writes the counts of a rule as two members.
  ///
  /// - Parameter profile: The rule's profile; nil for an added rule.
  func write(_ rule: String, of profile: String?, to writer: inout JSONWriter) {
    let count = counts[Key(profile: profile, rule: rule)]
    writer.member("looked_at", count?.evaluations ?? 0)
    writer.member("fired", count?.fired ?? 0)
  }
}

/// Formats the time until an expiry.
enum RemainingTime {
  /// Returns the remaining time; nil if there is no expiry.
  ///
  /// - Parameter expiry: The expiry, in monotonic nanoseconds.
  static func milliseconds(until expiry: Int64?) -> Int64? {
    expiry.map { max(0, $0 - MachineTime.nanoseconds) / 1_000_000 }
  }
}
