internal import APNSMockRules
internal import NIOConcurrencyHelpers
internal import APNSMockNotation

/// A device, or a token without one, as a store keeps it.
///
/// Unlike a fixture it has the times of 410 responses, and tokens of former installations.
package struct StoredDevice: Codable, Sendable {
  struct Token: Codable, Sendable {
    var token: String
    /// What the token was registered for; nil for everything.
    var kind: String?
    var state: SingleToken.State
    /// When the state began, in milliseconds since 1970.
    var since: ServerTime
    /// Whether the state is what upstream answered; nil for no.
    var isFromUpstream: Bool?
    /// `attributes-type` of the push that started the Live Activity.
    var attributesType: String?
    /// The `seq` of the push that started the Live Activity.
    var startedBy: Int?
    /// When the Live Activity started, if that is not when the token became valid, in milliseconds since 1970.
    var startedAt: ServerTime?
    /// When the Live Activity disappears because it has ended, in milliseconds since 1970.
    var dismissedAt: ServerTime?
  }

  struct App: Codable, Sendable {
    /// The bundle id; of a token without a device, its exact topic, or nil for any.
    var name: String?
    /// The environment; nil for both.
    var environment: PushEnvironment?
    var state: InstallationState
    /// When APNs detected that the app was removed, in milliseconds since 1970.
    var removalDetectedAt: ServerTime?
    var tokens: [Token]
    /// The ids of the channels that the app is subscribed to.
    var channels: [String]
  }

  /// The state of the device; nil for a token without one.
  var state: DeviceState?
  var apps: [App]
}

/// What was changed in a registry.
package enum DeviceChange: Sendable {
  /// A device was added, changed or removed.
  case device(String)
  /// A token without a device was added, changed or removed.
  case token(String)
}

extension DeviceRegistry {
  /// Calls `report` for all changes from now on, while the registry is locked, but for `reset()`.
  package func reportChanges(_ report: @escaping @Sendable (DeviceChange) -> Void) {
    state.withLockedValue { $0.report = report }
  }

  /// Returns a device as a store keeps it; nil if there is none.
  package func stored(device id: String) -> StoredDevice? {
    state.withLockedValue { state in
      state.tables.device(id).map { device in
        StoredDevice(
          state: state.tables.devices[Int(device)].state,
          apps: state.tables.installations(of: device).reversed().map {
            state.storedApp($0, Array(state.tables.tokens(of: $0)))
          })
      }
    }
  }

  /// Returns a token without a device as a store keeps it; nil if there is none.
  package func stored(token: String) -> StoredDevice? {
    state.withLockedValue { state in
      guard let index = state.tables.index(ofToken: token), state.tables.owner(of: index) == nil else { return nil }
      return StoredDevice(
        state: nil, apps: [state.storedApp(state.tables.tokens[Int(index)].installation, [index])])
    }
  }

  /// Continues with stored devices and tokens, in place of those of the same name. Of a device or token whose value is nil nothing
  /// remains.
  package func restore(devices: [String: StoredDevice?], tokens: [String: StoredDevice?]) {
    update { state in
      for id in devices.keys {
        guard let device = state.tables.device(id) else { continue }
        state.forget(device)
        state.tables.removeDevice(device)
      }
      for token in tokens.keys {
        if let index = state.tables.index(ofToken: token), state.tables.owner(of: index) == nil {
          state.tables.removeToken(index)
        }
      }
      for (id, stored) in devices {
        // A store may contain anything.
        guard DeviceDescription.isID(id), let stored, let deviceState = stored.state else { continue }
        state.add(stored, to: state.tables.addDevice(id, state: deviceState))
      }
      for stored in tokens.values { if let stored { state.add(stored, to: DeviceTables.none) } }
    }
  }
}

extension DeviceRegistry.State {
  /// Forgets what is stored for a device and what it shows.
  mutating func forget(_ device: DeviceTables.Index) {
    for installation in Array(tables.installations(of: device)) {
      deliveries.forget(installation: installation, on: device)
    }
    deliveries.forget(device: device)
  }

  /// Reports a change of the device that an installation is on, or else of its tokens.
  func reportChange(of installation: DeviceTables.Index) {
    guard let report else { return }
    let device = tables.installations[Int(installation)].device
    if device != DeviceTables.none { return report(.device(tables.id(of: device))) }
    for token in tables.tokens(of: installation) { report(.token(tables.text(ofToken: token))) }
  }

  fileprivate func storedApp(_ index: DeviceTables.Index, _ tokens: [DeviceTables.Index]) -> StoredDevice.App {
    let app = tables.installations[Int(index)]
    return StoredDevice.App(
      name: tables.name(app.name), environment: app.environment, state: app.state,
      removalDetectedAt: app.removalNoticedAt,
      tokens: tokens.reversed().map { index in
        let token = tables.tokens[Int(index)]
        let activity = tables.activity(of: index)
        return StoredDevice.Token(
          token: tables.text(ofToken: index), kind: token.kind?.text,
          state: token.state == .expired ? .expired : token.state == .unregistered ? .unregistered : .online,
          since: token.since, isFromUpstream: token.isFromUpstream ? true : nil,
          attributesType: activity.attributesType, startedBy: activity.startedBy,
          startedAt: activity.startedAt, dismissedAt: activity.dismissedAt)
      },
      channels: deliveries.subscribers.filter { $0.value[index] != nil }.map(\.key.id).sorted())
  }

  fileprivate mutating func add(_ stored: StoredDevice, to device: DeviceTables.Index) {
    for app in stored.apps {
      // A device has apps that a fixture can have.
      if device != DeviceTables.none {
        guard let name = app.name, BundleID.problem(with: name) == nil, app.environment != nil else { continue }
      }
      let installation = tables.addInstallation(
        app.name, environment: app.environment, state: app.state, to: device)
      if let time = app.removalDetectedAt { tables.markRemovalDetected(of: installation, at: time.inRange) }
      for token in app.tokens where DeviceToken.isWellFormed(token.token) && tables.index(ofToken: token.token) == nil {
        tables.addToken(
          token.token, kind: token.kind.flatMap(TokenKind.init),
          state: DeviceTables.Token.State(token.state), isFromUpstream: token.isFromUpstream ?? false,
          since: token.since.inRange, to: installation)
        if token.startedBy != nil || token.startedAt != nil || token.dismissedAt != nil,
          let index = tables.index(ofToken: token.token)
        {
          let dismissedAt = token.dismissedAt?.inRange
          tables.setActivity(
            of: index,
            Activity(
              attributesType: token.attributesType, startedBy: token.startedBy, startedAt: token.startedAt?.inRange,
              dismissedAt: dismissedAt))
          if let dismissedAt { awaitDismissal(of: index, at: dismissedAt) }
        }
      }
      guard let name = app.name, let environment = app.environment else { continue }
      for id in app.channels {
        // Only broadcasts from now on are delivered.
        deliveries.subscribers[ChannelName(bundleID: name, environment: environment, id: id), default: [:]][
          installation] = Deliveries.Acceptance(time: .min, seq: 0)
      }
    }
  }
}

extension ServerTime {
  /// The time, or the nearest one that can be formatted.
  fileprivate var inRange: ServerTime {
    Swift.min(Swift.max(self, TimestampFormat.range.lowerBound), TimestampFormat.range.upperBound)
  }
}
