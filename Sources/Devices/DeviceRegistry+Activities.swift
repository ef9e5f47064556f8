package import APNSMockRules
package import APNSMockNotation
internal import NIOConcurrencyHelpers

/// Live Activities (Protocol.md, section 6.3): a push to the app's push-to-start token starts one, which gets a token of its own.
extension DeviceRegistry {
  /// Starts a Live Activity, as the app does without a push.
  ///
  /// - Returns: Its token, and the event.
  /// - Throws: `DeviceError`.
  package func startActivity(
    of bundleID: String, _ environment: PushEnvironment?, on id: String, now: ServerTime, makeToken: () -> String
  ) throws(DeviceError) -> (token: TokenDescription, events: [DeliveryEvent]) {
    try update { state throws(DeviceError) in
      let installation = try state.requiredInstallation(bundleID, environment, on: try state.device(id))
      guard state.hasRoomForToken(in: installation) else { throw .tooManyTokens(bundleID) }
      let token = try state.addToken(.liveactivity, to: installation, now: now, makeToken)
      state.dropExpiredActivities(of: installation)
      state.report?(.device(id))
      var event = state.deviceEvent(.activityStarted, in: installation, now: now)
      event?.token = token.token
      return (token, event.map { [.device($0)] } ?? [])
    }
  }

  /// Gives a Live Activity a new token. The former one expires.
  ///
  /// - Returns: The new token, and the event.
  /// - Throws: `DeviceError` if the token is not that of a Live Activity that has not ended.
  package func rotateActivityToken(
    _ token: String, now: ServerTime, makeToken: () -> String
  ) throws(DeviceError) -> (token: TokenDescription, events: [DeliveryEvent]) {
    try update { state throws(DeviceError) in
      guard let former = state.tables.index(ofToken: token) else { throw .unknownToken(token) }
      let entry = state.tables.tokens[Int(former)]
      let installation = entry.installation
      let device = state.tables.installations[Int(installation)].device
      guard entry.kind == .liveactivity, device != DeviceTables.none else { throw .notActivityToken(token) }
      guard entry.state == .active else { throw .activityEnded(token) }
      let new = try state.addToken(.liveactivity, to: installation, now: now, makeToken)
      guard let index = state.tables.index(ofToken: new.token) else { throw .unknownToken(new.token) }
      var activity = state.tables.activity(of: former)
      activity.startedAt = activity.startedAt ?? entry.since
      state.tables.setActivity(of: index, activity)
      state.tables.setActivity(of: former, nil)
      state.tables.setState(ofToken: former, .expired, since: now)
      state.deliveries.moveActivity(former, to: index, on: device)
      state.deliveries.retarget(former, to: index, of: installation, on: device)
      if let time = activity.dismissedAt { state.awaitDismissal(of: index, at: time) }
      state.dropExpiredActivities(of: installation)
      state.reportChange(of: installation)
      var event = state.deviceEvent(.activityRotated, in: installation, now: now)
      event?.token = new.token
      event?.formerToken = token.lowercased()
      event?.attributesType = activity.attributesType
      return (new, event.map { [.device($0)] } ?? [])
    }
  }

  /// Ends the validity of a token, such as that of a Live Activity that the app has ended: pushes to it are rejected with 410
  /// `ExpiredToken`.
  ///
  /// - Returns: The event, of a Live Activity.
  /// - Throws: `DeviceError` if the token is not registered.
  package func expire(_ token: String, now: ServerTime) throws(DeviceError) -> [DeliveryEvent] {
    try update { state throws(DeviceError) in
      guard let index = state.tables.index(ofToken: token) else { throw .unknownToken(token) }
      let (kind, installation) = (state.tables.tokens[Int(index)].kind, state.tables.tokens[Int(index)].installation)
      // The time of its end stays.
      if state.tables.tokens[Int(index)].state == .expired { return [] }
      let event = kind == .liveactivity ? state.endEvent(of: index, dismissedAt: now, now: now) : nil
      state.expire(index, at: now)
      state.reportChange(of: installation)
      return event.map { [.device($0)] } ?? []
    }
  }

