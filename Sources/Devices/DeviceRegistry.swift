package import APNSMockNotation
package import APNSMockRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// The registered devices, the apps on them and their tokens; what is stored for them and what they show.
///
/// Safe to call from any thread: one lock protects everything. A push to a token that is not registered costs one
/// lookup, and one atomic load if nothing is registered.
package final class DeviceRegistry: Sendable {
  struct State: Sendable {
    var tables = DeviceTables() { didSet { changes &+= 1 } }
    /// The devices that `reset` restores.
    var initial = DeviceTables()
    var deliveries = Deliveries()
    private var changes = 0
    /// Increases with each change of `tables` but those of Live Activities alone, which pushes make.
    var version: Int { changes &- tables.activityChanges }
    /// Called for each change; nil without a listener.
    var report: (@Sendable (DeviceChange) -> Void)?
    /// Returns a new token for a Live Activity that a push starts.
    let makeActivityToken: @Sendable () -> String

    init(makeActivityToken: @escaping @Sendable () -> String) { self.makeActivityToken = makeActivityToken }

    mutating func apply(_ loader: DeviceLoader) {
      for device in loader.replaced { forget(device) }
      var loaded = loader.tables
      loaded.takeActivities(from: tables)
      tables = loaded
      if let report { for id in loader.addedIDs ?? [] { report(.device(id)) } }
    }
  }

  /// The maximum number of devices, and of tokens registered without one.
  package let maxDevices: Int
  /// The maximum number of apps on a device, and of valid tokens of an app on a device.
  package static let maxPerDevice = 64

  let state: NIOLockedValueBox<State>
  /// The tokens in the order in which cut ones are searched, as of the last search; nil before the first one.
  let cachedTokenOrder = NIOLockedValueBox<TokenOrder?>(nil)
  private let registered = Atomic<Int>(0)

  /// Creates an empty registry.
  ///
  /// - Parameter makeActivityToken: Returns a new token for a Live Activity that a push starts. Called while the registry is
  ///   locked.
  package init(
    maxDevices: Int = 1_000_000,
    makeActivityToken: @escaping @Sendable () -> String = {
      Hexadecimal.text((0..<80).map { _ in UInt8.random(in: 0...255) }[...])
    }
  ) {
    self.maxDevices = maxDevices
    state = NIOLockedValueBox(State(makeActivityToken: makeActivityToken))
  }

  /// Whether no device and no token is registered.
  package var isEmpty: Bool { registered.load(ordering: .acquiring) == 0 }

  /// The numbers of devices and of tokens.
  package var counts: (devices: Int, tokens: Int) {
    state.withLockedValue { ($0.tables.deviceCount, $0.tables.tokenCount) }
  }

  /// Changes the state and publishes whether something is registered.
  func update<Success, Failure>(
    _ change: (inout State) throws(Failure) -> Success
  ) throws(Failure) -> Success {
    let result: Result<Success, Failure> = state.withLockedValue { state in
      defer { registered.store(state.tables.deviceCount + state.tables.tokenCount, ordering: .releasing) }
      do throws(Failure) { return .success(try change(&state)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  // MARK: - Lookup

  /// The result of looking up a device token.
  package struct Match: Sendable {
    /// What the rules need to know of the token.
    package let token: RegisteredToken
    /// The token, for `deliver`.
    package let reference: TokenReference
    /// Whether the app was removed and APNs has not detected it.
    package let isRemovalUndetected: Bool
  }

  /// A registered token, valid until the token is removed.
  package struct TokenReference: Sendable, Equatable {
    let tokenIndex: DeviceTables.Index
    let installation: DeviceTables.Index
  }

  /// Returns the token with these hexadecimal digits of either case; nil if it is not registered.
  ///
  /// - Parameters:
  ///   - now: The server's clock, in milliseconds since 1970.
  ///   - unregisteredDelay: The time in milliseconds between the first accepted push after an app's removal and the
  ///     first 410.
  package func match(_ digits: UnsafeRawBufferPointer, now: ServerTime, unregisteredDelay: Int64 = 0) -> Match? {
    state.withLockedValue { state in
      guard let index = state.tables.token(digits) else { return nil }
      let token = state.tables.tokens[Int(index)]
      let installation = state.tables.installations[Int(token.installation)]
      let dismissedAt = token.kind == .liveactivity ? state.tables.activities[index]?.dismissedAt : nil
      let status: RegisteredToken.Status =
        switch (token.state, installation.removalNoticedAt) {
        case (.expired, _): .expired(since: token.since)
        case (.active, _) where dismissedAt.map { $0 <= now } == true: .expired(since: dismissedAt ?? now)
        case (.unregistered, _): .unregistered(since: token.since)
        case (_, let noticed?) where now >= noticed.addingClamped(unregisteredDelay): .unregistered(since: noticed)
        default: .active
        }
      let name = state.tables.name(installation.name)
      let topics: RegisteredToken.Topics =
        if let name {
          token.kind.map { .app(bundleID: name, kind: $0.pushType) } ?? .exactly(name)
        } else { .any }
      return Match(
        token: RegisteredToken(
          environment: installation.environment, topics: topics, status: status,
          isFromUpstream: token.isFromUpstream),
        reference: TokenReference(tokenIndex: index, installation: token.installation),
        isRemovalUndetected: installation.state == .removed && installation.removalNoticedAt == nil)
    }
  }

  // MARK: - Loading

  /// Adds devices, all or none.
  ///
  /// - Parameter change: Adds the devices. If it throws, nothing changes. It is called again if the registry was
  ///   changed while it ran.
  package func load(now: ServerTime, _ change: (inout DeviceLoader) throws -> Void) rethrows {
    // Outside of the lock, so that pushes do not wait. After three attempts inside, so that loading ends.
    for _ in 0..<3 {
      let (tables, version, keepsIDs) = state.withLockedValue { ($0.tables, $0.version, $0.report != nil) }
      var loader = DeviceLoader(tables, maxDevices: maxDevices, now: now, keepsIDs: keepsIDs)
      try change(&loader)
      let isCurrent = update { state in
        guard state.version == version else { return false }
        state.apply(loader)
        return true
      }
      if isCurrent { return }
    }
    try update { state in
      var loader = DeviceLoader(
        state.tables, maxDevices: maxDevices, now: now, keepsIDs: state.report != nil)
      try change(&loader)
      state.apply(loader)
    }
  }

  /// Makes the present devices and tokens those that `reset` restores.
  package func saveAsInitial() { state.withLockedValue { $0.initial = $0.tables } }

  /// Restores the initial devices and tokens: none, unless some were saved. Removes what is stored and shown.
  package func reset() {
    update { state in
      let watched = state.deliveries.watched.map { (state.tables.id(of: $0), $1) }
      state.tables = state.initial
      let watchingAll = state.deliveries.watchingAll
      state.deliveries = Deliveries()
      state.deliveries.watchingAll = watchingAll
      for (id, count) in watched {
        if let device = state.tables.device(id) { state.deliveries.watched[device] = count }
      }
    }
  }
}

/// Adds devices to a copy of the registry's tables.
package struct DeviceLoader {
  private(set) var tables: DeviceTables
  /// The devices that were replaced, by their former indices.
  private(set) var replaced: [DeviceTables.Index] = []
  /// The devices added by this loader, by index.
  private var added: Set<DeviceTables.Index>?
  /// The ids of the devices added by this loader; nil if they are not needed.
  fileprivate private(set) var addedIDs: [String]?
  private let firstNewDevice: Int
  private let maxDevices: Int
  private let now: ServerTime

  fileprivate init(_ tables: DeviceTables, maxDevices: Int, now: ServerTime, keepsIDs: Bool) {
    self.tables = tables
    addedIDs = keepsIDs ? [] : nil
    self.maxDevices = maxDevices
    self.now = now
    firstNewDevice = tables.devices.count
    // With an empty registry all devices are new, and the set would need memory for each.
    added = tables.deviceCount == 0 ? nil : []
  }

  /// Adds a device, or replaces the one with its id that was there before.
  ///
  /// - Throws: `DeviceError` if the id was added before by this loader, if a token is registered, or if a limit is
  ///   reached.
  package mutating func add(_ device: DeviceDescription) throws(DeviceError) {
    if let former = tables.device(device.id) {
      guard let known = added, !known.contains(former) else { throw .deviceExists(device.id) }
      tables.removeDevice(former)
      replaced.append(former)
    }
    guard tables.deviceCount + tables.singleTokenCount < maxDevices else { throw .limitReached(maxDevices) }
    let index = tables.addDevice(device.id, state: device.state)
    added?.insert(index)
    addedIDs?.append(device.id)
    for app in device.apps { try add(app, to: index) }
  }

  private mutating func add(_ app: InstallationDescription, to device: DeviceTables.Index) throws(DeviceError) {
    try tables.checkLimits(of: app, on: device)
    let installation = tables.addInstallation(
      app.bundleID, environment: app.environment, state: app.state, to: device)
    for token in app.tokens { try tables.add(token, to: installation, now: now) }
  }
}

extension DeviceTables {
  func checkLimits(of app: InstallationDescription, on device: Index) throws(DeviceError) {
    guard app.tokens.count(where: \.isValid) <= DeviceRegistry.maxPerDevice else { throw .tooManyTokens(app.bundleID) }
    var count = 0
    for other in installations(of: device) {
      count += 1
      let other = installations[Int(other)]
      if other.environment == app.environment, name(other.name) == app.bundleID {
        throw .alreadyInstalled(app.bundleID, app.environment)
      }
    }
    guard count < DeviceRegistry.maxPerDevice else { throw .tooManyApps(id(of: device)) }
  }

  /// Adds a token to an installation.
  ///
  /// - Throws: `DeviceError` if it is not well formed or registered already.
  mutating func add(_ token: TokenDescription, to installation: Index, now: ServerTime) throws(DeviceError) {
    guard DeviceToken.isWellFormed(token.token) else { throw .malformedToken(token.token) }
    if let other = index(ofToken: token.token) { throw .tokenExists(token.token, owner: owner(of: other)) }
    let (state, since): (Token.State, ServerTime) =
      switch (token.expiredAt, token.unregisteredAt) {
      case (let time?, _): (.expired, time)
      case (nil, let time?): (.unregistered, time)
      case (nil, nil): (.active, now)
      }
    addToken(token.token, kind: token.kind, state: state, since: since, to: installation)
  }

  /// Whether a token still belongs to its app: it may have been removed since it was looked up, by a reset for example.
  func isRegistered(_ reference: DeviceRegistry.TokenReference) -> Bool {
    Int(reference.tokenIndex) < tokens.count && Int(reference.installation) < installations.count
      && tokens[Int(reference.tokenIndex)].installation == reference.installation
  }

  func index(ofToken text: String) -> Index? {
    return text.withBytes { token($0) }
  }

  /// The id of the device that a token belongs to; nil for a token that was registered alone.
  func owner(of token: Index) -> String? {
    let device = installations[Int(tokens[Int(token)].installation)].device
    return device == Self.none ? nil : id(of: device)
  }
}

/// A change to the registry that is not possible.
package enum DeviceError: Error, Equatable, CustomStringConvertible {
  case deviceExists(String)
  case unknownDevice(String)
  case tokenExists(String, owner: String?)
  case malformedToken(String)
  case unknownToken(String)
  /// The token is not that of a Live Activity on a device.
  case notActivityToken(String)
  case activityEnded(String)
  case alreadyInstalled(String, PushEnvironment)
  case notInstalled(String, on: String, installed: [String])
  /// The app is installed for both environments, and the request names none.
  case ambiguousEnvironment(String)
  case tooManyApps(String)
  case tooManyTokens(String)
  case limitReached(Int)

  /// What is wrong.
  package var description: String {
    switch self {
    case .deviceExists(let id): "the device \(id) exists already"
    case .unknownDevice(let id): "there is no device \(id)"
    case .tokenExists(let token, let owner):
      "the device token \(DeviceToken.abbreviated(token)) is registered already"
        + (owner.map { ", for the device \($0)" } ?? "")
    case .malformedToken(let token): "\"\(token.prefix(80))\" is not a device token"
    case .unknownToken(let token): "the device token \(DeviceToken.abbreviated(token)) is not registered"
    case .notActivityToken(let token):
      "the device token \(DeviceToken.abbreviated(token)) is not that of a Live Activity on a device"
    case .activityEnded(let token):
      "the Live Activity of the device token \(DeviceToken.abbreviated(token)) has ended"
    case .alreadyInstalled(let app, let environment): "\(app) is installed already (\(environment.rawValue))"
    case .notInstalled(let app, let id, _): "\(app) is not installed on \(id)"
    case .ambiguousEnvironment(let app): "\(app) is installed for both environments"
    case .tooManyApps(let id): "\(id) has \(DeviceRegistry.maxPerDevice) apps, which is the limit"
    case .tooManyTokens(let app):
      "\(app) has \(DeviceRegistry.maxPerDevice) valid tokens on the device, which is the limit"
    case .limitReached(let count): "\(count) devices are registered, which is the limit"
    }
  }

  /// How to solve it.
  package var hint: String {
    switch self {
    case .deviceExists: "Give each device an id of its own."
    case .unknownDevice: "List the devices with apns-mock device ls, or load them from a fixture file."
    case .tokenExists: "Give each app on each device tokens of its own."
    case .malformedToken: "It is an even number of hexadecimal digits, 2 to 400 of them."
    case .unknownToken: "List the registered tokens with apns-mock device ls."
    case .notActivityToken: "apns-mock device show ID lists the Live Activities of a device."
    case .activityEnded:
      "Start another one with apns-mock device start-activity, or with a push to the push-to-start token."
    case .alreadyInstalled: "Use reinstall to get new tokens."
    case .notInstalled(_, _, let installed):
      installed.isEmpty ? "Install it first." : "Installed are \(installed.joined(separator: ", "))."
    case .ambiguousEnvironment: "Add environment: sandbox or production."
    case .tooManyApps, .tooManyTokens: "Remove some of them, or use another device."
    case .limitReached: "Remove devices that are no longer needed, or raise --max-devices."
    }
  }
}
