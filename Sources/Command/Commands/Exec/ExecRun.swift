import APNSMockClientCommands
import APNSMockInbox
import APNSMockNotation
import APNSMockPlatformLibc
import Logging
import MockAPNS
import APNSMockRules

/// One run of a program with its own server.
struct ExecRun: Sendable {
  let settings: ServeSettings
  let logger: Logger
  /// The program and its arguments.
  let program: [String]
  /// The checks after the run.
  let checks: ExecChecks
  /// The files that describe the run.
  let files: ReportFiles
  /// The flag that requested the export, for messages.
  let exportFlag: String

  /// Runs the program.
  ///
  /// - Returns: The exit code.
  /// - Throws: `CommandFailure` if the server or the program cannot be started.
  func run() async throws -> Int32 {
    let inherited = InheritedFiles()
    // A child gets the default action of these.
    let inheritable = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE].filter { !SignalWatch.isIgnored($0) }
    let signals = try SignalWatch(inheritable.filter { $0 != SIGPIPE } + [SIGCHLD])
    let export = try settings.exportOnExit.map { try ExportOnExit(to: $0, for: exportFlag) }
    try files.checkDifference(from: [], and: export)
    var settings = settings
    let hasOwnCertificates = settings.configuration.certificates.isEmpty
    let folder = try ScratchFolder()
    defer { folder.remove() }
    settings.portFile = settings.portFile ?? folder.path + "/ports.json"
    if hasOwnCertificates { settings.configuration.certificates = folder.path + "/Certs" }
    let servers = ServerExports(in: folder)
    let server = try await StartedServer.start(settings, logger: logger, mayStandBy: false)
    // With a thread that may wait for a store.
    let executor = SerialTaskExecutor("apns-mock.checks")
    let removeFiles: @Sendable () -> Void = {
      server.removePortFile()
      for path in files.paths + (export.map { [$0.path] } ?? []) { FileReplacement.abandon(path) }
      folder.remove()
    }
    let run = startRun(server.state)
    let result: Supervision.Result
    do {
      try await withTaskExecutorPreference(executor) { try checks.validate(server.state) }
      inherited.hideOthers()
      let child = try ChildProcess(
        program,
        changing: environment(
          of: server.state, settings, hasOwnCertificates: hasOwnCertificates, run: run, exports: servers.folder),
        defaults: inheritable)
      let supervision = Supervision(signals: signals, child: child, beforeExit: removeFiles)
      result = await supervision.result()
      supervision.exitAtNextSignal()
    } catch {
      await server.stop()
      throw error
    }
    report(result)
    var outcomes: [ExecChecks.Outcome] = []
    // After a termination signal, skip the verification, which may wait.
    if result.requestedBy == nil {
      outcomes.append(
        try await withTaskExecutorPreference(executor) {
          try await checks.verify(server.state, mayWait: result.exit == .exited(0))
        })
    }
    await server.stop()
    let exports = await servers.collect()
    let verified = outcomes
    let reported = await withTaskExecutorPreference(executor) {
      let pushes = ExecPushes(state: server.state, servers: exports, folder: folder.path)
      return Result { try report(on: pushes, run, result.exit, verified, export) }
    }
    do {
      let (checked, summary) = try reported.get()
      outcomes += checked
      for line in outcomes.flatMap(\.lines) { printLine(line) }
      summarize(summary)
    } catch {
      outcomes.append(ExecChecks.Outcome(status: .failed, lines: ["the pushes cannot be read: \(error)"]))
      for line in outcomes.flatMap(\.lines) { printLine(line) }
    }
    try server.closeStore()
    let statuses = outcomes.map(\.status).filter { $0 != .done }
    // A failure takes precedence over an inconclusive result.
    let found = statuses.first { $0 != .inconclusive } ?? statuses.first ?? .done
    return result.exit.code == 0 ? found.rawValue : result.exit.code
  }

  // MARK: - The run

  /// Starts the run of the program and returns its id.
  private func startRun(_ state: ServerState) -> String {
    var changes = RunList.RunChanges()
    changes.name = program.joined(separator: " ")
    changes.labels = CILabels.labels(Environment.variables)
    changes.command = Self.command(seed: state.faults.selection.seed)
    return state.startRun(changes)
  }

  /// Checks all pushes, ends the run, and writes its files.
  ///
  /// - Parameter verified: The outcome of the verification, if there was one.
  /// - Returns: The outcomes of the other steps, and the summary.
  private func report(
    on pushes: ExecPushes, _ run: String, _ exit: ChildProcess.Exit, _ verified: [ExecChecks.Outcome],
    _ export: ExportOnExit?
  ) throws -> (outcomes: [ExecChecks.Outcome], summary: ExecSummary) {
    let state = pushes.state
    var outcomes = [
      checks.checks.isEmpty ? ExecChecks.Outcome() : try checks.final(pushes.records(by: state.finalRulebook))
    ]
    end(run, exit, after: verified + outcomes, lacksPushes: pushes.servers.incomplete > 0, in: state)
    let records = try pushes.records(by: state.finalRulebook)
    let summary = try ExecSummary(records, state.faults.selection)
    if let export {
      outcomes.append(
        Self.outcome {
          try export.write(
            records, by: state.finalRulebook, hasStore: state.inbox.writer != nil, count: summary.total)
        })
    }
    var results = [(name: "verify", outcome: verified.first), ("findings and rejected pushes", outcomes.first)]
    if checks.expectations == nil { results.removeFirst() }
    if checks.checks.isEmpty { results.removeLast() }
    if export != nil { results.append(("export", outcomes.last)) }
    outcomes.append(describe(records, state.finalRulebook, exit, results))
    return (outcomes, summary)
  }

  /// Ends the run, which has passed if the program and all checks have, and no test has failed. What the program did not end is
  /// interrupted: nothing else can end it.
  private func end(
    _ run: String, _ exit: ChildProcess.Exit, after checks: [ExecChecks.Outcome], lacksPushes: Bool,
    in state: ServerState
  ) {
    let refused = checks.filter { $0.status != .done }
    let problems = refused.map { "check not passed: " + $0.lines.joined(separator: " ") }
    for problem in problems { state.inbox.runs.note(problem) }
    let hasFailedTest = state.inbox.runs.run(run)?.tests.contains { $0.outcome == .failed } ?? false
    var changes = RunList.RunChanges()
    changes.isEnded = true
    changes.message = exit.problem ?? problems.first
    changes.lacksPushes = lacksPushes
    changes.outcome =
      switch exit {
      case .killed: .interrupted
      case .exited(let code): code == 0 && refused.isEmpty && !hasFailedTest ? .passed : .failed
      }
    let lastSeq = state.inbox.snapshot().lastSeq
    _ = state.inbox.runs.update(run, changes, now: state.clock.now, lastSeq: lastSeq)
    state.inbox.runs.interruptAll(now: state.clock.now, lastSeq: lastSeq)
  }

  /// Returns the command line with the seed and the settings in variables, which repeats the run. It contains neither the admin
  /// token nor the address of a store or a webhook, which may have a password.
  private static func command(seed: UInt64) -> String {
    let variables = Environment.variables
    let settings = Set(Setting.allCases).subtracting(ExecCommand.onlyByFlag.union([.seed, .adminToken, .webhook]))
    let names = [EnvironmentVariables.config, EnvironmentVariables.profileInline] + settings.map(\.variable)
    var words = names.sorted().compactMap { name in variables.given(name).map { "\(name)=\($0.shellQuotedOnOneLine)" } }
    words.append("apns-mock")
    let secrets = ["--admin-token", "--store", "--webhook"]
    var (isSecret, hasSeed) = (false, false)
    let arguments = CommandLine.arguments.dropFirst()
    let flags = arguments.prefix { $0 != "--" }
    for argument in arguments {
      words.append(
        isSecret
          ? "…" : secrets.first { argument.hasPrefix($0 + "=") }.map { $0 + "=…" } ?? argument.shellQuotedOnOneLine)
      isSecret = secrets.contains(argument)
      if argument == "exec", !hasSeed, !flags.contains(where: { $0 == "--seed" || $0.hasPrefix("--seed=") }) {
        words.append("--seed \(seed)")
        hasSeed = true
      }
    }
    return words.joined(separator: " ")
  }

  /// Writes the report, the summary and the test cases.
  private func describe(
    _ records: RunRecords, _ rulebook: Rulebook, _ exit: ChildProcess.Exit,
    _ results: [(name: String, outcome: ExecChecks.Outcome?)]
  ) -> ExecChecks.Outcome {
    guard !files.isEmpty else { return ExecChecks.Outcome() }
    let checks =
      [(name: "the program ends with 0", problem: exit.problem)]
      + results.compactMap { name, outcome in
        outcome.map { (name: name, problem: $0.status == .done ? nil : $0.lines.joined(separator: "\n")) }
      }
    var lines: [String] = []
    var outcome = Self.outcome {
      let report = try files.write(records, by: rulebook, checks: checks)
      lines =
        [report.verdict] + (report.baseline?.warning.map { [$0] } ?? [])
        + (files.reportPath.map { ["report: \($0)"] } ?? [])
      if let worst = report.worstFinding { lines.append("worst finding: \(worst)") }
      if let command = report.command { lines.append("to repeat the run: \(command)") }
    }
    outcome.lines += lines.map(\.onOneLine)
    return outcome
  }

  /// Runs a step of which a failure is reported after all others.
  private static func outcome(_ step: () throws -> Void) -> ExecChecks.Outcome {
    do {
      try step()
      return ExecChecks.Outcome()
    } catch {
      return ExecChecks.Outcome(status: .failed, lines: ["\(error)"])
    }
  }

  /// Reports a problem.
  private func printLine(_ message: String) {
    switch settings.logFormat {
    case .text: StandardStream.error.line("apns-mock: \(message)")
    case .json: logger.error("\(message)")
    }
  }

  /// Returns the changes to the program's environment: the server's addresses and credentials.
  private func environment(
    of state: ServerState, _ settings: ServeSettings, hasOwnCertificates: Bool, run: String, exports: String
  ) -> [String: String?] {
    var changes: [String: String?] = [:]
    for (name, value) in PortFile(of: state).variables { changes.updateValue(value, forKey: name) }
    changes[EnvironmentVariables.run] = run
    changes[EnvironmentVariables.exports] = exports
    // Servers that the program starts have the same faults as in a run that is repeated.
    changes[Setting.seed.variable] = String(state.faults.selection.seed)
    // Client libraries start this program.
    if let programPath, Environment.variables.given(EnvironmentVariables.binary) == nil {
      changes[EnvironmentVariables.binary] = programPath
    }
    changes[Setting.portFile.variable] = settings.portFile.map(Files.absolute)
    if hasOwnCertificates { changes[Setting.certs.variable] = settings.configuration.certificates }
    if state.configuration.adminToken != nil { changes[EnvironmentVariables.adminTokenFile] = .some(nil) }
    return changes
  }

  /// Reports the signal that killed the program, as a shell does for its own children.
  private func report(_ result: Supervision.Result) {
    guard case .killed(let signal) = result.exit, signal != result.requestedBy else { return }
    let name = SignalName.text(signal)
    printLine("\(program.first ?? "") was killed by signal \(signal) (\(name))")
  }

  /// Prints a summary of the pushes in one line.
  private func summarize(_ summary: ExecSummary) {
    switch settings.logFormat {
    case .text: StandardStream.error.line("apns-mock: \(summary.text)")
    case .json:
      var logger = logger
      logger.logLevel = min(logger.logLevel, .info)
      logger.info("summary", metadata: summary.metadata)
    }
  }
}
