import ClientCommands
import Inbox
import Logging
import Notation
import SQLiteStore

/// Where the inbox is kept.
struct StoreSettings: Sendable {
  /// The kinds of stores.
  enum Place: Sendable, Equatable {
    case memory
    /// An SQLite file, and the number of records that are in memory too; nil for the default.
    case sqlite(path: String, recent: Int?)
  }

  var place = Place.memory
  var options = RecordWriter.Options()
  /// Whether the number of records is limited by a setting, so that the default does not apply.
  var hasRecordLimit = false
  /// Whether the size of the records is limited by a setting.
  var hasSizeLimit = false
}

extension StoreSettings.Place {
  private static let allowed = "memory, or sqlite:FILE such as sqlite:inbox.db"

  /// Parses `memory` or `sqlite:FILE`, which may end with `?memory_records=N`.
  init(_ text: String) throws(InvalidSettingValue) {
    if text == "memory" {
      self = .memory
      return
    }
    guard text.hasPrefix("sqlite:") else { throw InvalidSettingValue(value: text, allowed: Self.allowed) }
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
  /// - Throws: `CommandFailure` if the store cannot be used.
  func open(logger: Logger) throws -> RecordWriter? {
    guard case .sqlite(let path, let recent) = place else {
      if let setting = settingWithoutStore {
        throw CommandFailure(
          .usage, "\(setting.flag) has no effect on an inbox in memory: add --store sqlite:FILE, or omit it")
      }
      return nil
    }
    var options = options
    if let recent { options.recentRecords = recent }
    let store: SQLiteStore
    do {
      store = try SQLiteStore(path: path, isDurable: options.durability == .answer) { logger.notice("\($0)") }
    } catch {
      throw CommandFailure(.usage, "\(Setting.store.flag): \(error)")
    }
    let action =
      options.failurePolicy == .refuse ? "pushes are answered 503 until it works" : "pushes are not kept until it works"
    return RecordWriter(store, options) { event in
      switch event {
      case .failed(let problem): logger.error("the store \(path) fails: \(problem): \(action)")
      case .recovered(let time): logger.notice("the store \(path) works again after \(DurationFormat.text(time))")
      }
    }
  }
}
