import APNSMockClientCommands
import APNSMockInbox
import APNSMockPlatformLibc
import MockAPNS

/// The folder in which the servers that a program of `exec` starts leave their pushes, runs and tests at their end.
struct ServerExports: Sendable {
  /// The folder.
  let folder: String

  /// How long a server may write after the program has ended.
  private static let timeout = Duration.seconds(15)

  /// The complete exports, and the number of servers that left none or an incomplete one.
  struct Found: Sendable {
    var paths: [String] = []
    var incomplete = 0
  }

  /// Creates the folder.
  init(in parent: ScratchFolder) {
    folder = parent.path + "/exports"
    mkdir(folder, 0o700)
  }

  /// Waits until the servers that end with the program have written their exports.
  func collect() async -> Found {
    let deadline = ContinuousClock.now + Self.timeout
    var found = Found()
    for name in (names(inFolder: folder) ?? []).sorted() where name.hasSuffix(".ndjson") {
      let path = "\(folder)/\(name)"
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { continue }
      defer { close(file) }
      // The system releases the lock of a server that was killed.
      while flock(file, LOCK_SH | LOCK_NB) != 0, ContinuousClock.now < deadline {
        try? await Task.sleep(for: .milliseconds(20))
      }
      if flock(file, LOCK_SH | LOCK_NB) == 0, lseek(file, 0, SEEK_END) > 0, (try? ExportFile(path).records()) != nil {
        found.paths.append(path)
      } else {
        found.incomplete += 1
      }
    }
    return found
  }
}

/// The export of a server that runs within `exec`, in a file that is locked until it is complete.
struct ServerExport: Sendable {
  private let path: String
  private let file: Int32
  /// The run of all pushes since the start, outside of the runs that clients record.
  private let run: String

  /// Creates the file in the folder that the variable `APNS_MOCK_EXPORTS` names; nil without it, or if that is impossible.
  ///
  /// - Parameter endsWithProgram: Whether the server ends with the program that has started it, so that `exec` can wait for it.
  init?(of state: ServerState, endsWithProgram: Bool) {
    guard let folder = Environment.variables.given(EnvironmentVariables.exports) else { return nil }
    path = "\(folder)/server-\(getpid())-\(ServerClock.machineNow).ndjson"
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { return nil }
    if endsWithProgram { flock(file, LOCK_EX) }
    var changes = RunList.RunChanges()
    changes.name = "apns-mock serve"
    changes.command = ""
    run = state.startRun(changes)
  }

  /// Makes `exec` wait for `write`.
  func lock() { flock(file, LOCK_EX) }

  /// Writes the runs since the start and their pushes; a store can have older ones. Call it once, when the server has stopped.
  ///
  /// - Throws: `StoreUnavailable`, or `CommandFailure` if the file cannot be written.
  func write(_ state: ServerState) throws {
    lock()
    defer { close(file) }
    var end = RunList.RunChanges()
    end.isEnded = true
    _ = state.inbox.runs.update(run, end, now: state.clock.now, lastSeq: state.inbox.snapshot().lastSeq)
    let runs = state.inbox.runs.all
    let ids = Set(runs[(runs.firstIndex { $0.id == run } ?? 0)...].map(\.id))
    let records = try state.inbox.recordsOfRuns(ids, by: state.finalRulebook).leavingOutEmpty(run, of: ids)
    var export = RunExport(records, of: ids, by: state.finalRulebook)
    while let part = try export.next() {
      guard writeAll(part, to: file) else {
        throw CommandFailure(.failed, "\(path): \(String(cString: strerror(errno)))")
      }
    }
  }
}

extension ServerState {
  /// Starts a run with the present seed and profile.
  ///
  /// - Returns: Its id.
  func startRun(_ changes: RunList.RunChanges) -> String {
    let selection = faults.selection
    return inbox.runs.start(
      changes, seed: selection.seed, profile: selection.selectedProfile.reference, now: clock.now,
      lastSeq: inbox.snapshot().lastSeq
    ).id
  }
}
