import ArgumentParser
import Logging
import MockAPNS
import Notation

/// `apns-mock exec`
struct Exec: AsyncParsableCommand, ServerCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec", abstract: "Run a program with a server of its own, and end as it ends.",
    usage: "apns-mock exec [<options>] -- <program> [<arguments> ...]",
    discussion: """
      The server listens on free ports. The program finds it by its environment: APNS_MOCK_APNS (HOST:PORT), \
      APNS_MOCK_ADMIN, APNS_MOCK_PORT_FILE, APNS_MOCK_CA, APNS_MOCK_KEY, APNS_MOCK_KEY_ID, APNS_MOCK_TEAM_ID, and \
      APNS_MOCK_ADMIN_TOKEN where there is one. Certificates and keys are made for the run in a temporary folder, which \
      APNS_MOCK_CERTS names, unless --certs names one to keep. Standard input and output are the program's; what is to be said here \
      goes to standard error.

      Signals are passed on; a second one ends everything. The exit code is the program's, 128 and the number of the \
      signal that killed it, 127 if there is no such program, 126 if it cannot be run. Where the program ends with 0: 1 \
      for what --verify or --fail-on-findings found, 5 where nobody can know because pushes were dropped.

      Addresses and port file are those of flags alone. Else settings come from where serve has them.
      """)

  static let shownDefaults = ShownDefaults(
    apns: "a free port", admin: "a free port", certs: "in a temporary folder", logLevel: "warning")

  @OptionGroup var flags: ServeFlags<Exec>

  @Option(help: "Where to write the inbox at the end, as --export-on-exit does.")
  var export: String?

  @Option(help: "A file that says what is expected of the pushes, as for verify.")
  var verify: String?

  @Option(help: "What the provider must not have done: findings with commas between them, or all.")
  var failOnFindings: String?

  @Flag(help: "Accept a run without any push, which --fail-on-findings fails otherwise.")
  var allowNoPushes = false

  @Argument(parsing: .postTerminator, help: "The program, looked for in PATH, and its arguments.")
  var program: [String] = []

  func validate() throws {
    guard !program.isEmpty else {
      throw ValidationError("no program to run: write it after --, as in exec -- make test")
    }
    guard export == nil || flags.exportOnExit == nil else {
      throw ValidationError("--export and --export-on-exit both name a file: keep one of them")
    }
    guard !allowNoPushes || failOnFindings != nil else {
      throw ValidationError("--allow-no-pushes goes with --fail-on-findings: add it, or leave the flag out")
    }
    guard verify != "-" else {
      throw ValidationError("--verify: standard input is the program's: put what is expected into a file")
    }
  }

  func run() async throws {
    var (settings, logger) = try flags.settings(
      Environment.variables, defaults: Self.defaults, flagsAlone: [.apns, .admin, .portFile])
    settings.exportOnExit = export ?? settings.exportOnExit
    let code = try await ExecRun(
      settings: settings, logger: logger, program: program, checks: try checks(),
      exportFlag: export == nil ? Setting.exportOnExit.flag : "--export"
    ).run()
    guard code == ExitStatus.done.rawValue else { throw ExitCode(code) }
  }

  private func checks() throws -> ExecChecks {
    var checks = ExecChecks(expectations: try verify.map(VerificationFile.init(path:)))
    checks.allowsNoPushes = allowNoPushes
    do throws(BadValue) {
      if let failOnFindings { checks.refused = try ExecChecks.kinds(failOnFindings) }
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: "--fail-on-findings").description)
    }
    return checks
  }

  /// Free ports, and quiet.
  private static var defaults: ServeSettings {
    var settings = ServeSettings()
    let free = Endpoint(host: "127.0.0.1", port: 0)
    settings.configuration.apns = [free]
    settings.configuration.admin = free
    // Without a folder, ExecRun makes a temporary one.
    settings.configuration.certificates = ""
    settings.logLevel = .warning
    return settings
  }
}
