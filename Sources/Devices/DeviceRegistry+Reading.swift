internal import APNSMockNotation
package import APNSMockRules
internal import NIOConcurrencyHelpers

/// Descriptions of what is registered.
extension DeviceRegistry {
  /// A registered token in lists.
  package struct TokenListing: Sendable {
    package let token: SingleToken
    /// The device that the token belongs to; nil for a token that was registered alone.
    package let deviceID: String?
    /// The bundle id of the app; nil for a token that was registered alone.
    package let bundleID: String?
    /// What the token was registered for; nil for a token that was registered alone.
    package let kind: TokenKind?
    /// The states of the device and of the app on it; nil for a token that was registered alone, or whose app was
    /// installed again.
    package let states: (device: DeviceState, app: InstallationState)?
    /// The number of pushes that are stored for the token, or held by the system of its device for the app.
    package fileprivate(set) var stored = 0
    /// The number of pushes that the device shows for the app.
    package fileprivate(set) var shown = 0
  }

  /// What a device has received and keeps.
  package struct DeviceContents: Sendable {
    /// The pushes that the device shows, oldest first.
    package let shown: [ShownPush]
    /// The pushes that are stored until the device can receive them, or held by its system.
    package let stored: [ShownPush]
  }

  /// A push that a device shows, or that is stored for it.
  package struct ShownPush: Sendable, Equatable {
    package let seq: Int
    package let bundleID: String
    package let environment: PushEnvironment
    /// The token of the Live Activity that shows it; nil for other notifications.
    package let activity: String?
  }

  /// Returns a device; nil if there is none.
  package func device(_ id: String) -> DeviceDescription? {
    state.withLockedValue { state in state.tables.device(id).map { state.tables.description(of: $0) } }
  }

  /// Returns a token; nil if it is not registered.
  package func token(_ text: String) -> TokenListing? {
    state.withLockedValue { state in state.tables.index(ofToken: text).map { state.listing(of: $0) } }
  }

  /// Returns up to `limit` devices in the order of registration, from a position on.
  ///
  /// - Returns: The devices, and the position of the next one; nil at the end.
  package func devices(from position: Int = 0, limit: Int) -> (items: [DeviceDescription], next: Int?) {
    state.withLockedValue { $0.tables.devices(from: position, limit: limit) }
  }

  /// Returns the ids of up to `limit` devices, in the order of registration.
  package func ids(limit: Int) -> [String] {
    state.withLockedValue { state in
      let tables = state.tables
      return tables.devices.indices.lazy.filter { !tables.devices[$0].isFree }.prefix(limit)
        .map { tables.id(of: DeviceTables.Index($0)) }
    }
  }

  /// Returns up to `limit` tokens in the order of registration, from a position on.
  ///
  /// - Returns: The tokens, and the position of the next one; nil at the end.
  package func tokens(from position: Int = 0, limit: Int) -> (items: [TokenListing], next: Int?) {
    state.withLockedValue { state in
      let tables = state.tables
      return Self.page(from: position, limit: limit, count: tables.tokens.count) { index in
        tables.tokens[index].state == .free ? nil : state.listing(of: DeviceTables.Index(index))
      }
    }
  }

  fileprivate static func page<Item>(
    from position: Int, limit: Int, count: Int, _ item: (Int) -> Item?
  ) -> (items: [Item], next: Int?) {
    var items: [Item] = []
    var index = max(0, position)
    while index < count, items.count < limit {
      if let found = item(index) { items.append(found) }
      index += 1
    }
    return (items, index < count ? index : nil)
  }

  /// Returns what a device shows and what is stored for it; nil if there is no such device.
  package func contents(of id: String) -> DeviceContents? {
    state.withLockedValue { state in
      guard let device = state.tables.device(id) else { return nil }
      let stored = state.tables.installations(of: device).flatMap { installation in
        let pushes = Deliveries.storageKeys(installation).compactMap { state.deliveries.storedPushes[$0]?.push }
        let held = state.deliveries.heldPushes[UInt64(installation)]
        return (pushes + [held].compactMap(\.self)).map { state.tables.shown($0) }
      }
      return DeviceContents(
        shown: (state.deliveries.shown[device] ?? []).map { state.tables.shown($0) },
        stored: stored.sorted { $0.seq < $1.seq })
    }
  }

