import APNSMockInbox
import ArgumentParser
import APNSMockNotation
import HTTPTypes

/// `apns-mock run`
struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Record the runs of a test suite, and compare them.",
    discussion: """
      exec and the client libraries for pytest, Node.js, JUnit 5 and Go do this themselves. Between start and end, pushes \
      belong to the run: run:r1 in queries.
      """,
    subcommands: [RunStart.self, RunEnd.self, RunList.self, RunShow.self, RunCompare.self])
}

/// The members of a run that the commands use.
private struct RunSummary: Decodable {
  var id: String
  var name: String
  var state: String
  var outcome: String?
  var startedAt: String
  var testCounts: [String: Int]

  var tests: String { "\(testCounts["failed"] ?? 0) of \(testCounts["total"] ?? 0) failed" }
}

/// `apns-mock run start`
struct RunStart: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "Start a run and print its id.",
    discussion: "Labels for the commit, the branch and the build come from the variables of the usual CI systems.")

  @Argument(help: "The name, such as \"ci 4711\".")
  var name = "run"

  @Option(help: .value("name=value", "A label; repeatable."))
  var label: [String] = []

  @OptionGroup var scope: ScopeFlag
  @OptionGroup var flags: AdminFlags

  func validate() throws {
    if let wrong = label.first(where: { !$0.contains("=") }) {
      throw ValidationError("--label: \"\(wrong)\" is not name=value, such as suite=billing")
    }
  }

  func run() async throws {
    var labels = CILabels.labels(Environment.variables)
    for text in label {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      labels[parts[0]] = parts[1]
    }
    let body = JSONWriter.object { writer in
      writer.member("name", name)
      writer.objectMember("labels") { writer in
        for (name, value) in labels.sorted(by: { $0.key < $1.key }) { writer.member(name, value) }
      }
      writer.member("scope", scope.scope)
    }
    let response = try await flags.request(.post, "/runs", body: body)
    flags.print(response, text: try response.decoded(RunSummary.self).id)
  }
}

/// `apns-mock run end`
struct RunEnd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "end", abstract: "End a run.", discussion: "Without --outcome, it has failed if one of its tests has.")

  @Argument(help: "The id, such as r1.")
  var id: String

  @Option(
    help: .value("outcome", "passed, failed or interrupted."), completion: .list(["passed", "failed", "interrupted"]))
  var outcome: String?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let body = JSONWriter.object { writer in
      writer.member("ended", true)
      writer.member("outcome", outcome)
    }
    let response = try await flags.request(.patch, "/runs/\(id.percentEncoded)", body: body)
    let run = try response.decoded(RunSummary.self)
    flags.print(response, text: "\(run.id) \(run.outcome ?? run.state)")
  }
}

/// `apns-mock run ls`
struct RunList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "ls", abstract: "List the runs, the newest first.")

  @OptionGroup var flags: AdminFlags

  private struct Page: Decodable {
    var items: [RunSummary]
  }

  func run() async throws {
    let response = try await flags.request(.get, "/runs")
    let table = Table(
      rows: try response.decoded(Page.self).items,
      columns: [
        .init("RUN", \.id), .init("STARTED", \.startedAt), .init("RESULT") { $0.outcome ?? $0.state },
        .init("TESTS", \.tests), .init("NAME", \.name),
      ])
    flags.output.print(table, objects: response.items)
  }
}

/// `apns-mock run show`
struct RunShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the result of a run: failed tests, lost pushes, findings.",
    discussion: "The result is Markdown. For a report with all pushes: apns-mock export -o FILE, apns-mock report FILE."
  )

  @Argument(help: "The id, such as r1.")
  var id: String

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.printReport(of: id, baseline: nil) }
}

/// `apns-mock run compare`
struct RunCompare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare", abstract: "Show what is new, fixed and unchanged in a run since an older one.")

  @Argument(help: ArgumentHelp("The id of the older run.", valueName: "id"))
  var old: String

  @Argument(help: ArgumentHelp("The id of the newer run.", valueName: "id"))
  var new: String

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.printReport(of: new, baseline: old) }
}

extension AdminFlags {
  fileprivate func printReport(of run: String, baseline: String?) async throws {
    let query = baseline.map { "&baseline=\($0.percentEncoded)" } ?? ""
    let format = output.json ? "json" : "markdown"
    let body = try await request(.get, "/runs/\(run.percentEncoded)/report?format=\(format)\(query)").succeeded()
    output.json ? output.print(json: body) : StandardStream.output.line(String(decoding: body, as: UTF8.self).trimmed)
  }
}