  /// Returns the Live Activities on a device that have not disappeared, oldest first.
  package func activities(on id: String) -> [ActivityDescription] {
    state.withLockedValue { state in
      guard let device = state.tables.device(id) else { return [] }
      var found: [ActivityDescription] = []
      for installation in state.tables.installations(of: device) {
        let app = state.tables.installations[Int(installation)]
        guard app.state != .removed else { continue }
        for index in state.tables.tokens(of: installation) {
          let token = state.tables.tokens[Int(index)]
          guard token.kind == .liveactivity, token.state == .active else { continue }
          let activity = state.tables.activity(of: index)
          found.append(
            ActivityDescription(
              token: state.tables.text(ofToken: index), bundleID: state.tables.name(app.name) ?? "",
              environment: app.environment ?? .sandbox, attributesType: activity.attributesType,
              startedBy: activity.startedBy, startedAt: activity.startedAt ?? token.since,
              dismissedAt: activity.dismissedAt))
        }
      }
      return found.sorted { ($0.startedAt, $0.startedBy ?? 0) < ($1.startedAt, $1.startedBy ?? 0) }
    }
  }
}

extension DeviceRegistry.State {
  /// Lets a device carry out a Live Activity push that it has received.
  ///
  /// - Parameters:
  ///   - push: The push, whose `activity` is set to the one that shows it. It is not shown if none does.
  ///   - isRestored: Whether a former server has delivered the push, so that its activity exists already.
  mutating func carryOut(
    _ activity: ActivityPush, of push: inout Deliveries.DevicePush, isRestored: Bool = false, now: ServerTime,
    _ events: inout [DeliveryEvent]
  ) {
    push.isShown = false
    let newest = tables.activity(of: activity.token).newest
    if let problem = problem(of: activity, to: push.installation, isRestored: isRestored, now: now) {
      let other =
        switch problem {
        case .olderThanShown, .activityEnded: newest?.seq
        default: Int?.none
        }
      return events.append(.notShown(seq: push.seq, problem, by: other))
    }
    let content = activity.content
    let shown: DeviceTables.Index?
    switch content.event {
    case .start:
      shown =
        isRestored
        ? tables.tokens(of: push.installation).first { tables.activities[$0]?.startedBy == push.seq }
        : start(content, by: push, now: now, &events)
    case .update, .end: shown = activity.token
    }
    guard let shown else { return }
    var state = tables.activity(of: shown)
    state.newest = (max(content.timestamp, state.newest?.timestamp ?? content.timestamp), push.seq)
    tables.setActivity(of: shown, state)
    push.isShown = true
    push.activity = shown
    if content.event == .end { push.isShown = end(shown, at: content.dismissalDate, by: push.seq, now: now, &events) }
  }

  /// Returns why a device ignores a Live Activity push; nil if it carries it out.
  private func problem(
    of activity: ActivityPush, to installation: DeviceTables.Index, isRestored: Bool, now: ServerTime
  ) -> DisplayProblem? {
    let content = activity.content
    guard activity.token != DeviceTables.none else { return .activityEnded(event: content.event.rawValue) }
    let token = tables.tokens[Int(activity.token)]
    let known = tables.activity(of: activity.token)
    // While the push waited for the device, its token may have been removed.
    guard token.state != .free, token.installation == installation else {
      return .activityEnded(event: content.event.rawValue)
    }
    switch (content.event, token.kind) {
    case (.start, .liveactivity): return .startToActivityToken
    case (.update, .liveactivityStart), (.end, .liveactivityStart):
      return .updateToStartToken(event: content.event.rawValue)
    default: break
    }
    // It may have waited for the device.
    if let problem = content.timeProblem(at: now) { return problem }
    switch content.event {
    case .start:
      let hasRoom = isRestored || token.kind == nil || hasRoomForToken(in: token.installation)
      return hasRoom ? nil : .tooManyActivities
    case .update where known.dismissedAt != nil || token.state != .active, .end where token.state != .active:
      return .activityEnded(event: content.event.rawValue)
    case .update:
      guard let newest = known.newest?.timestamp, content.timestamp < newest else { return nil }
      return .olderThanShown(timestamp: content.timestamp, shown: newest)
    case .end: return nil
    }
  }

  /// Starts the activity of a push to a push-to-start token. Returns nil if the token belongs to no device.
  private mutating func start(
    _ content: ActivityContent, by push: Deliveries.DevicePush, now: ServerTime, _ events: inout [DeliveryEvent]
  ) -> DeviceTables.Index? {
    guard tables.installations[Int(push.installation)].device != DeviceTables.none,
      let token = try? addToken(.liveactivity, to: push.installation, now: now, makeActivityToken),
      let index = tables.index(ofToken: token.token)
    else { return nil }
    tables.setActivity(of: index, Activity(attributesType: content.attributesType, startedBy: push.seq))
    dropExpiredActivities(of: push.installation)
    reportChange(of: push.installation)
    if var event = deviceEvent(.activityStarted, in: push.installation, now: now) {
      event.seq = push.seq
      event.token = token.token
      event.attributesType = content.attributesType
      events.append(.device(event))
    }
    return index
  }