  // MARK: - Listeners

  /// Requests the events of all devices, until `endWatchingAll` has been called once for each call of this method.
  package func beginWatchingAll() { state.withLockedValue { $0.deliveries.watchingAll += 1 } }

  /// Ends a request of `beginWatchingAll`.
  package func endWatchingAll() { state.withLockedValue { $0.deliveries.watchingAll -= 1 } }

  /// Requests the events of a device, until `endWatching` has been called once for each call of this
  /// method.
  ///
  /// - Throws: `DeviceError` if there is no such device.
  package func beginWatching(_ id: String) throws(DeviceError) {
    let found = state.withLockedValue { state in
      guard let device = state.tables.device(id) else { return false }
      state.deliveries.watched[device, default: 0] += 1
      return true
    }
    guard found else { throw .unknownDevice(id) }
  }

  /// Ends a request of `beginWatching`.
  package func endWatching(_ id: String) {
    state.withLockedValue { state in
      guard let device = state.tables.device(id), let count = state.deliveries.watched[device] else { return }
      state.deliveries.watched[device] = count > 1 ? count - 1 : nil
    }
  }

  // MARK: - Subscriptions

  /// Subscribes an app on a device to a channel.
  ///
  /// - Throws: `DeviceError` if the app is not installed on the device for the channel's environment.
  package func subscribe(_ id: String, to channel: ChannelName) throws(DeviceError) {
    let failure: DeviceError? = state.withLockedValue { state in
      guard let device = state.tables.device(id) else { return .unknownDevice(id) }
      guard let installation = state.tables.installation(of: channel, on: device) else {
        let installed = state.tables.description(of: device).apps.map { "\($0.bundleID) (\($0.environment.rawValue))" }
        return .notInstalled("\(channel.bundleID) (\(channel.environment.rawValue))", on: id, installed: installed)
      }
      // Only broadcasts after the subscription are delivered.
      state.deliveries.subscribers[channel, default: [:]][installation] =
        state.deliveries.storedBroadcasts[channel]?.acceptance ?? Deliveries.Acceptance(time: .min, seq: 0)
      state.report?(.device(id))
      return nil
    }
    if let failure { throw failure }
  }

  /// Ends a subscription.
  ///
  /// - Returns: Whether there was one.
  package func unsubscribe(_ id: String, from channel: ChannelName) -> Bool {
    state.withLockedValue { state in
      guard let device = state.tables.device(id),
        let installation = state.tables.installation(of: channel, on: device)
      else { return false }
      state.report?(.device(id))
      return state.deliveries.subscribers[channel]?.removeValue(forKey: installation) != nil
    }
  }

  /// Returns the channels that a device is subscribed to, sorted by app and id.
  package func subscriptions(of id: String) -> [ChannelName] {
    state.withLockedValue { state in
      guard let device = state.tables.device(id) else { return [] }
      let installations = Set(state.tables.installations(of: device))
      return state.deliveries.subscribers.filter { !installations.isDisjoint(with: $0.value.keys) }.keys
        .sorted { ($0.bundleID, $0.id) < ($1.bundleID, $1.id) }
    }
  }

  /// Returns the number of subscribers of a channel.
  package func subscriberCount(of channel: ChannelName) -> Int {
    state.withLockedValue { $0.deliveries.subscribers[channel]?.count ?? 0 }
  }

  /// Forgets a channel that was removed. A stored broadcast may still be delivered (Protocol.md, section 10,
  /// documented).
  package func removeSubscriptions(of channel: ChannelName) {
    state.withLockedValue { state in
      let former = state.deliveries.subscribers.removeValue(forKey: channel) ?? [:]
      for installation in former.keys { state.reportChange(of: installation) }
    }
  }
}

