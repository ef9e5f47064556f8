internal import Dispatch
internal import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc
internal import Synchronization

/// The advisory lock of a schema. The server whose session holds it is the active one; the others are standbys, which wait for it.
///
/// The database ends the session 1.5 seconds after its last statement, so neither a stopped process nor a cut network keeps the
/// lock. A statement every 200 milliseconds keeps a session that works. When a server takes over, it increments the number in the
/// table `epoch`; each transaction that writes locks that row and compares its number, so a former server cannot write afterwards.
package final class ActiveLock: Sendable {
  /// The time without a statement after which the database ends the session.
  private static let sessionTime = Duration.milliseconds(1500)
  /// The microseconds between two statements of the session, and between two attempts of a standby to get the lock.
  private static let interval: UInt32 = 200_000
  /// The microseconds that a standby waits after it has opened its session again.
  private static let reopeningTime: UInt32 = 1_000_000
  /// The nanoseconds after a confirmed statement was sent in which no other server can have the lock, unless
  /// somebody else ends the session. Less than `sessionTime`.
  private static let exclusiveTime: Int64 = 1_000_000_000

  private enum Phase {
    /// Waits for the lock.
    case standby
    /// Has the lock, and has not taken over the schema yet.
    case locked
    /// Has taken over the schema. The session may be lost, and is opened again while no other server has taken over.
    case active(epoch: Int64)
    /// Another server has taken over.
    case superseded
    case ended
  }

  private struct State {
    var phase = Phase.standby
    /// The session; nil while it is lost.
    var session: Connection?
    /// The id of the database process of the session.
    var process: Int64 = 0
    /// The URL that the active server advertises.
    var activeURL: String?
    var whenLocked: (@Sendable () -> Void)?
    var whenSuperseded: (@Sendable () -> Void)?
  }

  let address: PostgreSQLAddress
  private let state: NIOLockedValueBox<State>
  private let start = ContinuousClock.now
  /// When the newest confirmed statement was sent, in nanoseconds since `start`; negative if none was.
  private let confirmedAt = Atomic<Int64>(-ActiveLock.exclusiveTime)
  private let thread = DispatchQueue(label: "store.lock")

  /// Opens the session, and tries to get the lock for half a second: the session of a server that was killed may still end.
  ///
  /// - Throws: `PostgreSQLError` if this database or this user cannot be used.
  package init(_ address: PostgreSQLAddress) throws {
    self.address = address
    state = NIOLockedValueBox(State())
    let (session, process) = try openSession()
    state.withLockedValue { ($0.session, $0.process) = (session, process) }
    try Schema.check(session, address.schema)
    for _ in 0..<5 where try !attempt(session) { usleep(100_000) }
    thread.async { [self] in run() }
  }

  /// Whether this server has the lock, as far as is known.
  package var isHeld: Bool {
    state.withLockedValue { state in
      switch state.phase {
      case .locked, .active: true
      case .standby, .superseded, .ended: false
      }
    }
  }

  /// Whether no other server can have the lock now.
  var isExclusive: Bool { now - confirmedAt.load(ordering: .acquiring) < Self.exclusiveTime }

  /// The URL that the active server advertises; nil if it advertises none, or if there is no active server.
  package var activeURL: String? { state.withLockedValue(\.activeURL) }

  /// Returns when this server has the lock.
  package func wait() async {
    await withCheckedContinuation { continuation in
      let isLocked = state.withLockedValue { state in
        if case .standby = state.phase {
          state.whenLocked = { continuation.resume() }
          return false
        }
        return true
      }
      if isLocked { continuation.resume() }
    }
  }

  /// Calls `body` on any thread when another server has taken over.
  package func whenSuperseded(_ body: @escaping @Sendable () -> Void) {
    state.withLockedValue { $0.whenSuperseded = body }
  }

  /// Ends the session, and with it the lock.
  package func release() {
    state.withLockedValue { state in
      state.phase = .ended
      state.session = nil
    }
  }

  // MARK: - Taking over

  /// Takes over the schema, within a transaction. Afterwards no former server can write.
  ///
  /// - Returns: The number of the epoch, for `didTakeOver`.
  func takeOver(_ connection: Connection) throws -> Int64 {
    // A server that was stopped while it sent records may be in a transaction, for which the next command waits.
    try connection.query(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
      AND usename = current_user AND pid <> pg_backend_pid() AND pid IN (SELECT pid FROM pg_locks \
      WHERE locktype = 'relation' AND relation = 'epoch'::regclass AND mode IN ('RowShareLock', 'RowExclusiveLock') AND granted)
      """)
    let epoch = try connection.query("UPDATE epoch SET number = number + 1, url = NULL RETURNING number").number(0, 0)
    guard let epoch else { throw PostgreSQLError.other("the table epoch has no row") }
    try checkIsHeld(connection)
    return epoch
  }

  /// Notes that the transaction of `takeOver` was committed.
  func didTakeOver(_ epoch: Int64) {
    state.withLockedValue { state in
      if case .locked = state.phase { state.phase = .active(epoch: epoch) }
    }
  }

  /// Checks in a transaction that the session of this server still has the lock.
  func checkIsHeld(_ connection: Connection) throws {
    let held = try connection.query(
      """
      SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1 AND objid = 0 AND objsubid = 2 \
      AND classid::bigint = hashtext($2)::bigint & 4294967295 \
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """, [String(state.withLockedValue(\.process)), address.schema])
    guard held.count > 0 else { throw superseded() }
  }

  /// Checks at the beginning of a transaction that no other server has taken over; none can until the transaction ends.
  func checkEpoch(_ connection: Connection) throws {
    let number = try connection.query("SELECT number FROM epoch FOR SHARE").number(0, 0)
    guard case .active(let epoch) = state.withLockedValue(\.phase), number == epoch else { throw superseded() }
  }

  /// Stores the URL of this server for the standbys.
  func advertise(_ url: String?, _ connection: Connection) throws {
    guard case .active(let epoch) = state.withLockedValue(\.phase) else { return }
    try connection.query("UPDATE epoch SET url = $1 WHERE number = $2", [url, String(epoch)])
  }

  private func superseded() -> PostgreSQLError {
    let body = state.withLockedValue { state -> (@Sendable () -> Void)? in
      switch state.phase {
      case .standby, .superseded, .ended: return nil
      case .locked, .active:
        state.phase = .superseded
        return state.whenSuperseded
      }
    }
    // Another thread may be ending the program. Until then no push is to be answered that the store fails.
    guard let body else {
      usleep(1_000_000)
      return .superseded
    }
    body()
    return .superseded
  }

  // MARK: - Session

  private var now: Int64 {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  private func openSession() throws -> (Connection, process: Int64) {
    let session = try Connection(address, patience: .seconds(1))
    guard session.serverVersion >= 140_000 else { throw PostgreSQLError.oldServer(version: session.serverVersion) }
    let process = try session.query("SELECT pg_backend_pid()").number(0, 0) ?? 0
    // A pooler sends its clients an invented id.
    guard process == session.reportedProcess else { throw PostgreSQLError.pooler }
    try session.run("SET idle_session_timeout TO \(Int(Self.sessionTime / .milliseconds(1)))")
    return (session, process)
  }

  /// Tries to get the lock.
  private func attempt(_ session: Connection) throws -> Bool {
    let sentAt = now
    if isHeld { return true }
    let locked = try session.query("SELECT pg_try_advisory_lock(hashtext($1), 0)", [address.schema])
    guard locked.number(0, 0) == 1 else { return false }
    confirmedAt.store(sentAt, ordering: .releasing)
    let body = state.withLockedValue { state -> (@Sendable () -> Void)? in
      guard case .standby = state.phase else { return nil }
      state.phase = .locked
      return state.whenLocked
    }
    body?()
    return true
  }

  private func run() {
    while true {
      let (phase, session) = state.withLockedValue { ($0.phase, $0.session) }
      do {
        switch (phase, session) {
        case (.superseded, _), (.ended, _): return
        case (.standby, let session?):
          try wait(session)
          usleep(Self.interval)
        case (.standby, nil):
          try reopen()
          // The database has ended all sessions: the active server is to get the lock again.
          usleep(Self.reopeningTime)
        case (_, let session?):
          let sentAt = now
          try session.run("SELECT 1")
          confirmedAt.store(sentAt, ordering: .releasing)
          usleep(Self.interval)
        case (.locked, nil):
          _ = superseded()
        case (.active(let epoch), nil):
          try resume(epoch)
        }
      } catch {
        state.withLockedValue { $0.session = nil }
        // After a session that worked, another one may work at once.
        if session == nil { usleep(100_000) }
      }
    }
  }

  private func reopen() throws {
    let (session, process) = try openSession()
    state.withLockedValue { state in
      if case .ended = state.phase { return }
      (state.session, state.process) = (session, process)
    }
  }

  private func wait(_ session: Connection) throws {
    guard try !attempt(session) else { return }
    // The table is missing until the first server has created it.
    let hasTable = try session.query("SELECT to_regclass('epoch')::oid::bigint").number(0, 0) != nil
    let url = hasTable ? try session.query("SELECT url FROM epoch").text(0, 0) : nil
    state.withLockedValue { $0.activeURL = url }
  }

  /// Opens the session again after it was lost, unless another server has taken over in the meantime.
  private func resume(_ epoch: Int64) throws {
    let (session, process) = try openSession()
    let sentAt = now
    let isLocked = try session.query("SELECT pg_try_advisory_lock(hashtext($1), 0)", [address.schema]).number(0, 0) == 1
    // After the attempt: a server that has ended since may have taken over before.
    guard try session.query("SELECT number FROM epoch").number(0, 0) == epoch else {
      _ = superseded()
      return
    }
    // Otherwise the former session still has the lock, or another server that is about to take over.
    guard isLocked else {
      usleep(100_000)
      return
    }
    confirmedAt.store(sentAt, ordering: .releasing)
    state.withLockedValue { state in
      if case .ended = state.phase { return }
      (state.session, state.process) = (session, process)
    }
  }
}
