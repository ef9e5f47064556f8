package import APNSMockNotation
package import APNSMockRules

/// Changes to single devices.
extension DeviceRegistry {
  /// Changes the connection of a device; delivers what is stored for it if that is possible now.
  ///
  /// - Throws: `DeviceError`.
  package func setState(
    of id: String, _ newState: DeviceState, now: ServerTime, settings: APNSSettings = APNSSettings()
  ) throws(DeviceError) -> [DeliveryEvent] {
    try update { state throws(DeviceError) in
      let device = try state.device(id)
      state.tables.setState(of: device, newState)
      state.report?(.device(id))
      var events: [DeliveryEvent] = []
      if newState != .offline { state.releaseStored(on: device, now: now, settings, &events) }
      return events
    }
  }

  /// Installs an app on a device, again or for the first time; creates the device if there is none.
  ///
  /// - Parameters:
  ///   - environment: The environment; nil for the only one that the app is installed for, otherwise
  ///     `defaultEnvironment`.
  ///   - replaces: Whether an installed app is installed again, which invalidates its tokens. If false, an installed
  ///     app is an error.
  ///   - makeToken: Returns a new token.
  /// - Returns: The new tokens, and the events of pushes that are stored for the former installation.
  /// - Throws: `DeviceError`.
  package func install(
    _ bundleID: String, _ environment: PushEnvironment?, on id: String, kinds: [TokenKind] = [.alert], replaces: Bool,
    defaultEnvironment: PushEnvironment = .sandbox, now: ServerTime, makeToken: () -> String
  ) throws(DeviceError) -> (tokens: [TokenDescription], events: [DeliveryEvent]) {
    try update { state throws(DeviceError) in
      let device = try state.deviceOrNew(id, limit: maxDevices)
      var events: [DeliveryEvent] = []
      var kinds = kinds
      let installation: DeviceTables.Index
      if let former = try state.installation(bundleID, environment, on: device) {
        let isRemoved = state.tables.installations[Int(former)].state == .removed
        guard replaces || isRemoved else {
          throw .alreadyInstalled(bundleID, state.tables.installations[Int(former)].environment ?? .sandbox)
        }
        // A new installation has tokens of the kinds that the former one had.
        let formerKinds = Set(
          state.tables.tokens(of: former).compactMap { state.tables.tokens[Int($0)].kind })
        kinds = TokenKind.allCases.filter { formerKinds.contains($0) || kinds.contains($0) }
        state.discardStored(of: former, now: now, &events)
        state.deliveries.forget(installation: former, on: device)
        if !isRemoved { state.tables.setState(ofInstallation: former, .removed) }
        if let report = state.report {
          for token in state.tables.tokens(of: former) { report(.token(state.tables.text(ofToken: token))) }
        }
        state.tables.detachTokens(of: former)
        state.tables.setState(ofInstallation: former, .enabled)
        installation = former
      } else if replaces {
        throw state.notInstalled(bundleID, on: device)
      } else {
        let app = InstallationDescription(bundleID: bundleID, environment: environment ?? defaultEnvironment)
        try state.tables.checkLimits(of: app, on: device)
        installation = state.tables.addInstallation(bundleID, environment: app.environment, state: .enabled, to: device)
      }
      var tokens: [TokenDescription] = []
      for kind in kinds where kind != .liveactivity {
        tokens.append(try state.addToken(kind, to: installation, now: now, makeToken))
      }
      state.report?(.device(id))
      return (tokens, events)
    }
  }

  /// Changes the state of an app on a device. Removing or force-quitting it drops the background push that the system of the
  /// device holds for it (Protocol.md, section 6.4).
  ///
  /// - Parameter environment: The environment; nil if the app is installed for one only.
  /// - Throws: `DeviceError`.
  @discardableResult
  package func setState(
    of bundleID: String, _ environment: PushEnvironment?, on id: String, _ newState: InstallationState,
    now: ServerTime = 0
  ) throws(DeviceError) -> [DeliveryEvent] {
    try update { state throws(DeviceError) in
      let installation = try state.requiredInstallation(bundleID, environment, on: try state.device(id))
      guard state.tables.installations[Int(installation)].state != newState else { return [] }
      state.tables.setState(ofInstallation: installation, newState)
      state.report?(.device(id))
      var events: [DeliveryEvent] = []
      if newState == .removed { state.discardHeld(for: installation, now: now, &events) }
      // Apple has no state for a push that the system of the device drops, so it keeps its last one.
      if newState == .forceQuit { state.deliveries.heldPushes.remove(UInt64(installation)) }
      return events
    }
  }