extension DeviceRegistry.State {
  /// Describes a token and counts what its device stores and shows.
  func listing(of index: DeviceTables.Index) -> DeviceRegistry.TokenListing {
    var listing = tables.listing(of: index)
    let token = tables.tokens[Int(index)]
    let device = tables.installations[Int(token.installation)].device
    guard device != DeviceTables.none else { return listing }
    let key = Deliveries.storageKey(token.installation, kind: token.kind)
    let isHeld = token.kind == .alert && deliveries.heldPushes[UInt64(token.installation)] != nil
    listing.stored = (deliveries.storedPushes[key] == nil ? 0 : 1) + (isHeld ? 1 : 0)
    listing.shown = deliveries.shown[device]?.count { $0.installation == token.installation } ?? 0
    return listing
  }
}

extension DeviceTables {
  /// The bundle ids of the apps on all devices.
  var appNames: Set<String> {
    Set(Set(installations.lazy.filter { $0.device != Self.none }.map(\.name)).compactMap { name($0) })
  }

  /// Returns up to `limit` devices in the order of registration, from a position on.
  ///
  /// - Returns: The devices, and the position of the next one; nil at the end.
  func devices(from position: Int, limit: Int) -> (items: [DeviceDescription], next: Int?) {
    DeviceRegistry.page(from: position, limit: limit, count: devices.count) { index in
      devices[index].isFree ? nil : description(of: Index(index))
    }
  }

  /// Describes a device with its tokens.
  func description(of index: Index) -> DeviceDescription {
    var apps = installations(of: index).map { installation in
      let app = installations[Int(installation)]
      var tokens = tokens(of: installation).compactMap { token -> TokenDescription? in
        let entry = self.tokens[Int(token)]
        guard let kind = entry.kind else { return nil }
        return TokenDescription(
          kind: kind, token: text(ofToken: token), expiredAt: entry.state == .expired ? entry.since : nil,
          unregisteredAt: entry.state == .unregistered ? entry.since : nil)
      }
      tokens.reverse()
      return InstallationDescription(
        bundleID: name(app.name) ?? "", environment: app.environment ?? .sandbox, state: app.state, tokens: tokens)
    }
    apps.reverse()
    return DeviceDescription(id: id(of: index), state: devices[Int(index)].state, apps: apps)
  }

  fileprivate func listing(of index: Index) -> DeviceRegistry.TokenListing {
    let token = tokens[Int(index)]
    let installation = installations[Int(token.installation)]
    let isSingle = token.kind == nil
    let name = name(installation.name)
    let state: SingleToken.State
    let since: ServerTime
    switch (token.state, installation.removalNoticedAt) {
    case (.expired, _): (state, since) = (.expired, token.since)
    case (.unregistered, _): (state, since) = (.unregistered, token.since)
    case (_, let noticed?): (state, since) = (.unregistered, noticed)
    default: (state, since) = (.online, token.since)
    }
    return DeviceRegistry.TokenListing(
      token: SingleToken(
        token: text(ofToken: index),
        topic: isSingle ? name : name.map { $0 + (token.kind?.pushType.topicSuffix ?? "") },
        environment: installation.environment, state: state, since: since, isFromUpstream: token.isFromUpstream),
      deviceID: owner(of: index), bundleID: isSingle ? nil : name, kind: token.kind,
      states: installation.device == Self.none
        ? nil : (devices[Int(installation.device)].state, installation.state))
  }

  fileprivate func shown(_ push: Deliveries.DevicePush) -> DeviceRegistry.ShownPush {
    let installation = installations[Int(push.installation)]
    return DeviceRegistry.ShownPush(
      seq: push.seq, bundleID: name(installation.name) ?? "", environment: installation.environment ?? .sandbox,
      activity: push.activity == Self.none ? nil : text(ofToken: push.activity))
  }

  /// Returns the installation of a channel's app for its environment; nil if it is not on the device.
  fileprivate func installation(of channel: ChannelName, on device: Index) -> Index? {
    installations(of: device).first { index in
      let installation = installations[Int(index)]
      return installation.environment == channel.environment && name(installation.name) == channel.bundleID
        && installation.state != .removed
    }
  }
}
