import APNSMockClientCommands
import APNSMockInbox
import Logging
import MockAPNS
import APNSMockNotation
import APNSMockPostgreSQLStore
import APNSMockSQLiteStore

/// Where the inbox is kept.
struct StoreSettings: Sendable {
  /// The kinds of stores.
  enum Place: Sendable, Equatable {
    case memory
    /// An SQLite file, and the number of records that are in memory too; nil for the default.
    case sqlite(path: String, recent: Int?)
    /// A schema of a PostgreSQL database, which may have standby servers.
    case postgreSQL(PostgreSQLAddress)
  }

  var place = Place.memory
  var options = RecordWriter.Options()
  /// The URL of the admin API that standby servers name; nil for the address of the listener.
  var advertisedURL: String?
  /// Whether the number of records is limited by a setting, so that the default does not apply.
  var hasRecordLimit = false
  /// Whether the size of the records is limited by a setting.
  var hasSizeLimit = false
}

extension StoreSettings.Place {
  private static let allowed = "memory, sqlite:FILE such as sqlite:inbox.db, or \(PostgreSQLAddress.allowed)"

  /// Parses `memory`, `sqlite:FILE`, which may end with `?memory_records=N`, or a URL of PostgreSQL.
  init(_ text: String) throws(InvalidSettingValue) {
    if text == "memory" {
      self = .memory
      return
    }
    if PostgreSQLAddress.isAddress(text) {
      do {
        self = .postgreSQL(try PostgreSQLAddress(text))
        return
      } catch {
        throw InvalidSettingValue(value: PostgreSQLAddress.withoutSecrets(text), allowed: error.allowed)
      }
    }
    guard text.hasPrefix("sqlite:") else {
      // It may be a misspelled URL.
      throw InvalidSettingValue(value: PostgreSQLAddress.withoutSecrets(text), allowed: Self.allowed)
    }
    let parts = text.dropFirst("sqlite:".count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = String(parts.first ?? "")
    guard !path.isEmpty, !path.hasPrefix("//"), path != ":memory:" else {
      throw InvalidSettingValue(value: text, allowed: Self.allowed)
    }
    guard parts.count == 2 else {
      self = .sqlite(path: path, recent: nil)
      return
    }
    let name = "memory_records="
    guard parts[1].hasPrefix(name), let recent = Int(parts[1].dropFirst(name.count)), recent > 0 else {
      throw InvalidSettingValue(value: text, allowed: "sqlite:FILE, or sqlite:FILE?memory_records=N with N from 1")
    }
    self = .sqlite(path: path, recent: recent)
  }
}

extension StoreSettings {
  /// Opens the session for the lock of the schema; nil for another store.
  ///
  /// - Throws: `CommandFailure` if the database cannot be used.
  func lock() throws -> ActiveLock? {
    guard case .postgreSQL(let address) = place else {
      guard advertisedURL == nil else {
        throw CommandFailure(
          .usage,
          "\(Setting.advertise.flag) has an effect only with --store postgres://…, which other servers may use too")
      }
      return nil
    }
    return try Self.opening { try ActiveLock(address) }
  }

  /// Opens the store; nil for an inbox in memory.
  ///
  /// - Parameters:
  ///   - lock: The lock of the schema, which this server has.
  ///   - seed: The seed to store, if none is stored.
  /// - Throws: `CommandFailure` if the store cannot be used.
  func open(_ lock: ActiveLock?, seed: UInt64, logger: Logger) throws -> RecordWriter? {
    var options = options
    let isDurable = options.durability == .answer
    let store: any RecordStore
    switch place {
    case .memory: return nil
    case .sqlite(let path, let recent):
      options.recentRecords = recent ?? options.recentRecords
      store = try Self.opening {
        try SQLiteStore(path: path, isDurable: isDurable, seed: seed) { logger.notice("\($0)") }
      }
    case .postgreSQL(let address):
      guard let lock else { return nil }
      options.recentRecords = address.recentRecords ?? options.recentRecords
      store = try Self.opening {
        try PostgreSQLStore(lock, isDurable: isDurable, seed: seed) { logger.notice("\($0)") }
      }
    }
    let action =
      options.failurePolicy == .refuse ? "pushes are answered 503 until it works" : "pushes are not kept until it works"
    return RecordWriter(store, options) { [place = store.place] event in
      switch event {
      case .failed(let problem): logger.error("the store \(place) fails: \(problem): \(action)")
      case .readFailed(let problem):
        logger.error("the store \(place) cannot be read: \(problem): queries that need it are answered 503")
      case .leftOut(let problem):
        logger.error(
          "the store \(place): \(problem): lists, statistics and findings leave the push out and are not complete")
      case .recovered(let time): logger.notice("the store \(place) works again after \(DurationFormat.text(time))")
      }
    }
  }

  private static func opening<Store>(_ open: () throws -> Store) throws -> Store {
    do {
      return try open()
    } catch {
      throw CommandFailure(.usage, "\(Setting.store.flag): \(error)")
    }
  }

  /// Stores the URL of this server, which standby servers name to their clients.
  func advertise(_ state: ServerState, logger: Logger) async {
    guard let writer = state.inbox.writer, let store = writer.store as? PostgreSQLStore else { return }
    let own = state.adminAddress.flatMap { $0.isReachable ? "http://\($0)" : nil }
    do {
      try await writer.blocking { [url = advertisedURL ?? own] in try store.advertise(url) }
    } catch {
      logger.warning("standby servers do not know the URL of this one: \(error.problem)")
    }
  }
}

extension MockServer.Endpoint {
  /// Whether other machines may reach it by this host.
  fileprivate var isReachable: Bool { !isLoopback && host != "0.0.0.0" && host != "::" }
}
