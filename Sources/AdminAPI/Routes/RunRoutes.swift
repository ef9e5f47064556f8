internal import Hummingbird
internal import APNSMockInbox
internal import APNSMockRules
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import APNSMockNotation

/// A run that begins or changes.
struct RunRequest {
  var changes = RunList.RunChanges()
  var labels: [String: String?] = [:]

  static let schema = MapSchema(
    "RunChanges", RunRequest(),
    .optional("name", \.changes.name, .text, "The name, cut to 1,000 bytes."),
    .defaulted("labels", \.labels, .scalars, default: "none", "Added to the labels of the run, at most 50."),
    .optional(
      "scope", \.changes.scope, .text, default: "all pushes while it is the only open run",
      "A query on the push alone that selects the pushes of the run."),
    .optional("command", \.changes.command, .text, "The command that repeats the run."),
    .optional("outcome", \.changes.outcome, .word, "The outcome."),
    .defaulted("ended", \.changes.isEnded, .flag, "Whether the run has ended."))
}

/// A test that begins.
struct TestRequest {
  var name = ""
  var scope: String?

  static let schema = MapSchema(
    "RunTestStart", TestRequest(),
    .required(
      "name", \.name, .text, example: "tests/test_retry.py::test_503",
      "The name as the test framework prints it, cut to 1,000 bytes."),
    .optional(
      "scope", \.scope, .text, default: "all pushes while it is the only open test",
      "A query on the push alone that selects the pushes of the test."))
}

/// The end of a test.
struct TestEndRequest {
  var outcome = RunOutcome.passed
  var message: String?

  static let schema = MapSchema(
    "RunTestEnd", TestEndRequest(),
    .required("outcome", \.outcome, .word, example: "failed", "The outcome."),
    .optional("message", \.message, .text, "Why it failed, cut to 4,000 bytes."))
}

/// Routes of the runs of test suites, their tests and their reports.
struct RunRoutes: Sendable {
  let source: any InboxSource
  /// The running server; nil for an imported inbox, whose runs can only be read.
  var state: ServerState?
  let version: String

  var routes: [Route] {
    let reading: [Route] = [.get("/runs", list), .get("/runs/:id", show), .get("/runs/:id/report", report)]
    guard state != nil else { return reading }
    return reading + [
      .post("/runs", start), .patch("/runs/:id", change), .post("/runs/:id/tests", startTest),
      .patch("/runs/:id/tests/:number", endTest),
    ]
  }

  private var runs: RunList { source.inbox.runs }

  // MARK: - Reading

  private func list(_ request: Request, _ context: AdminContext) async throws -> Response {
    try await source.inbox.followStore()
    let runs = runs.all
    return .json { writer in
      writer.arrayMember("items") { writer in
        for run in runs.reversed() {
          writer.object { writer in
            run.writeMembers(to: &writer)
            run.writeTestCounts(to: &writer)
          }
        }
      }
      writer.member("total", runs.count)
    }
  }

  private func show(_ request: Request, _ context: AdminContext) async throws -> Response {
    Self.response(to: try await find(context))
  }

  private static func response(to run: TestRun, status: HTTPResponse.Status = .ok) -> Response {
    .json(status: status) { writer in
      run.writeMembers(to: &writer)
      run.writeTestCounts(to: &writer)
      writer.arrayMember("tests") { writer in
        for test in run.tests { writer.object { test.writeMembers(to: &$0, of: run.id) } }
      }
    }
  }

  private enum Format: String, CaseIterable {
    case html, json, markdown, ndjson
  }

  private func report(_ request: Request, _ context: AdminContext) async throws -> Response {
    let run = try await find(context)
    var parameters = try QueryParameters(request)
    let format = try parameters.remove("format").map { text throws(Problem) in
      guard let format = Format(rawValue: text) else {
        throw .badRequest("format cannot be \"\(text.prefix(80))\"", hint: "Expected html, json, markdown or ndjson.")
      }
      return format
    }
    let older = try parameters.remove("baseline").map { id throws(Problem) in
      guard let run = runs.run(id) else { throw unknown(id) }
      return run
    }
    if let other = parameters.all.first?.name {
      throw Problem.badRequest(
        "the query has an unknown parameter \"\(other.prefix(80))\"", hint: "The parameters are format and baseline.")
    }
    let inbox = source.inbox
    return try await QueryExecutor.runReport {
      try await inbox.repeatingAfterReset { try report(of: run, since: older, as: format ?? .html) }
    }
  }

  private func report(of run: TestRun, since older: TestRun?, as format: Format) throws -> Response {
    let rulebook = source.rulebook.atEnd
    let records = try source.inbox.recordsOfRuns([run.id], by: rulebook)
    if format == .ndjson { return Self.export(RunExport(records, of: [run.id], by: rulebook)) }
    var report = try RunReport(records, of: [run.id], program: version)
    if let older {
      let records = try source.inbox.recordsOfRuns([older.id], by: rulebook)
      report.compare(with: try RunReport(records, of: [older.id], program: version).facts, named: older.id)
    }
    switch format {
    case .json: return .json { report.writeMembers(to: &$0) }
    case .markdown: return .text(report.markdown, type: "text/markdown; charset=utf-8")
    case .html, .ndjson:
      var response = Response.bytes(
        try ReportDocument.html(report, of: records, [run.id], by: rulebook), type: "text/html; charset=utf-8")
      // A page of this origin could call the API: its own policy allows that to no script of others.
      response.headers[.contentDisposition] = "attachment; filename=\"\(run.id).html\""
      return response
    }
  }