  /// Launches an app on a device: delivers the background push that the system of the device holds for it. A force-quit app is
  /// enabled again.
  ///
  /// - Parameter environment: The environment; nil if the app is installed for one only.
  /// - Throws: `DeviceError`.
  package func launch(
    _ bundleID: String, _ environment: PushEnvironment?, on id: String, now: ServerTime
  ) throws(DeviceError) -> [DeliveryEvent] {
    try update { state throws(DeviceError) in
      let installation = try state.requiredInstallation(bundleID, environment, on: try state.device(id))
      if state.tables.installations[Int(installation)].state == .forceQuit {
        state.tables.setState(ofInstallation: installation, .enabled)
        state.report?(.device(id))
      }
      var events: [DeliveryEvent] = []
      if let held = state.deliveries.heldPushes.remove(UInt64(installation)) {
        state.deliverStored(held, now: now, &events)
      }
      return events
    }
  }

  /// Removes a device with its apps and tokens.
  ///
  /// - Throws: `DeviceError` if there is none.
  package func removeDevice(_ id: String) throws(DeviceError) {
    try update { state throws(DeviceError) in
      let device = try state.device(id)
      state.forget(device)
      state.tables.removeDevice(device)
      state.report?(.device(id))
    }
  }
}

/// Tokens that are registered alone, with an exact topic, as the admin API's `PUT /devices/{token}` does.
extension DeviceRegistry {
  /// Registers a token, or changes the state of one that is registered. A token of a device keeps its topics and
  /// environment.
  ///
  /// - Returns: Whether the token is new.
  /// - Throws: `DeviceError` if a limit is reached.
  @discardableResult
  package func set(_ token: SingleToken) throws(DeviceError) -> Bool {
    try update { state throws(DeviceError) in
      let newState = DeviceTables.Token.State(token.state)
      if let index = state.tables.index(ofToken: token.token) {
        if state.tables.owner(of: index) != nil {
          // A topic or an environment that upstream does not accept is no state of the token.
          if token.isFromUpstream, newState == .active { return false }
          state.tables.setState(
            ofToken: index, newState, isFromUpstream: token.isFromUpstream, since: token.since)
          if newState != .active { state.hideActivity(of: index) }
          // It does not end by itself any more.
          if state.tables.activities[index]?.dismissedAt != nil {
            var activity = state.tables.activity(of: index)
            activity.dismissedAt = nil
            state.tables.setActivity(of: index, newState == .active ? activity : nil)
          }
          state.reportChange(of: state.tables.tokens[Int(index)].installation)
          return false
        }
        state.tables.removeToken(index)
        try state.add(token, newState, limit: maxDevices)
        state.report?(.token(token.token))
        return false
      }
      try state.add(token, newState, limit: maxDevices)
      state.report?(.token(token.token))
      return true
    }
  }

  /// Removes a token.
  ///
  /// - Returns: Whether it was registered.
  package func remove(_ token: String) -> Bool {
    update { state in
      guard let index = state.tables.index(ofToken: token) else { return false }
      let owner = state.tables.owner(of: index)
      state.hideActivity(of: index)
      state.removeToken(index)
      state.report?(owner.map { .device($0) } ?? .token(token.lowercased()))
      return true
    }
  }
}

/// A device token registered on its own.
package struct SingleToken: Sendable, Equatable {
  /// The state of a device token.
  package enum State: String, Sendable, CaseIterable, Codable {
    /// Pushes are accepted.
    case online
    /// The app was removed: 410 `Unregistered`.
    case unregistered
    /// The token has expired, as the token of a finished Live Activity: 410 `ExpiredToken`.
    case expired
  }

  /// The device token in lower-case hexadecimal.
  package let token: String
  /// The exact `apns-topic` the token belongs to; nil for any.
  package var topic: String?
  /// The environment the token belongs to; nil for any.
  package var environment: PushEnvironment?
  package var state: State
  /// When the state began, in milliseconds since 1970 of the server's clock: the `timestamp` of a 410.
  package var since: ServerTime
  /// Whether this is what an answer of upstream said about the token.
  package var isFromUpstream: Bool

  /// Creates a token; the text is converted to lower case.
  package init(
    token: String, topic: String? = nil, environment: PushEnvironment? = nil, state: State = .online, since: ServerTime,
    isFromUpstream: Bool = false
  ) {
    self.token = token.lowercased()
    self.topic = topic
    self.environment = environment
    self.state = state
    self.since = since
    self.isFromUpstream = isFromUpstream
  }
}

