import APNSMockClientCommands
import APNSMockInbox
import APNSMockNotation
import APNSMockPlatformLibc
import Logging
import MockAPNS

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
    var settings = settings
    let hasOwnCertificates = settings.configuration.certificates.isEmpty
    let folder = try settings.portFile == nil || hasOwnCertificates ? ScratchFolder() : nil
    defer { folder?.remove() }
    if let folder {
      settings.portFile = settings.portFile ?? folder.path + "/ports.json"
      if hasOwnCertificates { settings.configuration.certificates = folder.path + "/Certs" }
    }
    let server = try await StartedServer.start(settings, logger: logger, mayStandBy: false)
    // With a thread that may wait for a store.
    let executor = SerialTaskExecutor("apns-mock.checks")
    let removeFiles: @Sendable () -> Void = {
      server.removePortFile()
      for path in files.paths + (export.map { [$0.path] } ?? []) { FileReplacement.abandon(path) }
      folder?.remove()
    }
    let run = startRun(server.state)
    let result: Supervision.Result
    do {
      try await withTaskExecutorPreference(executor) { try checks.validate(server.state) }
      inherited.hideOthers()
      let child = try ChildProcess(
        program, changing: environment(of: server.state, settings, hasOwnCertificates: hasOwnCertificates, run: run),
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
    outcomes += try await withTaskExecutorPreference(executor) {
      let final = try checks.final(server.state)
      end(run, result.exit, after: outcomes + [final], in: server.state)
      return [final] + (export.map { [write($0, server.state)] } ?? [])
    }
    let names = (result.requestedBy == nil ? ["verify"] : []) + ["findings and rejected pushes", "export"]
    let isRequested = ["verify": checks.expectations != nil, "findings and rejected pushes": !checks.checks.isEmpty]
    let results = zip(names, outcomes).filter { isRequested[$0.0] ?? true }
    outcomes.append(await withTaskExecutorPreference(executor) { describe(server.state, result.exit, results) })
    for line in outcomes.flatMap(\.lines) { printLine(line) }
    await withTaskExecutorPreference(executor) { summarize(server.state) }
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
    let selection = state.faults.selection
    changes.command = Self.command(seed: selection.seed)
    return state.inbox.runs.start(
      changes, seed: selection.seed, profile: selection.selectedProfile.reference, now: state.clock.now,
      lastSeq: state.inbox.snapshot().lastSeq
    ).id
  }

  /// Ends the run, which has passed if the program and all checks have, and no test has failed. What the program did not end is
  /// interrupted: nothing else can end it.
  private func end(
    _ run: String, _ exit: ChildProcess.Exit, after checks: [ExecChecks.Outcome], in state: ServerState
  ) {
    let refused = checks.filter { $0.status != .done }
    for line in refused.flatMap({ $0.lines.prefix(1) }) { state.inbox.runs.note("check not passed: \(line)") }
    let hasFailedTest = state.inbox.runs.run(run)?.tests.contains { $0.outcome == .failed } ?? false
    var changes = RunList.RunChanges()
    changes.isEnded = true
    changes.outcome =
      switch exit {
      case .killed: .interrupted
      case .exited(let code): code == 0 && refused.isEmpty && !hasFailedTest ? .passed : .failed
      }
    let lastSeq = state.inbox.snapshot().lastSeq
    _ = state.inbox.runs.update(run, changes, now: state.clock.now, lastSeq: lastSeq)
    state.inbox.runs.interruptAll(now: state.clock.now, lastSeq: lastSeq)
  }

  /// Returns the command line with the seed, which repeats the run. It contains neither the admin token nor the address of a
  /// store, which may have a password.
  private static func command(seed: UInt64) -> String {
    var words: [String] = ["apns-mock"]
    let secrets = ["--admin-token", "--store"]
    var isSecret = false
    let arguments = CommandLine.arguments.dropFirst()
    let flags = arguments.prefix { $0 != "--" }
    for argument in arguments {
      words.append(
        isSecret
          ? "…" : secrets.first { argument.hasPrefix($0 + "=") }.map { $0 + "=…" } ?? argument.shellQuoted)
      isSecret = secrets.contains(argument)
      if argument == "exec", words.count == 2, !flags.contains(where: { $0 == "--seed" || $0.hasPrefix("--seed=") }) {
        words.append("--seed \(seed)")
      }
    }
    return words.joined(separator: " ")
  }

  /// Writes the report, the summary and the test cases.
  private func describe(
    _ state: ServerState, _ exit: ChildProcess.Exit, _ outcomes: [(String, ExecChecks.Outcome)]
  ) -> ExecChecks.Outcome {
    guard !files.isEmpty else { return ExecChecks.Outcome() }
    do {
      let rulebook = state.finalRulebook
      let records: RunRecords
      do throws(StoreUnavailable) {
        records = try state.inbox.recordsOfRuns(by: rulebook)
      } catch {
        throw CommandFailure(.failed, "--report: the store of the inbox cannot be read: \(error.problem)")
      }
      let checks =
        [(name: "the program ends with 0", problem: exit.problem)]
        + outcomes.map { name, outcome in
          (name: name, problem: outcome.status == .done ? nil : outcome.lines.joined(separator: "\n"))
        }
      let report = try files.write(records, by: rulebook, checks: checks)
      var lines = [report.verdict] + (files.reportPath.map { ["report: \($0)"] } ?? [])
      if let worst = report.worstFinding { lines.append("worst finding: \(worst)") }
      if let command = report.command { lines.append("to repeat the run: \(command)") }
      return ExecChecks.Outcome(lines: lines.map(\.onOneLine))
    } catch {
      return ExecChecks.Outcome(status: .failed, lines: ["\(error)"])
    }
  }

  private func write(_ export: ExportOnExit, _ state: ServerState) -> ExecChecks.Outcome {
    do {
      _ = try export.write(state)
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
    of state: ServerState, _ settings: ServeSettings, hasOwnCertificates: Bool, run: String
  ) -> [String: String?] {
    var changes: [String: String?] = [:]
    for (name, value) in PortFile(of: state).variables { changes.updateValue(value, forKey: name) }
    changes[EnvironmentVariables.run] = run
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
  private func summarize(_ state: ServerState) {
    let summary = ExecSummary(state)
    switch settings.logFormat {
    case .text: StandardStream.error.line("apns-mock: \(summary.text)")
    case .json:
      var logger = logger
      logger.logLevel = min(logger.logLevel, .info)
      logger.info("summary", metadata: summary.metadata)
    }
  }
}

/// A summary of the pushes during a run.
struct ExecSummary {
  private var counts: [Record.Outcome: Int] = [:]
  /// The number of pushes that a fault rule affected.
  private var faulted = 0
  private var findings: [Finding.Kind: Int] = [:]
  private let total: Int
  private let evicted: Int
  private let profile: String
  private let seed: UInt64

  /// Counts the pushes and findings in the inbox.
  init(_ state: ServerState) {
    try? state.inbox.writer?.awaitChanges()
    let snapshot = state.inbox.snapshot()
    total = snapshot.count + snapshot.evicted
    evicted = snapshot.evicted
    var walk = InboxIterator(snapshot, .allKinds)
    // What a store cannot read is left out.
    while let records = try? walk.next() {
      for record in records {
        counts[record.outcome, default: 0] += 1
        if record.isFaulted { faulted += 1 }
      }
    }
    for item in (try? state.inbox.summary(of: .allKinds, by: state.rulebook, limit: 0))?.items ?? [] {
      findings[item.kind] = item.count
    }
    let selection = state.faults.selection
    profile = selection.selectedProfile.reference
    seed = selection.seed
  }

  /// The summary in one line: `3 pushes: 2 accepted, 1 rejected; 1 faulted by profile flaky-503, seed 7`.
  var text: String {
    let parts = Record.Outcome.allCases.compactMap { outcome in counts[outcome].map { "\($0) \(outcome.rawValue)" } }
    var text = total.counted("push") + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", "))
    if evicted > 0 { text += ", \(evicted) evicted because the inbox is full" }
    if !findings.isEmpty {
      text +=
        "; findings: " + findings.keys.sorted().map { "\(findings[$0] ?? 0) \($0.rawValue)" }.joined(separator: ", ")
    }
    // The profile and seed reproduce the faults.
    if faulted > 0 { text += "; \(faulted) faulted by profile \(profile), seed \(seed)" }
    return text
  }

  /// The summary as log metadata.
  var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "pushes": .stringConvertible(total), "evicted": .stringConvertible(evicted), "profile": .string(profile),
      "seed": .string(String(seed)),
    ]
    metadata["faulted"] = .stringConvertible(faulted)
    for outcome in Record.Outcome.allCases { metadata[outcome.rawValue] = .stringConvertible(counts[outcome] ?? 0) }
    let counts = findings.map { ($0.rawValue, Logger.MetadataValue.stringConvertible($1)) }
    metadata["findings"] = .dictionary(Dictionary(uniqueKeysWithValues: counts))
    return metadata
  }
}