  /// Returns an export, which is made while the client reads it.
  private static func export(_ export: RunExport) -> Response {
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    return Response(
      status: .ok, headers: [.contentType: "application/x-ndjson"],
      body: ResponseBody { writer in
        var export = export
        while let piece = try await QueryExecutor.step({ try export.next() }) {
          if !piece.isEmpty { try await writer.write(ByteBuffer(bytes: piece), atPaceOf: eventLoop) }
        }
        try await writer.finish(nil)
      })
  }

  private func find(_ context: AdminContext) async throws -> TestRun {
    try await source.inbox.followStore()
    let id = context.parameters.get("id") ?? ""
    guard let run = runs.run(id) else { throw unknown(id) }
    return run
  }

  private func unknown(_ id: String) -> Problem {
    .notFound(
      "there is no run \(id.prefix(80))",
      hint: "List them with GET /api/v1/runs. At most \(RunList.maxRuns) are kept.")
  }

  // MARK: - Changing

  /// The server's time and the newest push, with which a run or a test begins or ends.
  private var now: (time: Int64, lastSeq: Int) {
    (state?.clock.now ?? 0, source.inbox.snapshot().lastSeq)
  }

  private func start(_ request: Request, _ context: AdminContext) async throws -> Response {
    let changes = try await changes(request)
    let selection = state?.faults.selection
    let (time, lastSeq) = now
    let run = runs.start(
      changes, seed: selection?.seed, profile: selection?.selectedProfile.reference, now: time, lastSeq: lastSeq)
    state?.runsDidChange()
    return Self.response(to: run, status: .created)
  }

  private func change(_ request: Request, _ context: AdminContext) async throws -> Response {
    let changes = try await changes(request)
    let (time, lastSeq) = now
    let id = context.parameters.get("id") ?? ""
    if let scope = changes.scope, scope != runs.run(id)?.scope, state?.faults.hasRules(ofRun: id) == true {
      throw Problem(
        status: .conflict, detail: "rules or a profile are bound to run \(id), whose scope would be another one",
        hint: "Set the scope before, or remove them first.")
    }
    guard let run = runs.update(id, changes, now: time, lastSeq: lastSeq) else { throw unknown(id) }
    state?.runsDidChange()
    return Self.response(to: run)
  }

  private func changes(_ request: Request) async throws -> RunList.RunChanges {
    let body = try await JSONBody(request).parse(RunRequest.schema.parse)
    var changes = body.changes
    if let scope = changes.scope { _ = try Filter(scope: scope) }
    changes.labels = body.labels.compactMapValues(\.self)
    return changes
  }

  private func startTest(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(TestRequest.schema.parse)
    if let scope = body.scope { _ = try Filter(scope: scope) }
    let (time, lastSeq) = now
    let id = context.parameters.get("id") ?? ""
    let hadEnded = runs.run(id)?.endedAt != nil
    guard let test = runs.startTest(in: id, name: body.name, scope: body.scope, now: time, lastSeq: lastSeq) else {
      throw unknown(id)
    }
    if hadEnded { state?.runsDidChange() }
    return .json(status: .created) { test.writeMembers(to: &$0, of: id) }
  }

  private func endTest(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(TestEndRequest.schema.parse)
    let (time, lastSeq) = now
    let id = context.parameters.get("id") ?? ""
    let number = context.parameters.get("number") ?? ""
    guard
      let test = Int(number).flatMap({
        runs.endTest(in: id, $0, body.outcome, message: body.message, now: time, lastSeq: lastSeq)
      })
    else {
      throw Problem.notFound(
        "run \(id.prefix(80)) has no test \(number.prefix(80))",
        hint: "Use the number that POST /api/v1/runs/\(id.prefix(80))/tests returned.")
    }
    return .json { test.writeMembers(to: &$0, of: id) }
  }
}

/// The report of a viewed export, made when it is first requested.
final class ViewedReport: Sendable {
  private let viewer: InboxViewer
  private let version: String
  private let made = NIOLockedValueBox<[UInt8]?>(nil)

  init(_ viewer: InboxViewer, version: String) { (self.viewer, self.version) = (viewer, version) }

  /// Returns the report as a page.
  func page() async throws -> Response {
    try await QueryExecutor.runReport { [self] in
      let html: [UInt8]
      if let known = made.withLockedValue(\.self) {
        html = known
      } else {
        let records = try viewer.inbox.recordsOfRuns(by: viewer.rulebook)
        html = try ReportDocument.html(
          RunReport(records, program: version), of: records, by: viewer.rulebook)
        made.withLockedValue { $0 = html }
      }
      var response = Response.bytes(html, type: "text/html; charset=utf-8")
      response.headers[.contentSecurityPolicy] = "\(ReportDocument.policy); frame-ancestors 'none'"
      return response
    }
  }
}
