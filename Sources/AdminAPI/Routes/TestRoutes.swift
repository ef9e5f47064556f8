internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes for the end of a test: the checks of the provider, and the report of a failed test.
struct TestRoutes: Sendable {
  let state: ServerState

  var routes: [Route] { [.post("/check", check), .get("/report", report).onQueryExecutor] }

  private func check(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(CheckRequest.schema.parse)
    let checks = FinalChecks(failingFindings: body.findings, failsOnRejected: body.failsOnRejected)
    guard !checks.isEmpty else {
      throw Problem.badRequest(
        "nothing is to be checked",
        hint: "Set fail_on_findings to true or a list of names, or fail_on_rejected to true."
      )
    }
    let scope = body.scope.map { [(name: "scope", value: $0)] } ?? []
    return try await QueryExecutor.runLimited {
      let result = try await state.inbox.repeatingAfterReset {
        var result = try checks.result(in: state, of: try await selection(scope))
        result.isAnalyzed = checks.failingFindings.isEmpty ? true : try await isAnalyzed(scope)
        return result
      }
      return .json(status: result.isPassed ? .ok : .preconditionFailed) { result.write(to: &$0) }
    }
  }

  private func report(_ request: Request, _ context: AdminContext) async throws -> Response {
    let report = try FailureReport(state, of: try await selection(QueryParameters(request).all))
    return .json { $0.member("text", report.text) }
  }

  /// Returns whether all pushes of a scope were analyzed for findings. Without a store, none is from before the start.
  private func isAnalyzed(_ scope: [(name: String, value: String)]) async throws -> Bool {
    guard state.inbox.writer != nil else { return true }
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("no_findings", true)
      if let scope = scope.first { writer.member("scope", scope.value) }
    }
    let context = state.filterContext(state.inbox.snapshot())
    return try await state.verify(Verification(searching: writer.bytes, in: context))?.isAnalyzed ?? false
  }

  /// Returns the selection that parameters describe. It has records of all kinds, as the checks of `exec`.
  private func selection(_ parameters: [(name: String, value: String)]) async throws -> Selection {
    var selection = try await Selection(
      searching: parameters, in: state.filterContext(state.inbox.snapshot()))
    selection.includesAllKinds = true
    return selection
  }
}

/// The checks after a test.
struct CheckRequest {
  var findings: Set<Finding.Kind> = []
  var failsOnRejected = false
  var scope: String?

  static let schema = MapSchema(
    "CheckRequest", CheckRequest(),
    .defaulted(
      "fail_on_findings", \.findings, .failingFindings, default: "false",
      "Findings that are failures: a list of names, or true for all."),
    .defaulted("fail_on_rejected", \.failsOnRejected, .flag, "Whether a rejected push is a failure."),
    .optional("scope", \.scope, .text, default: "all pushes", "A query: only pushes that match are checked."))
}

extension Schema<Set<Finding.Kind>> {
  /// `true` for all findings, `false` for none, or a list of them.
  fileprivate static let failingFindings = Schema(
    form: .either(.flag, .list(Schema<Finding.Kind>.word.form)),
    parse: { parser, node in
      if case .scalar(let scalar) = node.content, !scalar.isString, let all = parser.parseFlag(node) {
        return all ? Set(Finding.Kind.allCases) : []
      }
      guard let names = Schema<[String]>.texts.parse(parser, node) else { return nil }
      var kinds: Set<Finding.Kind> = []
      for name in names {
        guard let kind = Finding.Kind(rawValue: name) else {
          parser.fail(
            node, "\(node.path) cannot have \"\(name.prefix(80))\"",
            hint: Finding.Kind.hint(forUnknown: name, all: "true"))
          return nil
        }
        kinds.insert(kind)
      }
      return kinds
    }, write: { _, writer in writer.null() })
}

extension FinalChecks.Result {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("passed", isPassed)
    writer.member("inconclusive", isInconclusive)
    writer.arrayMember("findings") { writer in
      for finding in findings.prefix(FinalChecks.maxReported) {
        writer.object { writer in
          writer.member("finding", finding.kind.rawValue)
          writer.member("seq", finding.seq)
          writer.member("explanation", finding.explanation)
        }
      }
    }
    writer.arrayMember("rejected") { writer in
      for rejection in rejections {
        writer.object { writer in
          writer.member("status", rejection.status)
          writer.member("reason", rejection.reason)
          writer.member("count", rejection.count)
          writer.arrayMember("seqs") { writer in
            for seq in rejection.seqs { writer.integer(seq) }
          }
          writer.member("advice", rejection.advice)
        }
      }
    }
    writer.member("evicted", evicted)
    writer.member("complete", isComplete)
    writer.member("analyzed", isAnalyzed)
    writer.member("text", lines.joined(separator: "\n"))
  }
}
