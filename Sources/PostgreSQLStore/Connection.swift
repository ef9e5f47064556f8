internal import APNSMockInbox
internal import APNSMockPlatformLibc

/// A connection to the database, which one thread uses at a time.
///
/// Unchecked because libpq allows any thread to use a connection, one at a time, and each owner has a lock for it: that of
/// the pool lends it to one caller, that of the writer is held while it is used, and that of the advisory lock has one thread.
final class Connection: @unchecked Sendable {
  private let library: LibPQ
  private let handle: LibPQ.Connection

  /// The time in which the database has to execute a command.
  private var patience: Duration
  /// When it has to have answered a command that is sent now. Later than `patience`, so that the database itself reports that
  /// a command takes too long.
  private var deadline: ContinuousClock.Instant { .now + patience + .seconds(1) }
  /// Whether the database has not answered in time. The connection cannot be used then.
  private(set) var isSilent = false
  /// Whether a transaction could not be ended. The connection cannot be used then.
  private var isInTransaction = false

  /// Connects.
  ///
  /// - Parameters:
  ///   - address: The database, the schema, and what else the URL says.
  ///   - patience: The time in which the database has to execute a command.
  init(_ address: PostgreSQLAddress, patience: Duration) throws(PostgreSQLError) {
    guard let library = LibPQ.shared else { throw .missingLibrary }
    self.library = library
    self.patience = patience
    // `dbname` may be a URL, whose parameters override those before it.
    let names = [
      "target_session_attrs", "connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count",
      "tcp_user_timeout", "application_name", "client_encoding", "dbname",
    ]
    let values = ["read-write", "3", "10", "3", "3", "10000", "apns-mock", "UTF8", address.url]
    let connection = Self.withTexts(names) { names in
      Self.withTexts(values) { library.connect(names, $0, 1) }
    }
    guard let connection else { throw .other("libpq has no memory") }
    handle = connection
    guard library.status(connection) == LibPQ.connectionOK else { throw error(nil) }
    _ = library.setNoticeProcessor(connection, { _, _ in }, nil)
    _ = library.setNonBlocking(connection, 1)
    try run(
      """
      SET search_path TO "\(address.schema)"; SET standard_conforming_strings TO on; \
      SET default_transaction_isolation TO 'read committed'; SET idle_in_transaction_session_timeout TO '1500ms'; \
      SET lock_timeout TO '4s'; SET jit TO off; SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 3; \
      SET tcp_keepalives_count TO 3; SET tcp_user_timeout TO 20000
      """)
    try setTimeout()
  }

  private func setTimeout() throws(PostgreSQLError) {
    try run("SET statement_timeout TO \(Int(patience / .milliseconds(1)))")
  }

  /// Executes `body`, whose commands may take longer than others.
  func withPatience(_ time: Duration, _ body: () throws -> Void) throws {
    let usual = patience
    patience = time
    defer { patience = usual }
    try setTimeout()
    try body()
    patience = usual
    try setTimeout()
  }

  deinit { library.finish(handle) }

  /// Whether the connection was lost.
  var isBroken: Bool { isSilent || isInTransaction || library.status(handle) != LibPQ.connectionOK }

  var serverVersion: Int { Int(library.serverVersion(handle)) }

  /// The id of the database process of the connection, as libpq received it when the connection was opened.
  var reportedProcess: Int64 { Int64(library.processOfServer(handle)) }

  private var socket: Int32 { library.socket(handle) }

  // MARK: - Commands

  /// Executes commands whose result is not needed.
  func run(_ sql: String) throws(PostgreSQLError) {
    guard sql.withCString({ library.send(handle, $0) }) == 1 else { throw error(nil) }
    try finish(expecting: [LibPQ.commandOK, LibPQ.tuplesOK])
  }

  /// Executes one command with parameters as texts.
  @discardableResult
  func query(_ sql: String, _ parameters: [String?] = []) throws(PostgreSQLError) -> Rows {
    let isSent = Self.withTexts(parameters) { values in
      // 1: results in binary format.
      sql.withCString { library.sendWithParameters(handle, $0, Int32(parameters.count), nil, values, nil, nil, 1) }
    }
    guard isSent == 1 else { throw error(nil) }
    let deadline = deadline
    guard let result = try nextResult(until: deadline) else { throw error(nil) }
    let rows = Rows(result, of: library)
    let status = library.resultStatus(result)
    let failure = status == LibPQ.commandOK || status == LibPQ.tuplesOK ? nil : error(result)
    while let other = try nextResult(until: deadline) { library.clear(other) }
    if let failure { throw failure }
    return rows
  }

  /// Executes a COPY from the client.
  ///
  /// - Parameter send: Is called to write all rows, with a function that sends a part of them.
  func copy(_ sql: String, _ send: ((borrowing [UInt8]) throws -> Void) throws -> Void) throws {
    guard sql.withCString({ library.send(handle, $0) }) == 1 else { throw error(nil) }
    guard let begun = try nextResult(until: deadline) else { throw error(nil) }
    let isBegun = library.resultStatus(begun) == LibPQ.copyIn
    let failure = isBegun ? nil : error(begun)
    library.clear(begun)
    if let failure {
      try? finish(expecting: [])
      throw failure
    }
    do {
      try send { bytes in
        let isQueued = bytes.withUnsafeBytes { bytes in
          bytes.withMemoryRebound(to: CChar.self) { bytes in
            bytes.baseAddress.map { library.putCopyData(handle, $0, Int32(bytes.count)) == 1 } ?? true
          }
        }
        if !isQueued { throw error(nil) }
        try flush(until: deadline)
      }
    } catch {
      if !isBroken {
        _ = library.putCopyEnd(handle, "the rows could not be sent")
        try? finish(expecting: [])
      }
      throw error
    }
    guard library.putCopyEnd(handle, nil) == 1 else { throw error(nil) }
    try finish(expecting: [LibPQ.commandOK])
  }

