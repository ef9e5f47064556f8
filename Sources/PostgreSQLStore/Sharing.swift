internal import Dispatch
package import Inbox
internal import NIOConcurrencyHelpers
internal import PlatformLibc
internal import Synchronization

/// How the servers that share a schema reach each other: by notifications, and by an advisory lock that each holds as long
/// as it lives.
final class Sharing: Sendable {
  /// A notification to all servers. Its text has words separated by spaces.
  enum Announcement {
    /// The database has new records or messages from this server.
    case written
    /// All servers, also this one, have a command to execute.
    case commanded
    /// A server waits until the others have written the pushes they have answered.
    case flush(request: Int)
    /// A server has done so.
    case flushed(server: Int, request: Int)
  }

  /// The query for the numbers of the servers that live: their connections hold their locks.
  let liveServers: String
  /// For what other servers wait for, so that long queries do not delay it.
  let connections: ConnectionPool
  /// Where notifications are answered: not the thread that receives them, and not that of the writer.
  private let replies = DispatchQueue(label: "store.replies")

  private let server: Int
  private let address: PostgreSQLAddress
  /// The first number of the locks of servers, which is different for each schema.
  private let lockClass: Int32
  private let state: NIOLockedValueBox<State>
  private let requests = Atomic<Int>(0)
  private let isStopping = Atomic<Bool>(false)
  private let ended = DispatchSemaphore(value: 0)

  private struct State {
    /// The connection that listens; nil while there is none.
    var connection: Connection?
    /// When the connection was opened; for the first one a time long ago.
    var connectedAt = ContinuousClock.now - .seconds(3600)
    /// What this server waits for: the servers that have to answer a request.
    var awaited: [Int: Set<Int>] = [:]
    var wake: [Int: DispatchSemaphore] = [:]
    /// Servers that have lost their connections, and were waited for in vain.
    var givenUp: Set<Int> = []
  }

  init(server: Int, _ address: PostgreSQLAddress, _ connection: Connection) throws {
    (self.server, self.address) = (server, address)
    lockClass = Int32(
      truncatingIfNeeded: try connection.query("SELECT hashtext($1)", [address.schema]).number(0, 0) ?? 0)
    liveServers = """
      SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
      AND classid::bigint = \(UInt32(bitPattern: lockClass)) \
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """
    connections = ConnectionPool(address, patience: .seconds(3))
    state = NIOLockedValueBox(State())
    let listening = try listen()
    state.withLockedValue { $0.connection = listening }
  }

  /// Opens a connection that holds the lock of this server and receives notifications.
  private func listen() throws -> Connection {
    let connection = try Connection(address, patience: .seconds(3))
    try connection.query("SELECT pg_advisory_lock_shared($1, $2)", [String(lockClass), String(server)])
    try connection.run("LISTEN \"\(address.schema)\"")
    return connection
  }

  // MARK: - Notifications

  /// Sends a notification when the transaction of `connection` is committed.
  func notify(_ announcement: Announcement, _ connection: Connection) throws(PostgreSQLError) {
    let text =
      switch announcement {
      case .written: "written \(server)"
      case .commanded: "commanded"
      case .flush(let request): "flush \(server) \(request)"
      case .flushed(let asking, let request): "flushed \(asking) \(request) \(server)"
      }
    try connection.query("SELECT pg_notify($1, $2)", [address.schema, text])
  }

