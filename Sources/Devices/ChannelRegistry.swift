package import APNSMockRules
internal import NIOConcurrencyHelpers

/// The broadcast channels of all apps in both environments (Protocol.md, section 10.2).
///
/// Safe to call from any thread: one lock protects everything.
package final class ChannelRegistry: Sendable {
  /// The maximum number of channels of all apps, which bounds the memory: about 20 MB.
  package static let limit = 100_000

  /// The maximum number of apps with channels, each environment counted on its own. An app takes far more memory than a
  /// channel: about 10 MB in all.
  package static let appLimit = 10_000

  private struct App: Hashable, Sendable {
    let bundleID: String
    let environment: PushEnvironment

    init(_ name: ChannelName) {
      bundleID = name.bundleID
      environment = name.environment
    }
  }

  private struct Channel: Sendable {
    var storagePolicy: StoragePolicy
    /// The position in the order of creation.
    let position: Int
  }

  private struct Channels: Sendable {
    var byApp: [App: [String: Channel]] = [:]
    var count = 0

    subscript(_ name: ChannelName) -> Channel? { byApp[App(name)]?[name.id] }

    mutating func set(_ name: ChannelName, _ channel: Channel) {
      if byApp[App(name), default: [:]].updateValue(channel, forKey: name.id) == nil { count += 1 }
    }

    mutating func remove(_ name: ChannelName) -> Bool {
      guard byApp[App(name)]?.removeValue(forKey: name.id) != nil else { return false }
      if byApp[App(name)]?.isEmpty == true { byApp[App(name)] = nil }
      count -= 1
      return true
    }
  }

  private struct State: Sendable {
    var channels = Channels()
    var initial = Channels()
    /// The number of channels that are reserved, of all apps and by app.
    var reservedCount = 0
    var reserved: [App: Int] = [:]
    var nextPosition = 0
    /// The number of ids that were made.
    var made: UInt64 = 0
    /// Called for each change; nil without a listener.
    var report: (@Sendable (ChannelName) -> Void)?
    /// Throws if the app or the server cannot have a further channel.
    func checkLimits(of app: App) throws(ChannelLimit) {
      guard (channels.byApp[app]?.count ?? 0) + (reserved[app] ?? 0) < ChannelDescription.limit else {
        throw .ofApp(ChannelDescription.limit)
      }
      guard channels.count + reservedCount < ChannelRegistry.limit else { throw .ofServer(ChannelRegistry.limit) }
      guard channels.byApp[app] == nil, reserved[app] == nil else { return }
      guard channels.byApp.count + reserved.keys.count(where: { channels.byApp[$0] == nil }) < ChannelRegistry.appLimit
      else { throw .apps(ChannelRegistry.appLimit) }
    }

    /// Adds a channel, or replaces the one of that name.
    mutating func set(_ name: ChannelName, _ storagePolicy: StoragePolicy) {
      channels.set(name, Channel(storagePolicy: storagePolicy, position: channels[name]?.position ?? nextPosition))
      nextPosition += 1
      report?(name)
    }
  }

  private let state = NIOLockedValueBox(State())
  private let makeID: @Sendable (_ number: UInt64) -> String

  /// Creates an empty registry.
  ///
  /// - Parameter makeID: Returns the id with a number from 1, different for each.
  package init(makeID: @escaping @Sendable (_ number: UInt64) -> String) { self.makeID = makeID }

  /// Calls `report` for each channel that is added, changed or removed from now on, but for `reset()`.
  package func reportChanges(_ report: @escaping @Sendable (ChannelName) -> Void) {
    state.withLockedValue { $0.report = report }
  }

  /// The number of ids that were made.
  package var idCount: UInt64 { state.withLockedValue(\.made) }

  /// Notes that this many ids were made before, so that none is made again.
  package func didGenerate(_ count: UInt64) { state.withLockedValue { $0.made = max($0.made, count) } }

  /// The number of channels.
  package var count: Int { state.withLockedValue { $0.channels.count } }

  /// Returns the storage policy of a channel; nil if it does not exist.
  package func storagePolicy(of channel: ChannelName) -> StoragePolicy? {
    state.withLockedValue { $0.channels[channel]?.storagePolicy }
  }

  /// Returns channels, sorted by app, environment and the order of creation.
  ///
  /// - Parameters:
  ///   - bundleID: The app; nil for all.
  ///   - environment: The environment; nil for both.
  package func channels(of bundleID: String? = nil, in environment: PushEnvironment? = nil) -> [ChannelDescription] {
    let channels = state.withLockedValue { $0.channels }
    let apps = channels.byApp.keys.filter { app in
      (bundleID ?? app.bundleID) == app.bundleID && (environment ?? app.environment) == app.environment
    }
    return apps.sorted { ($0.bundleID, $0.environment.rawValue) < ($1.bundleID, $1.environment.rawValue) }.flatMap {
      app in
      (channels.byApp[app] ?? [:]).sorted { $0.value.position < $1.value.position }.map { id, channel in
        ChannelDescription(
          bundleID: app.bundleID, environment: app.environment, id: id,
          messageStoragePolicy: channel.storagePolicy.rawValue)
      }
    }
  }

  // MARK: - Creation

  /// Reserves a channel with a new id. It exists after `create`.
  ///
  /// - Throws: `ChannelLimit` if the app or the server has too many channels.
  package func reserve(_ bundleID: String, in environment: PushEnvironment) throws(ChannelLimit) -> ChannelName {
    let result = state.withLockedValue { state in
      Result { () throws(ChannelLimit) in
        var name: ChannelName
        repeat {
          state.made += 1
          name = ChannelName(bundleID: bundleID, environment: environment, id: makeID(state.made))
        } while state.channels[name] != nil
        try state.checkLimits(of: App(name))
        state.reserved[App(name), default: 0] += 1
        state.reservedCount += 1
        return name
      }
    }
    return try result.get()
  }

  /// Creates a reserved channel.
  package func create(_ reserved: ChannelName, _ storagePolicy: StoragePolicy) {
    state.withLockedValue { state in
      Self.endReservation(of: App(reserved), in: &state)
      state.set(reserved, storagePolicy)
    }
  }

  /// Ends the reservation of a channel that is not created.
  package func release(_ reserved: ChannelName) {
    state.withLockedValue { Self.endReservation(of: App(reserved), in: &$0) }
  }

  private static func endReservation(of app: App, in state: inout State) {
    state.reservedCount -= 1
    state.reserved[app] = state.reserved[app].flatMap { $0 > 1 ? $0 - 1 : nil }
  }

  /// Adds channels with given ids, all or none. The storage policy of a channel that exists is replaced.
  ///
  /// - Returns: The number of channels that did not exist.
  /// - Throws: `ChannelLimit` if an app or the server would have too many channels; then nothing changes.
  @discardableResult
  package func add(_ descriptions: [ChannelDescription]) throws(ChannelLimit) -> Int {
    let result = state.withLockedValue { state in
      Result { () throws(ChannelLimit) in
        var changed = state
        for description in descriptions {
          let name = ChannelName(description)
          if changed.channels[name] == nil { try changed.checkLimits(of: App(name)) }
          changed.set(name, StoragePolicy(rawValue: description.messageStoragePolicy) ?? .none)
        }
        defer { state = changed }
        return changed.channels.count - state.channels.count
      }
    }
    return try result.get()
  }

  // MARK: - Removal

  /// Removes a channel.
  ///
  /// - Returns: Whether it existed.
  @discardableResult
  package func remove(_ channel: ChannelName) -> Bool {
    state.withLockedValue { state in
      guard state.channels.remove(channel) else { return false }
      state.report?(channel)
      return true
    }
  }

  /// Makes the current channels those that `reset` restores.
  package func saveAsInitial() { state.withLockedValue { $0.initial = $0.channels } }

  /// Restores the initial channels. Ids of new channels still differ from all former ones.
  package func reset() {
    state.withLockedValue { $0.channels = $0.initial }
  }
}

extension ChannelName {
  /// The name of a channel in a fixture file.
  package init(_ description: ChannelDescription) {
    self.init(bundleID: description.bundleID, environment: description.environment, id: description.id)
  }
}

/// A broadcast channel, as in a fixture file.
package struct ChannelDescription: Sendable, Equatable {
  /// The app that the channel belongs to.
  package var bundleID: String
  package var environment: PushEnvironment
  /// The id in base64.
  package var id: String
  /// 0 if nothing is stored for devices that are offline, 1 if the newest message is (Protocol.md, section 10).
  package var messageStoragePolicy: Int

  /// Creates a description of a channel.
  package init(bundleID: String, environment: PushEnvironment, id: String, messageStoragePolicy: Int) {
    self.bundleID = bundleID
    self.environment = environment
    self.id = id
    self.messageStoragePolicy = messageStoragePolicy
  }

  /// The maximum number of channels of an app in an environment (Protocol.md, section 10).
  package static let limit = 10_000

  /// Returns whether `text` can be a channel's id: standard base64 with padding, of 1 to 256 characters.
  package static func isID(_ text: String) -> Bool { ChannelID.isWellFormed(text) }
}
