import ClientCommands
import Inbox
import Logging
import Notation
import PostgreSQLStore
import SQLiteStore

/// Where the inbox is kept.
struct StoreSettings: Sendable {
  /// The kinds of stores.
  enum Place: Sendable, Equatable {
    case memory
    /// An SQLite file, and the number of records that are in memory too; nil for the default.
    case sqlite(path: String, recent: Int?)
    /// A schema of a PostgreSQL database, which other servers may use too.
    case postgreSQL(PostgreSQLAddress)
  }

  var place = Place.memory
  var options = RecordWriter.Options()
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
  /// A setting with another value than its default that has an effect only with a store.
  private var settingWithoutStore: Setting? {
    if options.durability != .soon { return .durable }
    if options.failurePolicy != .refuse { return .storeFailure }
    return options.retention == nil ? nil : .retain
  }

  /// Opens the store; nil for an inbox in memory.
  ///
  /// - Parameter seed: The seed of the server, for other servers that share the store.
  /// - Throws: `CommandFailure` if the store cannot be used.
  func open(seed: UInt64, logger: Logger) throws -> RecordWriter? {
    var options = options
    let store: any RecordStore
    do {
      switch place {
      case .memory:
        guard let setting = settingWithoutStore else { return nil }
        throw CommandFailure(
          .usage, "\(setting.flag) has no effect on an inbox in memory: add --store sqlite:FILE, or omit it")
      case .sqlite(let path, let recent):
        options.recentRecords = recent ?? options.recentRecords
        store = try SQLiteStore(path: path, isDurable: options.durability == .answer) { logger.notice("\($0)") }
      case .postgreSQL(let address):
        options.recentRecords = address.recentRecords ?? options.recentRecords
        store = try PostgreSQLStore(
          address, recentRecords: options.recentRecords, durability: options.durability, seed: seed
        ) { logger.notice("\($0)") }
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(.usage, "\(Setting.store.flag): \(error)")
    }
    let action =
      options.failurePolicy == .refuse ? "pushes are answered 503 until it works" : "pushes are not kept until it works"
    return RecordWriter(store, options) { [place = store.place] event in
      switch event {
      case .failed(let problem): logger.error("the store \(place) fails: \(problem): \(action)")
      case .readFailed(let problem):
        logger.error("the store \(place) cannot be read: \(problem): queries that need it are answered 503")
      case .recovered(let time): logger.notice("the store \(place) works again after \(DurationFormat.text(time))")
      }
    }
  }
}
