package import APNSMockNotation
package import APNSMockRules
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
      var events: [DeliveryEvent] = []
      for index in pushes.indices { state.decide(&pushes[index], now: now, settings, &events) }
      let first = record(&pushes)
      for push in pushes { state.deliver(push, seq: first + push.position, now: now, settings, &events) }
      return events
    }
  }

  /// Returns what would happen to an accepted push now. Nothing is recorded, counted, stored or delivered.
  ///
  /// - Parameter now: The server's clock, in milliseconds since 1970.
  package func predictedDelivery(
    of push: AcceptedPush, now: ServerTime, settings: APNSSettings
  ) -> (state: DeliveryState, cause: HoldCause?) {
    // Decided on a copy outside of the lock.
    var copy = state.withLockedValue { $0 }
    var push = push
    var events: [DeliveryEvent] = []
    copy.decide(&push, now: now, settings, &events)
    return (push.state, push.state == .storedForPower ? push.hold?.cause ?? .powerRestricted : nil)
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
      case .storedForPower
      where push.pushType == .background && registry.tables.devices[Int(device)].state == .online:
        let isQuit = registry.tables.installations[Int(push.target.installation)].state == .forceQuit
        let period = settings.backgroundBudget?.per.milliseconds ?? 0
        let hold = registry.deliveries.backgroundHold(
          settings.backgroundBudget, of: push.target.installation, now: receivedAt)
        registry.deliveries.heldPushes.set(
          received, at: UInt64(push.target.installation),
          due: isQuit ? nil : hold?.due ?? receivedAt.addingClamped(period))
      case .storedOffline, .storedForPower: registry.store(push, received, activity, at: key, now: receivedAt)
      case .received:
        let due = receivedAt.addingClamped(settings.acknowledgeAfter.milliseconds)
        registry.deliveries.unacknowledged.set(
          .init(push: received, activity: activity, due: due), at: UInt64(device), due: due)
      case .deliveredFromStorage, .discardedExpired, .discardedUnregisteredFromStorage, .discardedDisabledFromStorage:
        // It had replaced those that are older.
        registry.deliveries.storedPushes.remove(key)
        if push.pushType == .background {
          registry.deliveries.heldPushes.remove(UInt64(push.target.installation))
        }
      case .delivered:
        // It had replaced one that was not acknowledged.
        registry.deliveries.unacknowledged.remove(UInt64(device))
        if registry.exceedsBudget(push, now: receivedAt, settings) { return }
        if push.pushType == .background {
          _ = registry.deliveries.backgroundHold(
            settings.backgroundBudget, of: push.target.installation, now: receivedAt)
        }
      case .discardedUnregistered, .discardedDisabled: break
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
  package func markRemovalDetected(_ reference: TokenReference, now: ServerTime) {
    update { state in
      guard state.tables.isRegistered(reference) else { return }
      let installation = state.tables.installations[Int(reference.installation)]
      guard installation.state == .removed, installation.removalNoticedAt == nil else { return }
      state.tables.markRemovalDetected(of: reference.installation, at: now)
      state.reportChange(of: reference.installation)
    }
  }

  /// The maximum number of stored pushes, or subscribers, that one call changes. Pushes wait for the registry during the call,
  /// some hundred microseconds.
  package static let sliceSize = 256

  /// Discards stored pushes and broadcasts that have expired, and delivers pushes that online devices have acknowledged, or have
  /// held until now, up to `limit` of all.
  ///
  /// - Returns: The events, the stored broadcasts that have expired, which are to be passed to `discard`, and whether none was
  ///   left to examine.
  package func advance(
    to now: ServerTime, limit: Int = sliceSize
  ) -> (events: [DeliveryEvent], broadcasts: [ExpiredBroadcast], isComplete: Bool) {
    state.withLockedValue { state in
      var events: [DeliveryEvent] = []
      let due = state.deliveries.takeDue(at: now, limit: limit)
      for stored in due.expired { state.change(stored.push, to: .discardedExpired, now: now, &events) }
      for waiting in due.acknowledged { state.acknowledge(waiting, &events) }
      for push in due.released {
        state.deliveries.countReleased(push, now: now)
        state.deliverStored(push, now: now, &events)
      }
      state.dismiss(due.dismissed, now: now)
      let broadcasts = due.expiredBroadcasts.map { stored in
        ExpiredBroadcast(
          channel: stored.channel, acceptance: stored.acceptance,
          subscribers: state.deliveries.subscribers[stored.channel] ?? [:])
      }
      return (events, broadcasts, !state.deliveries.isDue(at: now))
    }
  }

  /// Whether `advance` may have an effect.
  package func needsAdvancing(to now: ServerTime) -> Bool {
    !isEmpty && state.withLockedValue { $0.deliveries.isDue(at: now) }
  }

  /// Returns the delivery log of a push whose state has changed since it was recorded, or of a broadcast; nil without
  /// one.
  package func log(of seq: Int) -> [DeliveryLogEntry]? { state.withLockedValue { $0.deliveries.log[seq] } }

  /// Whether a delivery log is no longer kept.
  ///
  /// - Parameter last: The time of its last entry, in milliseconds since 1970.
  package static func hasForgottenLog(endedAt last: ServerTime, now: ServerTime) -> Bool {
    now >= last.addingClamped(Deliveries.logRetention)
  }

  static func expiry(_ seconds: Int64?, now: ServerTime, longest: Int64) -> Int64 {
    guard let seconds else { return now.addingClamped(longest) }
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? now.addingClamped(longest) : min(milliseconds, now.addingClamped(longest))
  }
}