  /// Receives notifications on a thread of its own until `stop`.
  func run(_ receive: @escaping @Sendable (StoreSignal) -> Void) {
    DispatchQueue(label: "store.notifications").async { [self] in
      while !isStopping.load(ordering: .relaxed) {
        do {
          guard let connection = state.withLockedValue(\.connection) else {
            let connection = try listen()
            state.withLockedValue { state in
              state.connection = connection
              state.connectedAt = .now
            }
            // Notifications may have been missed.
            receive(.changed)
            continue
          }
          var descriptor = pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0)
          // Also the time that stopping may take.
          poll(&descriptor, 1, 100)
          for text in try connection.notifications() { handle(text, receive) }
        } catch {
          // After a connection that worked, another one may work at once.
          let hasWorked = state.withLockedValue { state in
            defer { state.connection = nil }
            return state.connection != nil && .now - state.connectedAt > .seconds(1)
          }
          if !hasWorked { usleep(100_000) }
        }
      }
      ended.signal()
    }
  }

  private func handle(_ text: String, _ receive: @Sendable (StoreSignal) -> Void) {
    let words = text.split(separator: " ")
    let numbers = words.dropFirst().compactMap { Int($0) }
    switch (words.first, numbers.count) {
    case ("written", 1) where numbers[0] != server: receive(.changed)
    case ("commanded", 0): receive(.changed)
    case ("flush", 2) where numbers[0] != server:
      receive(
        .flush { [self] in
          replies.async { [self] in
            _ = try? connections.use { try notify(.flushed(server: numbers[0], request: numbers[1]), $0) }
          }
        })
    case ("flushed", 3) where numbers[0] == server:
      let wake = state.withLockedValue { state in
        state.awaited[numbers[1]]?.remove(numbers[2])
        return state.awaited[numbers[1]]?.isEmpty == true ? state.wake[numbers[1]] : nil
      }
      wake?.signal()
    default: break
    }
  }

  func stop() {
    isStopping.store(true, ordering: .relaxed)
    _ = ended.wait(timeout: .now() + .seconds(1))
    state.withLockedValue { $0.connection = nil }
    connections.close()
  }

  // MARK: - Waiting for other servers

  /// The time to wait for another server that lives.
  private static let patience = DispatchTimeInterval.milliseconds(1500)

  /// The time after which a request is repeated, because a server without a connection has missed it.
  private static let repetition = DispatchTimeInterval.milliseconds(200)

  /// The condition for servers that live: one whose process or machine has stopped is given up after ten seconds.
  private var isActive: String { "id IN (\(liveServers)) AND seen_at > now() - interval '10 s'" }

  /// The condition for servers that have shown lately that they live. They may have lost their connections.
  private var wasSeenLately: String {
    let isSettled = state.withLockedValue { state in
      state.connection != nil && .now - state.connectedAt > .seconds(Self.absence)
    }
    // After the database could not be reached, the other servers may not have connected again yet.
    return "seen_at > now() - interval '\(isSettled ? Self.absence : 60) s'"
  }

  /// The condition for servers that hold their locks, or were seen lately.
  var mayLive: String { "id IN (\(liveServers)) OR \(wasSeenLately)" }

  /// The seconds after which a server without a connection counts as dead. A server shows every second that it lives,
  /// unless it waits for another one to write.
  private static let absence = 3

  /// Returns the other servers that meet a condition.
  ///
  /// - Parameter onlyActive: Whether those that were only seen lately do not count.
  private func others(_ condition: String, _ parameters: [String] = [], onlyActive: Bool = false) throws -> Set<Int> {
    let rows = try connections.use { connection in
      try connection.query(
        "SELECT id, \(isActive) FROM server WHERE id <> $1 AND (\(onlyActive ? isActive : "\(isActive) OR \(wasSeenLately)")) AND (\(condition))",
        [String(server)] + parameters)
    }
    return state.withLockedValue { state in
      var others: Set<Int> = []
      for row in 0..<rows.count {
        guard let id = rows.number(row, 0).map({ Int($0) }) else { continue }
        if rows.number(row, 1) == 1 { state.givenUp.remove(id) }
        if !state.givenUp.contains(id) { others.insert(id) }
      }
      return others
    }
  }

  /// Waits until the other servers whose answers do not wait for the database have written what they have answered.
  ///
  /// - Throws: `StoreUnavailable` if one does not reply.
  func awaitOthers() throws {
    // A server that starts has answered nothing yet.
    let others = try others("durable = 'soon' AND applied_message IS NOT NULL")
    guard !others.isEmpty else { return }
    let request = requests.add(1, ordering: .relaxed).newValue
    let wake = DispatchSemaphore(value: 0)
    state.withLockedValue { state in
      state.awaited[request] = others
      state.wake[request] = wake
    }
    defer {
      state.withLockedValue { state in
        state.awaited[request] = nil
        state.wake[request] = nil
      }
    }
    let deadline = DispatchTime.now() + Self.patience
    repeat {
      try connections.use { try notify(.flush(request: request), $0) }
      if wake.wait(timeout: .now() + Self.repetition) == .success { return }
    } while .now() < deadline
    let silent = state.withLockedValue { $0.awaited[request] ?? [] }
    let active = try self.others(
      "id = ANY ($2::int[])", ["{\(silent.map { String($0) }.joined(separator: ","))}"], onlyActive: true)
    state.withLockedValue { $0.givenUp.formUnion(silent.subtracting(active)) }
    guard !active.isEmpty else { return }
    let names = active.sorted().map { String($0) }.joined(separator: ", ")
    throw StoreUnavailable(problem: "servers that share the store do not write what they have answered: \(names)")
  }

  /// Waits until the other servers have executed a command.
  ///
  /// - Returns: The servers that have not.
  func awaitConfirmation(of number: Int, until deadline: ContinuousClock.Instant) throws -> Set<Int> {
    // A server that starts has not executed a request yet, and does not listen.
    func missing(onlyActive: Bool) throws -> Set<Int> {
      try others("applied_message < $2", [String(number)], onlyActive: onlyActive)
    }
    let start = DispatchTime.now()
    while true {
      let remaining = try missing(onlyActive: false)
      if remaining.isEmpty || ContinuousClock.now >= deadline { return remaining }
      if .now() > start + Self.patience {
        let active = try missing(onlyActive: true)
        state.withLockedValue { $0.givenUp.formUnion(remaining.subtracting(active)) }
      }
      usleep(2_000)
    }
  }
}