  /// Ends an activity by a push.
  ///
  /// - Parameter date: When it disappears; nil for at once.
  /// - Returns: Whether it is still on the screen.
  private mutating func end(
    _ token: DeviceTables.Index, at date: ServerTime?, by seq: Int, now: ServerTime, _ events: inout [DeliveryEvent]
  ) -> Bool {
    let dismissedAt = min(max(date ?? now, now), now.addingClamped(Deliveries.longestDismissal))
    let isSingle = tables.tokens[Int(token)].kind == nil
    let installation = tables.tokens[Int(token)].installation
    if var event = endEvent(of: token, dismissedAt: dismissedAt, now: now) {
      event.seq = seq
      events.append(.device(event))
    }
    if dismissedAt > now || isSingle {
      var activity = tables.activity(of: token)
      activity.dismissedAt = dismissedAt
      tables.setActivity(of: token, activity)
      // A token that was registered alone keeps the state that it was given.
      if !isSingle { awaitDismissal(of: token, at: dismissedAt) }
      reportChange(of: installation)
      return true
    }
    expire(token, at: now)
    reportChange(of: installation)
    return false
  }

  /// Notes that an ended activity disappears later.
  mutating func awaitDismissal(of token: DeviceTables.Index, at time: ServerTime) {
    deliveries.dismissals.add(UInt64(token), at: time)
    guard deliveries.dismissals.isSparse(for: tables.activities.count) else { return }
    deliveries.dismissals = DueTimes(
      tables.activities.compactMap { token, activity in activity.dismissedAt.map { (UInt64(token), $0) } })
  }

  /// Removes activities that have reached their dismissal date, whose tokens expire.
  mutating func dismiss(_ tokens: [DeviceTables.Index], now: ServerTime) {
    for token in tokens {
      // The activity may have been removed or rotated since, and the token be another one's.
      guard tables.tokens[Int(token)].state == .active, tables.tokens[Int(token)].kind == .liveactivity,
        let time = tables.activities[token]?.dismissedAt, time <= now
      else { continue }
      expire(token, at: time)
      reportChange(of: tables.tokens[Int(token)].installation)
    }
  }

  fileprivate mutating func expire(_ token: DeviceTables.Index, at time: ServerTime) {
    tables.setState(ofToken: token, .expired, since: time)
    tables.setActivity(of: token, nil)
    hideActivity(of: token)
  }

  /// Removes the activity with a token from the screen of its device.
  mutating func hideActivity(of token: DeviceTables.Index) {
    deliveries.hideActivity(token, on: tables.installations[Int(tables.tokens[Int(token)].installation)].device)
  }

  // MARK: - Tokens

  fileprivate func hasRoomForToken(in installation: DeviceTables.Index) -> Bool {
    tables.tokens(of: installation).count { tables.tokens[Int($0)].state == .active } < DeviceRegistry.maxPerDevice
  }

  /// Removes the oldest tokens of ended activities beyond a limit, so that starts and ends need no memory in the long run.
  fileprivate mutating func dropExpiredActivities(of installation: DeviceTables.Index) {
    let expired = tables.tokens(of: installation).filter { index in
      tables.tokens[Int(index)].kind == .liveactivity && tables.tokens[Int(index)].state == .expired
    }
    // Newest first.
    for token in expired.dropFirst(DeviceRegistry.maxPerDevice) { removeToken(token) }
  }

  /// Removes a token, and from the pushes that wait for its device.
  mutating func removeToken(_ token: DeviceTables.Index) {
    let installation = tables.tokens[Int(token)].installation
    let device = tables.installations[Int(installation)].device
    deliveries.retarget(token, to: DeviceTables.none, of: installation, on: device)
    tables.removeToken(token)
  }

  // MARK: - Events

  /// Returns an event; nil if no client follows the device of the installation.
  func deviceEvent(_ kind: DeviceEvent.Kind, in index: DeviceTables.Index, now: ServerTime) -> DeviceEvent? {
    let installation = tables.installations[Int(index)]
    guard deliveries.isWatched(installation.device), let bundleID = tables.name(installation.name),
      let environment = installation.environment
    else { return nil }
    return DeviceEvent(
      kind: kind, deviceID: tables.id(of: installation.device), bundleID: bundleID, environment: environment, time: now)
  }

  fileprivate func endEvent(of token: DeviceTables.Index, dismissedAt: ServerTime, now: ServerTime) -> DeviceEvent? {
    var event = deviceEvent(.activityEnded, in: tables.tokens[Int(token)].installation, now: now)
    event?.token = tables.text(ofToken: token)
    event?.attributesType = tables.activities[token]?.attributesType
    event?.dismissedAt = dismissedAt
    return event
  }
}