extension DeviceTables.Token.State {
  init(_ state: SingleToken.State) {
    switch state {
    case .online: self = .active
    case .unregistered: self = .unregistered
    case .expired: self = .expired
    }
  }
}

extension DeviceRegistry.State {
  func device(_ id: String) throws(DeviceError) -> DeviceTables.Index {
    guard let device = tables.device(id) else { throw .unknownDevice(id) }
    return device
  }

  fileprivate mutating func deviceOrNew(_ id: String, limit: Int) throws(DeviceError) -> DeviceTables.Index {
    if let device = tables.device(id) { return device }
    guard tables.deviceCount + tables.singleTokenCount < limit else { throw .limitReached(limit) }
    return tables.addDevice(id, state: .online)
  }

  /// Returns the installation of an app; nil if it is not on the device.
  fileprivate func installation(
    _ bundleID: String, _ environment: PushEnvironment?, on device: DeviceTables.Index
  ) throws(DeviceError) -> DeviceTables.Index? {
    let found = tables.installations(of: device).filter { index in
      let installation = tables.installations[Int(index)]
      return tables.name(installation.name) == bundleID
        && (environment == nil || installation.environment == environment)
    }
    guard found.count < 2 else { throw .ambiguousEnvironment(bundleID) }
    return found.first
  }

  func requiredInstallation(
    _ bundleID: String, _ environment: PushEnvironment?, on device: DeviceTables.Index
  ) throws(DeviceError) -> DeviceTables.Index {
    guard let found = try installation(bundleID, environment, on: device) else {
      throw notInstalled(bundleID, on: device)
    }
    return found
  }

  fileprivate func notInstalled(_ bundleID: String, on device: DeviceTables.Index) -> DeviceError {
    let installed = Set(tables.installations(of: device).compactMap { tables.name(tables.installations[Int($0)].name) })
    return .notInstalled(bundleID, on: tables.id(of: device), installed: installed.sorted())
  }

  mutating func addToken(
    _ kind: TokenKind, to installation: DeviceTables.Index, now: ServerTime, _ makeToken: () -> String
  ) throws(DeviceError) -> TokenDescription {
    let token = TokenDescription(kind: kind, token: makeToken().lowercased())
    try tables.add(token, to: installation, now: now)
    return token
  }

  fileprivate mutating func add(
    _ token: SingleToken, _ state: DeviceTables.Token.State, limit: Int
  ) throws(DeviceError) {
    guard DeviceToken.isWellFormed(token.token) else { throw .malformedToken(token.token) }
    guard tables.deviceCount + tables.singleTokenCount < limit else { throw .limitReached(limit) }
    let installation = tables.addInstallation(
      token.topic, environment: token.environment, state: .enabled, to: DeviceTables.none)
    tables.addToken(
      token.token, kind: nil, state: state, isFromUpstream: token.isFromUpstream, since: token.since, to: installation)
  }

  /// Discards what is stored for an app that was removed.
  fileprivate mutating func discardStored(
    of installation: DeviceTables.Index, now: ServerTime, _ events: inout [DeliveryEvent]
  ) {
    for key in Deliveries.storageKeys(installation) {
      guard let stored = deliveries.storedPushes.remove(key) else { continue }
      change(stored.push, to: .discardedUnregisteredFromStorage, now: now, &events)
    }
    discardHeld(for: installation, now: now, &events)
  }

  /// Discards the background push that is held for an app that was removed.
  fileprivate mutating func discardHeld(
    for installation: DeviceTables.Index, now: ServerTime, _ events: inout [DeliveryEvent]
  ) {
    guard let held = deliveries.heldPushes.remove(UInt64(installation)) else { return }
    change(held, to: .discardedUnregisteredFromStorage, now: now, &events)
  }
}