extension PostgreSQLStore {
  package func listen(_ receive: @escaping @Sendable (StoreSignal) -> Void) { sharing.run(receive) }

  package func awaitOthers() throws { try sharing.awaitOthers() }

  package func send(
    _ command: String, _ kind: StoreCommand.Kind, supersedesState: Bool, emptiesInbox: Bool
  ) throws -> Int {
    try announce { connection in
      if emptiesInbox { _ = try empty(connection) }
      // Servers that run execute them nevertheless.
      if supersedesState { try connection.run("UPDATE message SET kind = 'once' WHERE kind = 'state'") }
      return try add(kind.rawValue, command, connection)
    }
  }

  package func supersede(uri: String, before number: Int) throws {
    try sharing.connections.use {
      _ = try $0.query(
        "UPDATE message SET kind = 'once' WHERE kind = 'lasting' AND number < $1 AND body::json ->> 'uri' = $2",
        [String(number), uri])
    }
  }

  package func empty() throws -> Int { try announce { try empty($0) } }

  /// Changes the table `contents` in a transaction of its own, and tells all servers.
  private func announce(_ change: (Connection) throws -> Int) throws -> Int {
    do {
      return try sharing.connections.use { connection in
        try connection.transaction {
          let result = try change(connection)
          try sharing.notify(.commanded, connection)
          return result
        }
      }
    } catch PostgreSQLError.commitUnknown(let text) {
      throw PostgreSQLError.commitUnknown(
        "\(text); the change may be made nevertheless, so check it before you repeat the request")
    }
  }

  /// Removes all records; returns their number. Writers remove the rows later.
  private func empty(_ connection: Connection) throws -> Int {
    // Locked, so that no other server writes in the meantime.
    let count = try connection.query("SELECT count FROM contents FOR UPDATE").number(0, 0) ?? 0
    try connection.run(
      "UPDATE contents SET emptied_through = last_seq, count = 0, bytes = 0, evicted = 0, last_evicted = 0")
    _ = try add("reset", "", connection)
    return Int(count)
  }

  /// Adds a message; returns its number.
  private func add(_ kind: String, _ body: String, _ connection: Connection) throws -> Int {
    let rows = try connection.query("UPDATE contents SET last_message = last_message + 1 RETURNING last_message")
    let number = Int(rows.number(0, 0) ?? 0)
    try connection.insertMessage(number, from: server, kind, body)
    return number
  }

  package func confirm(_ number: Int) throws {
    try sharing.connections.use {
      _ = try $0.query(
        "UPDATE server SET applied_message = greatest(applied_message, $1) WHERE id = $2",
        [String(number), String(server)])
    }
  }

  package func awaitConfirmation(of number: Int, until deadline: ContinuousClock.Instant) throws -> [Int] {
    try sharing.awaitConfirmation(of: number, until: deadline).sorted()
  }

  package func servers() throws -> [StoreServer] {
    try sharing.connections.use { connection in
      let rows = try connection.query(
        "SELECT id, durable FROM server WHERE id IN (\(sharing.liveServers)) ORDER BY id")
      return (0..<rows.count).map { StoreServer(id: Int(rows.number($0, 0) ?? 0), durability: rows.text($0, 1) ?? "") }
    }
  }
}

extension Connection {
  /// Inserts a message to the other servers, with the number after the newest one in the locked table `contents`.
  func insertMessage(_ number: Int, from server: Int, _ kind: String, _ body: String) throws(PostgreSQLError) {
    try query(
      "INSERT INTO message (number, server, kind, body) VALUES ($1, $2, $3, $4)",
      [String(number), String(server), kind, body])
  }
}
