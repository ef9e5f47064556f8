package import Notation
package import APNSRules
internal import NIOConcurrencyHelpers

extension DeviceRegistry {
  /// Decides what happens to accepted pushes, records them and stores or delivers them.
  ///
  /// Source: Protocol.md, section 11. The states take precedence in this order: app removed, notifications disabled,
  /// device offline, power restricted.
  ///
  /// - Parameters:
  ///   - pushes: The pushes, whose `state` is set before `record` is called.
  ///   - now: The server's clock, in milliseconds since 1970.
  ///   - record: Records the pushes with their states, and sets when they were accepted; returns the `seq` of the record at
  ///     position 0. Called while the registry is locked, so that the order of deliveries is that of the records.
  package func deliver(
    _ pushes: inout [AcceptedPush], now: ServerTime, settings: APNSSettings, record: (inout [AcceptedPush]) -> Int
  ) -> [DeliveryEvent] {
    state.withLockedValue { state in
      for index in pushes.indices { pushes[index].state = state.deliveryState(of: pushes[index], now: now, settings) }
      let first = record(&pushes)
      var events: [DeliveryEvent] = []
      for push in pushes { state.deliver(push, seq: first + push.position, now: now, settings, &events) }
      return events
    }
  }

  /// Continues with a push that a former server has accepted: it is stored or shown again, or will be acknowledged. Pushes must be
  /// given in the order in which they were accepted.
  ///
  /// - Parameters:
  ///   - state: The state of its delivery.
  ///   - receivedAt: When it was received, in milliseconds since 1970 by the server's clock.
  package func restore(
    _ push: AcceptedPush, seq: Int, _ state: DeliveryState, receivedAt: ServerTime, settings: APNSSettings
  ) {
    self.state.withLockedValue { registry in
      guard registry.tables.isRegistered(push.target) else { return }
      let device = registry.tables.installations[Int(push.target.installation)].device
      guard device != DeviceTables.none else { return }
      var received = Deliveries.DevicePush(push, seq: seq)
      let activity = push.activity.map { ActivityPush(content: $0, token: push.target.tokenIndex) }
      let kind = registry.tables.tokens[Int(push.target.tokenIndex)].kind
      let key = Deliveries.storageKey(push.target.installation, kind: kind)
      switch state {
      case .storedOffline, .storedForPower:
        let expiresAt = Self.expiry(push.expiration, now: receivedAt, longest: Deliveries.longestStorage)
        registry.deliveries.store(
          Deliveries.StoredPush(
            push: received, expiresAt: expiresAt, priority: push.priority, activity: activity), at: key)
      case .received:
        let due = receivedAt.addingClamped(settings.acknowledgeAfter.milliseconds)
        registry.deliveries.awaitAcknowledgement(
          of: Deliveries.UnacknowledgedPush(push: received, activity: activity, due: due), on: device)
      case .deliveredFromStorage, .discardedExpired, .discardedUnregisteredFromStorage, .discardedDisabledFromStorage:
        // It had replaced those that are older.
        _ = registry.deliveries.removeStored(key)
      case .delivered, .discardedUnregistered, .discardedDisabled: break
      }
      guard [.delivered, .deliveredFromStorage].contains(state) else { return }
      if let activity {
        var events: [DeliveryEvent] = []
        registry.carryOut(activity, of: &received, isRestored: true, now: receivedAt, &events)
      }
      registry.show(received)
    }
  }

  /// Records that APNs detected an app's removal, because it accepted a push to the app. Does nothing if that is
  /// recorded.
  package func recordRemovalDetected(_ reference: TokenReference, now: ServerTime) {
    update { state in
      guard state.tables.isRegistered(reference) else { return }
      let installation = state.tables.installations[Int(reference.installation)]
      guard installation.state == .removed, installation.removalNoticedAt == nil else { return }
      state.tables.recordRemovalDetected(of: reference.installation, at: now)
      state.reportChange(of: reference.installation)
    }
  }

  /// The maximum number of stored pushes, or subscribers, that one call changes. Pushes wait for the registry during the call,
  /// some hundred microseconds.
  package static let sliceSize = 256

