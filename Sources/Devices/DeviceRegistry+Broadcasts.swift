package import APNSMockNotation
internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// Broadcasts to the subscribers of channels (Protocol.md, sections 10 and 11).
extension DeviceRegistry {
  /// A stored broadcast that has expired.
  package struct ExpiredBroadcast: Sendable {
    let channel: ChannelName
    let acceptance: Deliveries.Acceptance
    /// The subscribers at the time of its expiration, with the newest broadcast of each.
    let subscribers: [DeviceTables.Index: Deliveries.Acceptance]
  }

  /// Begins to deliver a broadcast to the subscribers of its channel.
  ///
  /// - Returns: The number of subscribers.
  package func begin(_ broadcast: Broadcast) -> Int {
    state.withLockedValue { state in
      let channel = broadcast.channel
      state.deliveries.add(DeliveryLogEntry(state: .received, time: broadcast.time), to: broadcast.seq)
      let count = state.deliveries.subscribers[channel]?.count ?? 0
      // Who subscribes later does not get it.
      if broadcast.isStored, !broadcast.isExpired, count > 0 {
        state.deliveries.store(
          .init(channel: channel, acceptance: broadcast.acceptance, expiresAt: broadcast.expiresAt), now: broadcast.time
        )
      }
      return count
    }
  }

  /// Delivers a broadcast, after `begin`, to the subscribers of its channel. Calls `apply` for up to `limit` of them at a
  /// time, while the registry is not locked.
  package func deliver(_ broadcast: Broadcast, limit: Int = sliceSize, apply: ([DeliveryEvent]) -> Void) {
    let subscribers = state.withLockedValue { $0.deliveries.subscribers[broadcast.channel] ?? [:] }.keys
    inSlices(subscribers, limit: limit, { $1.deliver(broadcast, to: $0, &$2) }, apply: apply)
  }

  /// Discards a stored broadcast that has expired, for the devices that have not received it. Calls `didDiscard` after up to
  /// `limit` of them, while the registry is not locked.
  package func discard(
    _ broadcast: ExpiredBroadcast, now: ServerTime, limit: Int = sliceSize, didDiscard: () -> Void = {}
  ) {
    let waiting = broadcast.subscribers.filter { $0.value < broadcast.acceptance }.keys
    inSlices(waiting, limit: limit) { installation, state, _ in
      guard let newest = state.deliveries.subscribers[broadcast.channel]?[installation], newest < broadcast.acceptance
      else { return }
      state.end(broadcast.acceptance, of: broadcast.channel, for: installation, .discardedExpired, now: now)
    } apply: { _ in
      didDiscard()
    }
  }

  /// Calls `change` for each installation, in their order.
  private func inSlices(
    _ installations: some Collection<DeviceTables.Index>, limit: Int,
    _ change: (DeviceTables.Index, inout State, inout [DeliveryEvent]) -> Void, apply: ([DeliveryEvent]) -> Void
  ) {
    // Sorted outside of the lock, because that takes some milliseconds for 40,000 subscribers.
    var rest = installations.sorted()[...]
    while !rest.isEmpty {
      let part = rest.prefix(limit)
      rest = rest.dropFirst(limit)
      apply(
        state.withLockedValue { state in
          var events: [DeliveryEvent] = []
          for installation in part { change(installation, &state, &events) }
          return events
        })
    }
  }
}

extension Broadcast {
  /// When it expires if it is stored, in milliseconds since 1970.
  fileprivate var expiresAt: ServerTime {
    DeviceRegistry.expiry(expiration, now: time, longest: Deliveries.longestBroadcastStorage)
  }

  /// Whether it had expired when it was accepted, so that it is not stored.
  fileprivate var isExpired: Bool { expiresAt <= time }
}

extension DeviceRegistry.State {
  /// Delivers a broadcast to one subscriber.
  fileprivate mutating func deliver(
    _ broadcast: Broadcast, to installation: DeviceTables.Index, _ events: inout [DeliveryEvent]
  ) {
    let acceptance = broadcast.acceptance
    // The subscription may have ended, or the device may have come online and received the stored broadcast.
    guard let newest = deliveries.subscribers[broadcast.channel]?[installation], newest != acceptance else { return }
    let app = tables.installations[Int(installation)]
    guard app.device != DeviceTables.none else { return }
    let result: DeliveryState
    switch (app.state, tables.devices[Int(app.device)].state) {
    case (.removed, _): result = .discardedUnregistered
    case (.disabled, _): result = .discardedDisabled
    case (.enabled, .offline), (.forceQuit, .offline):
      // The device may still receive an older one that is stored.
      let isStored = broadcast.isStored && !broadcast.isExpired
      return log(
        isStored ? .storedOffline : .discardedExpired, of: broadcast.seq, on: app.device, now: broadcast.time)
    case (.enabled, .online), (.enabled, .powerRestricted), (.forceQuit, .online), (.forceQuit, .powerRestricted):
      result = .delivered
    }
    end(acceptance, of: broadcast.channel, for: installation, result, now: broadcast.time)
    guard result == .delivered else { return }
    receive(.init(acceptance, for: installation), result, now: broadcast.time, &events)
  }

  /// Delivers or discards the stored broadcasts of an app's channels, because its device is not offline any more.
  mutating func releaseBroadcasts(
    to installation: DeviceTables.Index, _ app: DeviceTables.Installation, now: ServerTime,
    _ events: inout [DeliveryEvent]
  ) {
    for (channel, stored) in deliveries.storedBroadcasts {
      guard let newest = deliveries.subscribers[channel]?[installation], newest < stored.acceptance else { continue }
      // One that has expired is discarded for all devices at once.
      guard stored.expiresAt > now else { continue }
      let result: DeliveryState =
        switch app.state {
        case .removed: .discardedUnregisteredFromStorage
        case .disabled: .discardedDisabledFromStorage
        case .enabled, .forceQuit: .deliveredFromStorage
        }
      end(stored.acceptance, of: channel, for: installation, result, now: now)
      guard result == .deliveredFromStorage else { continue }
      receive(.init(stored.acceptance, for: installation), result, now: now, &events)
    }
  }

  /// Logs the last state of a broadcast on a device, to which it is not delivered again.
  fileprivate mutating func end(
    _ acceptance: Deliveries.Acceptance, of channel: ChannelName, for installation: DeviceTables.Index,
    _ result: DeliveryState, now: ServerTime
  ) {
    // A delayed one may be older than the newest that the device has.
    if let newest = deliveries.subscribers[channel]?[installation] {
      deliveries.subscribers[channel]?[installation] = max(newest, acceptance)
    }
    log(result, of: acceptance.seq, on: tables.installations[Int(installation)].device, now: now)
  }

  private mutating func log(
    _ state: DeliveryState, of broadcast: Int, on device: DeviceTables.Index, now: ServerTime
  ) {
    deliveries.add(DeliveryLogEntry(state: state, time: now, deviceID: tables.id(of: device)), to: broadcast)
  }
}

extension Deliveries.DevicePush {
  /// A broadcast on a device.
  fileprivate init(_ acceptance: Deliveries.Acceptance, for installation: DeviceTables.Index) {
    self.init(
      seq: acceptance.seq, acceptedAt: acceptance.time, installation: installation, collapseKey: nil,
      type: .liveactivity)
  }
}
