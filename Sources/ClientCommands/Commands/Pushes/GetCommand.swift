import APNSMockInbox
import ArgumentParser
import HTTPTypes

/// `apns-mock get`
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Show one push: the request, its validation and the response.",
    discussion: "Findings are described on standard error; --explain prints all details.")

  @Argument(
    help: "The push's seq, in a view of several servers such as load_1:4711, or an apns-id for its newest attempt.")
  var id: String

  @Flag(name: .long, help: "Print only the body, byte for byte.")
  var payload = false

  @Flag(name: .long, help: "Print a curl command that repeats the push, with $TOKEN for the provider token.")
  var curl = false

  @Flag(name: .long, help: "Print the push as a file for xcrun simctl push.")
  var apns = false

  @Flag(
    name: .long,
    help: "Print how the result was determined: checks, rules with their draws, findings, evidence, advice.")
  var explain = false

  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard forms.count <= 1 else {
      throw ValidationError("Specify only one of --payload, --curl, --apns and --explain")
    }
  }

  /// The requested representations, by their names in the admin API.
  private var forms: [String] {
    [(payload, "payload"), (curl, "curl"), (apns, "apns"), (explain, "explain")].filter(\.0).map(\.1)
  }

  func run() async throws {
    let path = (["/pushes", id.percentEncoded] + forms).joined(separator: "/")
    let response = try await flags.request(.get, path)
    let body = try response.succeeded()
    guard forms.isEmpty || explain else {
      StandardStream.output.write(body)
      return
    }
    guard !flags.output.json else { return flags.output.print(json: body) }
    if explain {
      return StandardStream.output.line(try response.decoded(PushExplanation.self).paragraphs)
    }
    let explanation = try await flags.request(.get, path + "/explain").decoded(PushExplanation.self)
    StandardStream.output.line(explanation.summary)
    StandardStream.output.line(ReadableJSON.text(body))
    for finding in explanation.findings { StandardStream.error.line(finding.line) }
  }
}

/// The response of `GET /pushes/{seq}/explain`, as far as it is shown as text.
struct PushExplanation: Decodable {
  var seq: PushName
  var attempt: Int
  var outcome: String
  var text: String
  var verdict: Verdict?
  var rules: [Rule]
  var findings: [Finding]
  var advice: String

  struct Verdict: Decodable {
    var checks: [Check]
  }

  struct Check: Decodable {
    var check: String
    var ok: Bool
    var detail: String?
  }

  struct Rule: Decodable {
    var rule: String
    var profile: String?
    var result: String
    var text: String
  }

  struct Finding: Decodable {
    var finding: String
    var explanation: String
    var advice: String

    var line: String { "\(finding): \(explanation.onOneLine). \(advice.onOneLine)" }
  }

  /// The number of the push and what happened to it, in two lines.
  var summary: String { "push \(seq), attempt \(attempt): \(outcome)\n\(text.onOneLine)" }

  /// Why the push was not accepted: the detail of the failed check, or what happened to the push.
  var cause: String { (verdict?.checks.first { !$0.ok }?.detail ?? text).onOneLine }

  /// The command that shows the explanation.
  var command: String { "apns-mock get \(seq) --explain" }

  /// The whole explanation.
  var paragraphs: String {
    var parts = [summary]
    if let verdict {
      let width = verdict.checks.reduce(0) { max($0, $1.check.count) }
      let lines = verdict.checks.map { check in
        let gap = String(repeating: " ", count: width - check.check.count + 2)
        return "  \(check.check)\(gap)\(check.ok ? "ok" : "failed: \((check.detail ?? "").onOneLine)")"
      }
      parts.append((["checks"] + lines).joined(separator: "\n"))
    }
    if !rules.isEmpty {
      let lines = rules.map { rule in
        "  \(rule.rule.onOneLine)\(rule.profile.map { " of \($0.onOneLine)" } ?? ""): \(rule.result). \(rule.text.onOneLine)"
      }
      parts.append((["rules"] + lines).joined(separator: "\n"))
    }
    if !findings.isEmpty {
      parts.append((["findings"] + findings.map { "  " + $0.line }).joined(separator: "\n"))
    }
    parts.append("advice\n  \(advice.onOneLine)")
    return parts.joined(separator: "\n\n")
  }
}