  /// Begins to deliver a broadcast to the subscribers of its channel.
  ///
  /// - Returns: The number of subscribers.
  package func begin(_ broadcast: Broadcast) -> Int {
    state.withLockedValue { state in
      let channel = broadcast.channel
      state.deliveries.add(DeliveryLogEntry(state: .received, time: broadcast.time), to: broadcast.seq)
      if broadcast.isStored {
        let expiresAt = Self.expiry(
          broadcast.expiration, now: broadcast.time, longest: Deliveries.longestBroadcastStorage)
        let former = state.deliveries.storedBroadcasts[channel]?.acceptance
        if expiresAt > broadcast.time, former.map({ $0 < broadcast.acceptance }) ?? true {
          state.deliveries.storedBroadcasts[channel] = (broadcast.acceptance, expiresAt)
        }
      }
      return state.deliveries.subscribers[channel]?.count ?? 0
    }
  }

  /// Delivers a broadcast, after `begin`, to the subscribers of its channel. Calls `apply` for up to `limit` of them at a
  /// time, while the registry is not locked.
  package func deliver(_ broadcast: Broadcast, limit: Int = sliceSize, apply: ([DeliveryEvent]) -> Void) {
    var rest = subscribers(of: broadcast.channel)[...]
    while !rest.isEmpty {
      let part = rest.prefix(limit)
      rest = rest.dropFirst(limit)
      apply(
        state.withLockedValue { state in
          var events: [DeliveryEvent] = []
          for installation in part { state.deliver(broadcast, to: installation, &events) }
          return events
        })
    }
  }

  private func subscribers(of channel: ChannelName) -> [DeviceTables.Index] {
    // Sorted outside of the lock, because that takes some milliseconds for 40,000 subscribers.
    state.withLockedValue { $0.deliveries.subscribers[channel] ?? [:] }.keys.sorted()
  }

  /// Discards stored pushes that have expired, and delivers pushes that online devices have acknowledged by now, up to
  /// `limit` of both.
  ///
  /// - Returns: The events, and whether none was left to examine.
  package func advance(
    to now: ServerTime, limit: Int = sliceSize
  ) -> (events: [DeliveryEvent], isComplete: Bool) {
    state.withLockedValue { state in
      var events: [DeliveryEvent] = []
      let due = state.deliveries.takeDue(at: now, limit: limit)
      for stored in due.expired { state.change(stored.push, to: .discardedExpired, now: now, &events) }
      for device in due.acknowledging { state.acknowledge(on: device, &events) }
      state.dismiss(due.dismissed, now: now)
      return (events, !state.deliveries.isDue(at: now))
    }
  }

  /// Whether `advance` may have an effect.
  package func needsAdvancing(to now: ServerTime) -> Bool {
    !isEmpty && state.withLockedValue { $0.deliveries.isDue(at: now) }
  }

  /// Returns the delivery log of a push whose state has changed since it was recorded, or of a broadcast; nil without
  /// one.
  package func log(of seq: Int) -> [DeliveryLogEntry]? { state.withLockedValue { $0.deliveries.log[seq] } }

  static func expiry(_ seconds: Int64?, now: ServerTime, longest: Int64) -> Int64 {
    guard let seconds else { return now.addingClamped(longest) }
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? now.addingClamped(longest) : min(milliseconds, now.addingClamped(longest))
  }
}

extension DeviceRegistry.State {
  /// Returns the state that an accepted push gets at once.
  fileprivate func deliveryState(of push: AcceptedPush, now: ServerTime, _ settings: APNSSettings) -> DeliveryState {
    guard tables.isRegistered(push.target) else { return .discardedUnregistered }
    let token = tables.tokens[Int(push.target.tokenIndex)]
    let installation = tables.installations[Int(push.target.installation)]
    guard token.state == .active, installation.state != .removed else { return .discardedUnregistered }
    guard installation.state == .enabled else { return .discardedDisabled }
    guard installation.device != DeviceTables.none else { return .delivered }
    let isExpired = DeviceRegistry.expiry(push.expiration, now: now, longest: Deliveries.longestStorage) <= now
    switch tables.devices[Int(installation.device)].state {
    case .offline: return isExpired ? .discardedExpired : .storedOffline
    case .powerRestricted where push.priority < 10: return isExpired ? .discardedExpired : .storedForPower
    case .online, .powerRestricted: return settings.onlineQueue ? .received : .delivered
    }
  }

