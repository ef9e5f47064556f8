import ArgumentParser
package import APNSMockInbox
import APNSMockNotation
import MockAPNS
import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock verify`
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Verify expectations about the pushes since the last reset.",
    discussion: """
      Prints expected and actual pushes. Exit code 0 if all expectations are met, 1 if not, 2 for errors in the file, \
      5 if the result is unknown because pushes were evicted. For example:
      echo '{expect: [{match: "topic:com.example.app", count: {exactly: 1}, outcome: accepted}]}' | apns-mock verify -
      """)

  @Argument(
    help: .value("file", "The expectations: a JSON or YAML file, or - for standard input."), completion: .yamlOrJSON)
  var file: String

  @Option(name: .long, help: .value("duration", "How long to wait, up to 5m; overrides the file."))
  var timeout: String?

  @Option(
    name: .long, help: ArgumentHelp("Also write the result to this file as JUnit XML.", valueName: "file"),
    completion: .file())
  var junit: String?

  @OptionGroup var scope: ScopeFlag
  @OptionGroup var flags: AdminFlags

  func validate() throws {
    try DurationArgument.check(timeout, flag: "--timeout", allowsZero: true, limit: WaitQuery.maxTimeout)
  }

  func run() async throws {
    let file = try VerificationFile(path: file)
    var client = try flags.client()
    client.timeout += WaitQuery.maxTimeout
    let began = ContinuousClock.now
    let body = file.body(timeout: timeout, scope: scope.scope)
    let response = try await client.request(.post, "/api/v1/verify", body: body)
    let result = try response.verificationResult(of: file, from: client)
    flags.print(response, text: result.text)
    if let junit {
      try JUnitReport(result: result, file: file.name, time: .now - began).write(to: junit)
    }
    if let failure = result.failure { throw failure }
  }
}

extension JUnitReport {
  /// Writes the report to a file atomically.
  func write(to path: String) throws {
    let file = try Files.replacement(of: path, isPrivate: false)
    try Files.writing { () throws(FileError) in
      try file.append(Array(xml.utf8))
      try file.commit()
    }
  }
}

extension AdminClient.Response {
  /// Decodes the result of a verification.
  ///
  /// - Throws: `CommandFailure`: `usage` with all errors in the file, `unreachable` if the server stopped.
  func verificationResult(of file: VerificationFile, from client: AdminClient) throws -> VerificationResult {
    struct Mistakes: Decodable { var problems: [VerificationFile.Mistake] }
    switch status {
    case 200, 412:
      if let result = try? JSONDecoder.adminAPI.decode(VerificationResult.self, from: Data(body)) { return result }
      throw CommandFailure(.failed, "cannot parse the server's response: is it another version of apns-mock?")
    case 400:
      if let mistakes = try? JSONDecoder().decode(Mistakes.self, from: Data(body)) {
        throw file.failure(mistakes.problems)
      }
    case 503 where isOfStoppingServer:
      throw CommandFailure(.unreachable, "the server on \(client.endpoint) stopped during the verification")
    default: break
    }
    _ = try succeeded()
    throw CommandFailure(.failed, "the server responded with \(status)")
  }
}

/// The result of a verification, with the members that the command uses.
struct VerificationResult: Decodable {
  var passed: Bool
  var inconclusive: Bool
  var expectations: [Expectation]
  var order: Overall?
  var noOthers: Overall?
  var nothingLost: Overall?
  var noFindings: Overall?
  var evicted: Int
  var analyzed: Bool?
  var seed: UInt64?
  var profile: String?
  var text: String

  struct Expectation: Decodable {
    var name: String
    var passed: Bool
    var text: String
  }

  struct Overall: Decodable {
    var criterion: String
    var passed: Bool
    var text: String
  }

  /// All checked parts: the name, whether the check passed, and the text for people.
  var parts: [(name: String, passed: Bool, text: String)] {
    expectations.map { ($0.name, $0.passed, $0.text) }
      + [order, noOthers, nothingLost, noFindings].compactMap(\.self).map { ($0.criterion, $0.passed, $0.text) }
  }

  /// The failure of the command; nil if the verification passed.
  var failure: CommandFailure? {
    if passed { return nil }
    if inconclusive, analyzed == false {
      return CommandFailure(
        .inconclusive,
        "inconclusive: the server does not know which pushes from before its start, or recorded by an older version, "
          + "were lost or have findings; specify after in the file, or reset before each test")
    }
    if inconclusive {
      return CommandFailure(
        .inconclusive,
        "inconclusive: \(evicted.counted("push", "was evicted before it was checked", "were evicted before they were checked")); "
          + "specify after in the file, reset before each test, raise --max-records, --max-bytes or --retain, "
          + "or use --record all")
    }
    let missed = parts.count { !$0.passed }
    return CommandFailure(.failed, "\(missed) of \(parts.count) checks failed")
  }
}

/// The result of a verification, or of a run, in JUnit's XML format (https://github.com/testmoapp/junitxml).
package struct JUnitReport {
  /// A test case with its problem; `kind` is `failure`, `error` or `skipped`.
  private struct Case {
    let name: String
    var problem: (kind: String, text: String)?
    var time = Duration.zero
  }

  private let name: String
  /// The file with the expectations, or the run.
  private let suite: String
  /// The type of failures.
  private let type: String
  private let properties: [(name: String, value: String)]
  private var cases: [Case]
  private let time: Duration

  /// Creates the report of a verification: one test case per expectation, and the properties `seed` and `profile`.
  init(result: VerificationResult, file: String, time: Duration) {
    (name, suite, type, self.time) = ("apns-mock verify", file, "verify", time)
    properties = [("seed", result.seed.map { String($0) } ?? "unknown"), ("profile", result.profile ?? "unknown")]
    cases = result.parts.map { Case(name: $0.name, problem: $0.passed ? nil : ("failure", $0.text)) }
    guard result.inconclusive else { return }
    let text =
      "\(result.evicted.counted("push", "was evicted before it was checked", "were evicted before they were checked"))\n\(result.text)"
    cases.append(Case(name: "window complete", problem: ("error", text)))
  }

  /// Creates the report of a run: one test case per test, and per check after it.
  package init(of report: RunReport, checks: [(name: String, problem: String?)]) {
    let run = report.runs.first
    (name, suite, type) = ("apns-mock", run?.name ?? "no run", "test")
    properties = [
      ("seed", run?.seed.map { String($0) } ?? "unknown"), ("profile", run?.profile ?? "unknown"),
      ("verdict", report.verdict),
    ]
    cases = report.runs.flatMap(\.tests).map { test in
      let problem: (kind: String, text: String)? =
        switch test.outcome {
        case .failed: ("failure", "the test failed without a message")
        case .interrupted: ("error", "the test did not end: its process was killed, or ended without a result")
        case .skipped: ("skipped", "skipped")
        case .passed, nil: nil
        }
      return Case(
        name: test.name, problem: problem.map { ($0.kind, test.message ?? $0.text) },
        time: .milliseconds(test.duration ?? 0))
    }
    cases += checks.map { check in Case(name: check.name, problem: check.problem.map { (kind: "failure", text: $0) }) }
    time = cases.reduce(.zero) { $0 + $1.time }
  }

  /// The XML document.
  package var xml: String {
    func count(_ kind: String) -> Int { cases.count { $0.problem?.kind == kind } }
    let seconds = Self.seconds(time)
    let counts = "tests=\"\(cases.count)\" failures=\"\(count("failure"))\" errors=\"\(count("error"))\""
    var lines = [
      #"<?xml version="1.0" encoding="UTF-8"?>"#,
      "<testsuites name=\"\(name)\" \(counts) time=\"\(seconds)\">",
      "  <testsuite name=\(attribute(suite)) \(counts) skipped=\"\(count("skipped"))\" time=\"\(seconds)\">",
      "    <properties>",
    ]
    lines += properties.map { "      <property name=\"\($0.name)\" value=\(attribute($0.value))/>" }
    lines.append("    </properties>")
    lines += cases.flatMap(lines(of:))
    return (lines + ["  </testsuite>", "</testsuites>", ""]).joined(separator: "\n")
  }

  private func lines(of test: Case) -> [String] {
    let time = test.time == .zero ? "0" : Self.seconds(test.time)
    let start = "    <testcase classname=\(attribute(suite)) name=\(attribute(test.name)) time=\"\(time)\""
    guard let problem = test.problem else { return [start + "/>"] }
    let message = problem.text.split(separator: "\n").first.map(String.init) ?? ""
    return [
      start + ">",
      "      <\(problem.kind) message=\(attribute(message)) type=\"\(type)\">"
        + "\(Self.escaped(problem.text))</\(problem.kind)>",
      "    </testcase>",
    ]
  }

  /// Returns an attribute value in quotation marks. Line breaks and tabs become character references, because XML
  /// parsers replace literal ones by spaces.
  private func attribute(_ text: String) -> String {
    let value = ["\n", "\t"].reduce(Self.escaped(text)) { text, space in
      text.replacing(space, with: "&#\(space.unicodeScalars.first?.value ?? 32);")
    }
    return "\"\(value)\""
  }

  /// Returns text escaped for XML 1.0. U+FFFD replaces characters that XML does not allow.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      // XML parsers replace a literal CR by a line feed.
      case "\r": escaped += "&#13;"
      case "\n", "\t", "\u{20}"..."\u{7E}", "\u{A0}"..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"..."\u{10FFFF}":
        escaped.unicodeScalars.append(scalar)
      default: escaped += "\u{FFFD}"
      }
    }
  }

  /// Returns a duration in seconds, such as `1.250`.
  private static func seconds(_ duration: Duration) -> String {
    let milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    let rest = String(milliseconds % 1000)
    return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }
}
