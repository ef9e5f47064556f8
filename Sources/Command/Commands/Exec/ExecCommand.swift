import ArgumentParser
import APNSMockClientCommands
import APNSMockInbox
import Logging
import MockAPNS
import APNSMockNotation
import APNSMockPlatformLibc

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock exec`
struct ExecCommand: AsyncParsableCommand, ServerCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec", abstract: "Run a program with its own server and return the program's exit code.",
    usage: "apns-mock exec [<options>] -- <program> [<arguments> ...]",
    discussion: """
      The server listens on free ports. The program gets its addresses and credentials as environment variables: \
      APNS_MOCK_APNS (HOST:PORT), APNS_MOCK_APNS_PLAIN, APNS_MOCK_PROXY, APNS_MOCK_MANAGE, APNS_MOCK_ADMIN, \
      APNS_MOCK_PORT_FILE, APNS_MOCK_CA, APNS_MOCK_KEY, APNS_MOCK_KEY_ID, APNS_MOCK_TEAM_ID, and \
      APNS_MOCK_ADMIN_TOKEN if a token is required, APNS_MOCK_RUN, the run in which the client libraries record the tests \
      for --report, and APNS_MOCK_EXPORTS, a folder in which servers that the program starts leave their pushes for it. Of several listeners, the variables name those with the environment \
      of the first one. Unless --certs is given, \
      certificates and keys are created in a temporary folder (APNS_MOCK_CERTS). The program uses standard input and \
      output; apns-mock writes diagnostics to standard error.

      Signals are forwarded to the program; a second one kills it. The exit code is the program's, 128 plus the number \
      of the signal that killed it, 127 if the program does not exist, 126 if it cannot be run. If the program exits \
      with 0: 1 if --verify, --fail-on-findings or --fail-on-rejected fails, 5 if the result is unknown because pushes were evicted.

      Addresses, the port file and the store (--store, --durable, --store-failure, --retain, --advertise) are set by flags only. All \
      other settings are those of serve.
      """)

  /// The settings without a variable: those that `exec` sets for its program would configure a server within it.
  static let onlyByFlag: Set<Setting> = [
    .apns, .apnsPlain, .proxy, .manage, .admin, .portFile, .store, .durable, .storeFailure, .retain, .advertise,
  ]

  static let defaultDescriptions: [Setting: String] = [
    .apns: "a free port", .apnsPlain: "a free port", .proxy: "a free port", .admin: "a free port",
    .certs: "in a temporary folder", .logLevel: "warning",
  ]

  @OptionGroup var flags: ServeFlags<ExecCommand>

  @Option(
    help: .value("file", "Export the run with all its pushes to this file at the end, also those that resets removed."),
    completion: .file())
  var export: String?

  @Option(help: .value("file", "A file with expectations, as for verify."), completion: .yamlOrJSON)
  var verify: String?

  @Option(
    help: .value("finding,finding", "Fail on these findings: names separated by commas, or all."),
    completion: .list(["all"] + Finding.Kind.allCases.map(\.rawValue)))
  var failOnFindings: String?

  @Flag(help: "Fail if APNs' rules rejected a push; names each reason with the correction.")
  var failOnRejected = false

  @Flag(help: "Succeed with --fail-on-findings or --fail-on-rejected even if no push arrived.")
  var allowNoPushes = false

  @Option(
    help: .value("file", "Write the report of the run to this file: one HTML file that opens from disk."),
    completion: .file())
  var report: String?

  @OptionGroup var reportFlags: ReportFlags

  @Argument(parsing: .postTerminator, help: "The program, searched in PATH, and its arguments.")
  var program: [String] = []

  func validate() throws {
    guard !program.isEmpty else {
      throw ValidationError("Specify the program after --, as in: exec -- make test")
    }
    guard export == nil || flags.inbox.exportOnExit == nil else {
      throw ValidationError("--export and --export-on-exit exclude each other: specify one of them")
    }
    guard !allowNoPushes || failOnFindings != nil || failOnRejected else {
      throw ValidationError("--allow-no-pushes requires --fail-on-findings or --fail-on-rejected")
    }
    guard reportFlags.baseline == nil || report != nil || reportFlags.summary != nil else {
      throw ValidationError("--baseline requires --report or --summary")
    }
    guard verify != "-" else {
      throw ValidationError("--verify: standard input belongs to the program; write the expectations to a file")
    }
  }

  func run() async throws {
    var (settings, logger) = try flags.settings(
      Environment.variables, defaults: Self.defaults,
      onlyByFlag: Self.onlyByFlag)
    settings.exportOnExit = export ?? settings.exportOnExit
    let code = try await ExecRun(
      settings: settings, logger: logger, program: program, checks: try checks(),
      files: try ReportFiles(report: report, reportFlags),
      exportFlag: export == nil ? Setting.exportOnExit.flag : "--export"
    ).run()
    guard code == ExitStatus.done.rawValue else { throw ExitCode(code) }
  }

  private func checks() throws -> ExecChecks {
    var checks = ExecChecks(expectations: try verify.map(VerificationFile.init(path:)))
    checks.allowsNoPushes = allowNoPushes
    checks.checks.failsOnRejected = failOnRejected
    do throws(InvalidSettingValue) {
      if let failOnFindings { checks.checks.failingFindings = try ExecChecks.kinds(failOnFindings) }
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: "--fail-on-findings").description)
    }
    return checks
  }

  /// The defaults of `exec`: free ports and log level `warning`.
  private static var defaults: ServeSettings {
    var settings = ServeSettings()
    let free = MockServer.Endpoint(host: "127.0.0.1", port: 0)
    settings.configuration.apns = [free]
    settings.configuration.apnsPlain = [free]
    settings.configuration.proxy = free
    settings.configuration.admin = free
    // `ExecRun` creates a temporary folder in this case.
    settings.configuration.certificates = ""
    settings.logLevel = .warning
    return settings
  }
}

/// A folder for the files of one run that only the current user can access.
struct ScratchFolder: Sendable {
  /// The absolute path.
  let path: String

  /// Creates the folder in `TMPDIR`.
  ///
  /// - Throws: `CommandFailure`.
  init() throws {
    let parent = Environment.variables.given("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/apns-mock-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw CommandFailure(
        .failed,
        "\(parent): cannot create a folder: \(String(cString: strerror(errno))); set TMPDIR to another one")
    }
    path = Files.absolute(String(cString: made))
  }

  /// Removes the folder and everything in it.
  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