  mutating func deliver(
    _ push: AcceptedPush, seq: Int, now: ServerTime, _ settings: APNSSettings, _ events: inout [DeliveryEvent]
  ) {
    guard tables.isRegistered(push.target) else { return }
    let installation = push.target.installation
    let device = tables.installations[Int(installation)].device
    var received = Deliveries.DevicePush(push, seq: seq)
    let activity = push.activity.map { ActivityPush(content: $0, token: push.target.tokenIndex) }
    guard device != DeviceTables.none else {
      if let activity, push.state == .delivered { carryOut(activity, of: &received, now: now, &events) }
      return
    }
    switch push.state {
    case .storedOffline, .storedForPower:
      let key = Deliveries.storageKey(installation, kind: tables.tokens[Int(push.target.tokenIndex)].kind)
      if let former = deliveries.storedPushes[key] {
        if former.expiresAt > now {
          events.append(.overwrittenInStorage(seq: former.push.seq, by: seq))
        } else {
          change(former.push, to: .discardedExpired, now: now, &events)
        }
      }
      let expiresAt = DeviceRegistry.expiry(push.expiration, now: now, longest: Deliveries.longestStorage)
      deliveries.store(
        Deliveries.StoredPush(push: received, expiresAt: expiresAt, priority: push.priority, activity: activity),
        at: key)
      deliveries.add(DeliveryLogEntry(state: push.state, time: now), to: seq)
    case .delivered, .received:
      if exceedsBudget(push, now: now, settings) {
        // The device has received it, but shows nothing.
        if push.state == .received { change(received, to: .delivered, now: now, &events) }
        return events.append(.overBudget(seq: seq))
      }
      guard push.state == .received else { return receive(received, activity: activity, .delivered, now: now, &events) }
      let due = now.addingClamped(settings.acknowledgeAfter.milliseconds)
      if let former = deliveries.unacknowledged[device] {
        if former.due > now {
          events.append(.overwrittenBeforeAcknowledgement(seq: former.push.seq, by: seq))
        } else {
          acknowledge(on: device, &events)
        }
      }
      deliveries.awaitAcknowledgement(
        of: Deliveries.UnacknowledgedPush(push: received, activity: activity, due: due), on: device)
    default: break
    }
  }

  /// Delivers the push that a device had not acknowledged, at the time of its acknowledgement.
  mutating func acknowledge(on device: DeviceTables.Index, _ events: inout [DeliveryEvent]) {
    guard let waiting = deliveries.removeUnacknowledged(on: device) else { return }
    change(waiting.push, to: .delivered, now: waiting.due, &events)
    receive(waiting.push, activity: waiting.activity, .delivered, now: waiting.due, &events)
  }

  /// Counts a push toward the device's budgets and returns whether the device ignores it.
  private mutating func exceedsBudget(
    _ push: AcceptedPush, now: ServerTime, _ settings: APNSSettings
  ) -> Bool {
    let (rate, kind): (DeviceRate?, Deliveries.BudgetKey.Kind)
    switch push.pushType {
    case .background: (rate, kind) = (settings.backgroundBudget, .background)
    case .liveactivity where push.activity?.event == .start: (rate, kind) = (settings.pushToStartBudget, .activityStart)
    case .liveactivity where push.priority == 10: (rate, kind) = (settings.liveActivityBudget, .activityUpdate)
    default: return false
    }
    return deliveries.exceeds(rate, kind, of: push.target.installation, now: now)
  }

  /// Delivers a push to its device: adds it to the shown notifications if it is shown, and informs the device's
  /// listeners.
  mutating func receive(
    _ push: Deliveries.DevicePush, activity: ActivityPush? = nil, _ state: DeliveryState, now: ServerTime,
    _ events: inout [DeliveryEvent]
  ) {
    if var event = deviceEvent(.notification, in: push.installation, now: now) {
      event.seq = push.seq
      event.state = state
      events.append(.device(event))
    }
    var push = push
    if let activity { carryOut(activity, of: &push, now: now, &events) }
    show(push)
  }