extension DeviceRegistry.State {
  /// Sets the state that an accepted push gets at once, and how long it is held.
  fileprivate mutating func decide(
    _ push: inout AcceptedPush, now: ServerTime, _ settings: APNSSettings, _ events: inout [DeliveryEvent]
  ) {
    push.state = .discardedUnregistered
    guard tables.isRegistered(push.target) else { return }
    let token = tables.tokens[Int(push.target.tokenIndex)]
    let installation = tables.installations[Int(push.target.installation)]
    guard token.state == .active, installation.state != .removed else { return }
    if installation.state == .disabled, Deliveries.needsPermission(push.pushType) {
      push.state = .discardedDisabled
      return
    }
    guard installation.device != DeviceTables.none else {
      push.state = .delivered
      return
    }
    let isExpired = DeviceRegistry.expiry(push.expiration, now: now, longest: Deliveries.longestStorage) <= now
    switch tables.devices[Int(installation.device)].state {
    case .offline: push.state = isExpired ? .discardedExpired : .storedOffline
    case .powerRestricted where push.priority < 10: push.state = isExpired ? .discardedExpired : .storedForPower
    case .online, .powerRestricted:
      push.hold = hold(push.pushType, of: push.target.installation, now: now, settings, &events)
      push.state = push.hold != nil ? .storedForPower : settings.onlineQueue ? .received : .delivered
    }
  }

  /// Returns how long the system of a device holds a push that reaches it; nil if it does not. Counts background pushes toward
  /// the app's budget (Protocol.md, section 6.4).
  private mutating func hold(
    _ type: PushType?, of installation: DeviceTables.Index, now: ServerTime, _ settings: APNSSettings,
    _ events: inout [DeliveryEvent]
  ) -> AcceptedPush.Hold? {
    guard type == .background else { return nil }
    if tables.installations[Int(installation)].state == .forceQuit { return .untilLaunch }
    if let held = deliveries.heldPushes.remove(UInt64(installation), ifDueAt: now) {
      deliveries.countReleased(held, now: now)
      deliverStored(held, now: now, &events)
    }
    return deliveries.backgroundHold(settings.backgroundBudget, of: installation, now: now)
  }

