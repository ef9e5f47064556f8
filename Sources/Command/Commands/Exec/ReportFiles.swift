import APNSMockAdminAPI
import ArgumentParser
import APNSMockClientCommands
import APNSMockInbox
import MockAPNS
import APNSMockRules

/// The flags of the report of a run.
struct ReportFlags: ParsableArguments {
  @Option(
    help: .value("file", "Compare the run with this export or report: what is new, fixed, unchanged."),
    completion: .file())
  var baseline: String?

  @Option(help: .value("file", "Also write the result in Markdown to this file, as the job summary of a CI system."))
  var summary: String?

  @Option(help: .value("file", "Also write the tests and the checks to this file as JUnit XML."), completion: .file())
  var junit: String?
}

/// The files that describe a run, checked before it begins.
struct ReportFiles: Sendable {
  private let report, summary, junit: ExportOnExit?
  private let baseline: (facts: RunFacts, name: String)?

  /// Checks that the files can be written, and reads the baseline.
  ///
  /// - Throws: `CommandFailure`.
  init(report: String?, _ flags: ReportFlags) throws {
    func file(_ path: String, _ flag: String) throws -> ExportOnExit {
      guard path != "-" else {
        throw CommandFailure(.usage, "\(flag): - is not a file; specify one, such as /dev/stderr")
      }
      return try ExportOnExit(to: path, for: flag)
    }
    self.report = try report.map { try file($0, "--report") }
    summary = try flags.summary.map { try file($0, "--summary") }
    junit = try flags.junit.map { try file($0, "--junit") }
    try Self.checkThatAllDiffer([self.report, summary, junit].compactMap(\.self))
    baseline = try flags.baseline.map { path in (facts: try Self.facts(path), name: path) }
  }

  /// Checks that no file is written over another one.
  ///
  /// - Throws: `CommandFailure`.
  static func checkThatAllDiffer(_ outputs: [ExportOnExit], inputs: [String] = []) throws {
    for (index, output) in outputs.enumerated() where !FileReplacement.isSpecial(output.path) {
      if inputs.contains(where: { Files.areSame($0, output.path) }) {
        throw CommandFailure(.usage, "\(output.flag): \(output.path) is the export to read; specify another file")
      }
      if let other = outputs[..<index].first(where: { Files.areSame($0.path, output.path) }) {
        throw CommandFailure(
          .usage, "\(output.flag): \(output.path) is the file of \(other.flag) too; specify another one")
      }
    }
  }

  /// Checks that the files are others than these.
  ///
  /// - Throws: `CommandFailure`.
  func checkDifference(from inputs: [String], and export: ExportOnExit? = nil) throws {
    try Self.checkThatAllDiffer([report, summary, junit, export].compactMap(\.self), inputs: inputs)
  }

  /// Whether no file is to be written.
  var isEmpty: Bool { report == nil && summary == nil && junit == nil }

  /// The paths of all files that are to be written.
  var paths: [String] { [report, summary, junit].compactMap { $0?.path } }

  /// The path of the report.
  var reportPath: String? { report?.path }

  /// Reads what a run is compared with, from a report or an export.
  private static func facts(_ path: String) throws -> RunFacts {
    let file = try FileParts(path)
    let start = try file.next() ?? []
    if start.first(where: { $0 > 0x20 }) != UInt8(ascii: "<") {
      return try RunReport(ExportFile(path).records(opened: (file, start)), program: Version.text).facts
    }
    var html = Array(start)
    while html.count < 64 << 20, let part = try file.next() { html += part }
    guard let facts = ReportDocument.facts(in: html) else {
      throw CommandFailure(
        .usage, "--baseline: \(path) is no report that this version can read: use an export, or write the report again")
    }
    return facts
  }

  /// Writes the files.
  ///
  /// - Parameter checks: The names of the checks after the run, with the text of those that failed.
  /// - Returns: The report.
  /// - Throws: `CommandFailure`.
  @discardableResult
  func write(
    _ records: RunRecords, by rulebook: Rulebook, checks: [(name: String, problem: String?)] = []
  ) throws -> RunReport {
    do {
      var result = try RunReport(records, program: Version.text)
      if let baseline { result.compare(with: baseline.facts, named: baseline.name) }
      // Only the current user can read payloads and device tokens.
      try report?.write(try ReportDocument.html(result, of: records, by: rulebook), isPrivate: true)
      try summary?.write(Array(result.markdown.utf8), isPrivate: false)
      try junit?.write(Array(JUnitReport(of: result, checks: checks).xml.utf8), isPrivate: false)
      return result
    } catch let error as StoreUnavailable {
      throw CommandFailure(.failed, "--report: the store of the inbox cannot be read: \(error.problem)")
    }
  }
}

/// `apns-mock report`
struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report", abstract: "Write the report of exported pushes: one HTML file that opens from disk.",
    discussion: """
      The report names the failed tests with the nearest pushes, lost pushes, duplicates and findings, and contains the \
      pushes. Several exports, such as those of the workers of a test suite, become one report.
      """)

  @Argument(help: .value("file", "The exports; - for standard input."), completion: .file())
  var exports: [String]

  @Option(name: .shortAndLong, help: .value("file", "The report."), completion: .file())
  var output: String

  @OptionGroup var flags: ReportFlags

  func validate() throws {
    guard !exports.isEmpty, exports.filter({ $0 == "-" }).count <= 1 else {
      throw ValidationError("Specify an export, and - only once")
    }
  }

  func run() throws {
    let files = try ReportFiles(report: output, flags)
    try files.checkDifference(from: exports)
    let records = try exports.count == 1 ? ExportFile(exports[0]).records() : ExportFile.mergedRecords(exports)
    let report = try files.write(records, by: ExportFile.rulebook)
    StandardStream.output.line(report.verdict.onOneLine)
    if let warning = report.baseline?.warning { StandardStream.error.line("warning: \(warning)") }
  }
}

extension ExportFile {
  static let rulebook = Rulebook(mode: .apple, environment: .sandbox, settings: APNSSettings())
  static let maxBytes = 2 << 30

  /// Reads the records of the runs in the file.
  ///
  /// - Throws: `CommandFailure` that names the file and line.
  func records(opened: (file: FileParts, start: ArraySlice<UInt8>)? = nil) throws -> RunRecords {
    try Self.records(of: try inbox(maxBytes: Self.maxBytes, opened: opened))
  }

  private static func records(of inbox: Inbox) throws -> RunRecords {
    do throws(StoreUnavailable) {
      return try inbox.recordsOfRuns(by: rulebook)
    } catch {
      throw CommandFailure(.failed, "\(error.problem)")
    }
  }

  /// Reads several files as one, in the order of the arrival of their records.
  ///
  /// - Throws: `CommandFailure` that names the file and line.
  static func mergedRecords(_ paths: [String]) throws -> RunRecords {
    let files = try paths.map { try FileParts($0) }
    var merge = ExportMerge(files.map { file in { try file.next() } })
    var reading = InboxImport(maxBytes: maxBytes)
    do {
      while let record = try merge.next() { try reading.read(record + [UInt8(ascii: "\n")]) }
      return try records(of: try reading.finish())
    } catch let problem as ExportMerge.Problem {
      throw CommandFailure(.usage, "\(paths[problem.input]):\(problem.problem)".onOneLine)
    } catch let problem as InboxImport.Problem {
      throw CommandFailure(.usage, "\(paths.joined(separator: ", ")): \(problem.reason)".onOneLine)
    }
  }
}