  /// Reads all results of what was sent.
  ///
  /// - Throws: The first error of the database.
  private func finish(expecting expected: [Int32]) throws(PostgreSQLError) {
    let deadline = deadline
    var failure: PostgreSQLError?
    while let result = try nextResult(until: deadline) {
      if !expected.contains(library.resultStatus(result)) { failure = failure ?? error(result) }
      library.clear(result)
    }
    if let failure { throw failure }
    if isBroken { throw error(nil) }
  }

  /// Returns the next result of what was sent; nil after the last one.
  private func nextResult(until deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> LibPQ.Result? {
    try flush(until: deadline)
    while library.isBusy(handle) == 1 {
      try wait(for: POLLIN, until: deadline)
      guard library.consumeInput(handle) == 1 else { throw error(nil) }
    }
    return library.nextResult(handle)
  }

  private func flush(until deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    while true {
      let rest = library.flush(handle)
      guard rest != 0 else { return }
      guard rest == 1 else { throw error(nil) }
      // The database may have to be read before it reads.
      try wait(for: POLLIN | POLLOUT, until: deadline)
      guard library.consumeInput(handle) == 1 else { throw error(nil) }
    }
  }

  /// The minimum milliseconds to wait for the database.
  private static let leastWait: Int32 = 100

  private func wait(for events: CInt, until deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    // If this process was suspended until after the deadline, the database may have answered in that time.
    let time = max(Self.leastWait, Int32(clamping: Int((deadline - .now) / .milliseconds(1))))
    var descriptor = pollfd(fd: socket, events: Int16(events), revents: 0)
    guard poll(&descriptor, 1, time) == 0 else { return }
    isSilent = true
    throw .unreachable("the database does not answer")
  }

  /// Executes `body` in a transaction.
  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try run("BEGIN")
    let result: Result
    do {
      result = try body()
    } catch {
      if !isBroken {
        // The timeout of the failed command may also cancel this one.
        do { try run("ROLLBACK") } catch { isInTransaction = true }
      }
      throw error
    }
    do {
      try run("COMMIT")
    } catch {
      // If the connection is lost now, the database may have committed or not.
      throw isBroken ? PostgreSQLError.commitUnknown("\(error)") : error
    }
    return result
  }

  // MARK: - Errors

  private func error(_ result: LibPQ.Result?) -> PostgreSQLError {
    let state = result.flatMap { library.resultErrorField($0, LibPQ.sqlState) }.map { String(cString: $0) }
    let message =
      result.flatMap { library.resultErrorField($0, LibPQ.primaryMessage) } ?? library.errorMessage(handle)
    let text = message.map { String(cString: $0) } ?? "unknown error"
    return PostgreSQLError(state: state, message: text)
  }

  /// Calls `body` with C strings, and a null after the last one.
  private static func withTexts<Result>(_ texts: [String?], _ body: (LibPQ.Texts) -> Result) -> Result {
    let copies = texts.map { $0.flatMap { strdup($0) } }
    let pointers = UnsafeMutablePointer<LibPQ.Text?>.allocate(capacity: copies.count + 1)
    pointers.initialize(repeating: nil, count: copies.count + 1)
    defer {
      pointers.deallocate()
      for copy in copies { free(copy) }
    }
    for (index, copy) in copies.enumerated() { pointers[index] = copy.map { UnsafePointer($0) } }
    return body(pointers)
  }
}

/// The rows of a result in binary format.
final class Rows {
  private let result: LibPQ.Result
  private let library: LibPQ
  let count: Int

  fileprivate init(_ result: LibPQ.Result, of library: LibPQ) {
    (self.result, self.library) = (result, library)
    count = Int(library.rowCount(result))
  }

  deinit { library.clear(result) }

  func withBytes<Result>(_ row: Int, _ column: Int, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result {
    let (row, column) = (Int32(row), Int32(column))
    guard library.isNull(result, row, column) == 0, let value = library.value(result, row, column) else {
      return read(nil)
    }
    return read(UnsafeRawBufferPointer(start: value, count: Int(library.length(result, row, column))))
  }

  /// Returns the type of a value.
  func type(_ row: Int, _ column: Int) -> StoredType {
    guard library.isNull(result, Int32(row), Int32(column)) == 0 else { return .null }
    // The numbers of PostgreSQL's own types, which are the same in all versions.
    switch library.columnType(result, Int32(column)) {
    // bool, int8, int2, int4
    case 16, 20, 21, 23: return .number
    // bytea
    case 17: return .bytes
    // name, text, bpchar, varchar
    case 19, 25, 1042, 1043: return .text
    default: return .other
    }
  }

  /// A number of any width, or a truth value; nil for null.
  func number(_ row: Int, _ column: Int) -> Int64? {
    withBytes(row, column) { bytes in
      guard let bytes else { return nil }
      switch bytes.count {
      case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
      case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
      case 2: return Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
      case 1: return Int64(bytes[0])
      default: return nil
      }
    }
  }

  func text(_ row: Int, _ column: Int) -> String? {
    withBytes(row, column) { $0.map { String(decoding: $0, as: UTF8.self) } }
  }
}