  /// Keeps a background push as the one that the system of the device holds for its app.
  private mutating func keep(
    _ push: Deliveries.DevicePush, _ hold: AcceptedPush.Hold, _ events: inout [DeliveryEvent]
  ) {
    if let former = deliveries.heldPushes[UInt64(push.installation)] {
      // One that was stored before may be older.
      if push.acceptance < former.acceptance {
        return events.append(.overwrittenInStorage(seq: push.seq, by: former.seq))
      }
      events.append(.overwrittenInStorage(seq: former.seq, by: push.seq))
    }
    deliveries.heldPushes.set(push, at: UInt64(push.installation), due: hold.due)
    if hold != .untilLaunch { events.append(.overBudget(seq: push.seq)) }
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
    if let hold = push.hold {
      deliveries.add(DeliveryLogEntry(state: push.state, time: now), to: seq)
      return keep(received, hold, &events)
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
      store(push, received, activity, at: key, now: now)
      deliveries.add(DeliveryLogEntry(state: push.state, time: now), to: seq)
    case .delivered, .received:
      if exceedsBudget(push, now: now, settings) {
        // The device has received it, but shows nothing.
        if push.state == .received { change(received, to: .delivered, now: now, &events) }
        return events.append(.overBudget(seq: seq))
      }
      guard push.state == .received else { return receive(received, activity: activity, .delivered, now: now, &events) }
      let due = now.addingClamped(settings.acknowledgeAfter.milliseconds)
      if let former = deliveries.unacknowledged[UInt64(device)] {
        if former.due > now {
          events.append(.overwrittenBeforeAcknowledgement(seq: former.push.seq, by: seq))
        } else {
          acknowledge(former, &events)
        }
      }
      deliveries.unacknowledged.set(
        .init(push: received, activity: activity, due: due), at: UInt64(device), due: due)
    default: break
    }
  }

  /// Stores a push until the device can receive it, at most until it expires.
  fileprivate mutating func store(
    _ push: AcceptedPush, _ received: Deliveries.DevicePush, _ activity: ActivityPush?, at key: UInt64, now: ServerTime
  ) {
    let expiresAt = DeviceRegistry.expiry(push.expiration, now: now, longest: Deliveries.longestStorage)
    deliveries.storedPushes.set(
      .init(push: received, expiresAt: expiresAt, priority: push.priority, activity: activity), at: key, due: expiresAt)
  }

  /// Delivers a push at the time of its acknowledgement.
  mutating func acknowledge(_ waiting: Deliveries.UnacknowledgedPush, _ events: inout [DeliveryEvent]) {
    change(waiting.push, to: .delivered, now: waiting.due, &events)
    receive(waiting.push, activity: waiting.activity, .delivered, now: waiting.due, &events)
  }

  /// Delivers a push that was stored or held.
  mutating func deliverStored(
    _ push: Deliveries.DevicePush, activity: ActivityPush? = nil, now: ServerTime, _ events: inout [DeliveryEvent]
  ) {
    change(push, to: .deliveredFromStorage, now: now, &events)
    receive(push, activity: activity, .deliveredFromStorage, now: now, &events)
  }

  /// Counts a push of a Live Activity toward the device's budgets and returns whether the device ignores it.
  fileprivate mutating func exceedsBudget(
    _ push: AcceptedPush, now: ServerTime, _ settings: APNSSettings
  ) -> Bool {
    let (rate, kind): (DeviceRate?, Deliveries.BudgetKey.Kind)
    switch push.pushType {
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

  /// Delivers or discards what is stored for a device that is not offline any more.
  mutating func releaseStored(
    on device: DeviceTables.Index, now: ServerTime, _ settings: APNSSettings, _ events: inout [DeliveryEvent]
  ) {
    let isRestricted = tables.devices[Int(device)].state == .powerRestricted
    for installation in Array(tables.installations(of: device)) {
      let app = tables.installations[Int(installation)]
      for (key, stored) in Deliveries.storageKeys(installation).compactMap({ key in
        deliveries.storedPushes[key].map { (key, $0) }
      }
      )
      .sorted(by: { $0.1.push.acceptance < $1.1.push.acceptance }) {
        deliveries.storedPushes.remove(key)
        if app.state == .removed {
          change(stored.push, to: .discardedUnregisteredFromStorage, now: now, &events)
        } else if app.state == .disabled, Deliveries.needsPermission(stored.push.type) {
          change(stored.push, to: .discardedDisabledFromStorage, now: now, &events)
        } else if stored.expiresAt <= now {
          change(stored.push, to: .discardedExpired, now: now, &events)
        } else if isRestricted, stored.priority < 10 {
          deliveries.storedPushes.set(stored, at: key, due: stored.expiresAt)
          change(stored.push, to: .storedForPower, now: now, &events)
        } else if let hold = hold(stored.push.type, of: installation, now: now, settings, &events) {
          change(stored.push, to: .storedForPower, now: now, &events)
          keep(stored.push, hold, &events)
        } else {
          deliverStored(stored.push, activity: stored.activity, now: now, &events)
        }
      }
      releaseBroadcasts(to: installation, app, now: now, &events)
    }
  }
}