  /// Adds a push to the notifications on its device, unless it is one that shows nothing or is to a pass in Wallet.
  mutating func show(_ push: Deliveries.DevicePush) {
    let installation = tables.installations[Int(push.installation)]
    guard push.isShown, tables.name(installation.name)?.hasPrefix("pass.") != true else { return }
    deliveries.show(push, on: installation.device)
  }

  mutating func change(
    _ push: Deliveries.DevicePush, to state: DeliveryState, now: ServerTime, _ events: inout [DeliveryEvent]
  ) {
    deliveries.add(DeliveryLogEntry(state: state, time: now), to: push.seq)
    events.append(.changed(seq: push.seq, state))
  }

  mutating func log(_ state: DeliveryState, of broadcast: Int, on device: DeviceTables.Index, now: ServerTime) {
    deliveries.add(DeliveryLogEntry(state: state, time: now, deviceID: tables.id(of: device)), to: broadcast)
  }

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
    case (.enabled, .offline): result = broadcast.isStored ? .storedOffline : .discardedExpired
    case (.enabled, .online), (.enabled, .powerRestricted): result = .delivered
    }
    log(result, of: broadcast.seq, on: app.device, now: broadcast.time)
    guard result == .delivered else { return }
    // A delayed one may be older than the newest that the device has.
    deliveries.subscribers[broadcast.channel]?[installation] = max(newest, acceptance)
    receive(
      Deliveries.DevicePush(
        seq: broadcast.seq, acceptedAt: broadcast.acceptedAt, installation: installation, collapseKey: nil),
      result, now: broadcast.time, &events)
  }

  /// Delivers or discards what is stored for a device that is not offline any more.
  mutating func releaseStored(on device: DeviceTables.Index, now: ServerTime, _ events: inout [DeliveryEvent]) {
    let isRestricted = tables.devices[Int(device)].state == .powerRestricted
    for installation in Array(tables.installations(of: device)) {
      let app = tables.installations[Int(installation)]
      for (key, stored) in Deliveries.storageKeys(installation).compactMap({ key in
        deliveries.storedPushes[key].map { (key, $0) }
      }
      )
      .sorted(by: { $0.1.push.acceptance < $1.1.push.acceptance }) {
        let result: DeliveryState
        if app.state == .removed {
          result = .discardedUnregisteredFromStorage
        } else if app.state == .disabled {
          result = .discardedDisabledFromStorage
        } else if stored.expiresAt <= now {
          result = .discardedExpired
        } else if isRestricted, stored.priority < 10 {
          change(stored.push, to: .storedForPower, now: now, &events)
          continue
        } else {
          result = .deliveredFromStorage
        }
        _ = deliveries.removeStored(key)
        change(stored.push, to: result, now: now, &events)
        guard result == .deliveredFromStorage else { continue }
        receive(stored.push, activity: stored.activity, result, now: now, &events)
      }
      releaseBroadcasts(to: installation, app, now: now, &events)
    }
  }

  private mutating func releaseBroadcasts(
    to installation: DeviceTables.Index, _ app: DeviceTables.Installation, now: ServerTime,
    _ events: inout [DeliveryEvent]
  ) {
    for (channel, stored) in deliveries.storedBroadcasts {
      guard let newest = deliveries.subscribers[channel]?[installation], newest < stored.acceptance else { continue }
      guard app.state == .enabled, stored.expiresAt > now else { continue }
      let (time, seq) = (stored.acceptance.time, stored.acceptance.seq)
      deliveries.subscribers[channel]?[installation] = stored.acceptance
      log(.deliveredFromStorage, of: seq, on: app.device, now: now)
      receive(
        Deliveries.DevicePush(seq: seq, acceptedAt: time, installation: installation, collapseKey: nil),
        .deliveredFromStorage, now: now, &events)
    }
  }
}
