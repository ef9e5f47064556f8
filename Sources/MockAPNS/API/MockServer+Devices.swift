import APNSMockDevices
import APNSMockInbox
import APNSMockRules

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension MockServer {
  /// An APNs environment.
  public enum Environment: String, Sendable, Encodable { case sandbox, production }

  /// A registered device with its apps.
  public struct Device: Sendable, Equatable, Encodable {
    /// The connection of a device to APNs.
    public enum State: String, Sendable, Encodable {
      case online, offline
      case powerRestricted = "power_restricted"
    }

    /// An app on a device.
    public struct App: Sendable, Equatable, Encodable {
      /// Whether an app receives pushes.
      public enum State: String, Sendable, Encodable {
        case enabled, disabled, removed
        case forceQuit = "force_quit"
      }

      /// The bundle id.
      public var bundleID: String
      /// The environment of its tokens; nil for that of the server.
      public var environment: Environment?
      /// The state.
      public var state: State
      /// The valid device tokens by push type, or `liveactivity_start`.
      public var tokens: [String: [String]]

      /// Creates an app.
      public init(
        bundleID: String, environment: Environment? = nil, state: State = .enabled, tokens: [String: [String]] = [:]
      ) {
        (self.bundleID, self.environment, self.state, self.tokens) = (bundleID, environment, state, tokens)
      }
    }

    /// The name of the device in tests: a letter, then letters, digits, `_` and `-`.
    public var id: String
    /// The state.
    public var state: State
    /// The apps.
    public var apps: [App]

    /// Creates a device.
    public init(id: String, state: State = .online, apps: [App] = []) {
      (self.id, self.state, self.apps) = (id, state, apps)
    }
  }

  /// A broadcast channel.
  public struct BroadcastChannel: Sendable, Equatable, Encodable {
    /// The app of the channel.
    public var bundleID: String
    /// The environment; nil for that of the server.
    public var environment: Environment?
    /// The id in base64.
    public var id: String
    /// 0 if nothing is stored for devices that are offline, 1 if the newest message is.
    public var messageStoragePolicy: Int

    /// Creates a channel.
    public init(bundleID: String, environment: Environment? = nil, id: String, messageStoragePolicy: Int = 0) {
      (self.bundleID, self.environment) = (bundleID, environment)
      (self.id, self.messageStoragePolicy) = (id, messageStoragePolicy)
    }
  }

  /// The registered devices in the order of registration.
  public var devices: [Device] {
    state.devices.devices(limit: .max).items.map { device in
      let apps = device.apps.map { app in
        let tokens = app.tokens.filter { $0.expiredAt == nil && $0.unregisteredAt == nil }
        return Device.App(
          bundleID: app.bundleID, environment: Environment(rawValue: app.environment.rawValue),
          state: Device.App.State(rawValue: app.state.rawValue) ?? .enabled,
          tokens: Dictionary(grouping: tokens, by: \.kind.text).mapValues { $0.map(\.token) })
      }
      return Device(id: device.id, state: Device.State(rawValue: device.state.rawValue) ?? .online, apps: apps)
    }
  }

  /// The broadcast channels.
  public var channels: [BroadcastChannel] {
    state.channels.channels().map {
      BroadcastChannel(
        bundleID: $0.bundleID, environment: Environment(rawValue: $0.environment.rawValue), id: $0.id,
        messageStoragePolicy: $0.messageStoragePolicy)
    }
  }

  /// Returns the pushes that a device shows, oldest first; nil if there is no device with this id.
  public func notifications(on device: String) -> [ReceivedPush]? {
    state.devices.contents(of: device).map { contents in
      received(contents.shown.compactMap { try? state.inbox.record(seq: $0.seq) })
    }
  }

  /// Loads apps, devices and channels, all or none. Devices and apps replace those with the same id.
  ///
  /// - Parameter fixtures: A document in YAML or JSON as in the documentation page "Devices".
  /// - Throws: `MockServerError` with all problems.
  public func load(fixtures: String) throws(MockServerError) {
    do {
      _ = try state.load([FixtureDocument(name: "fixtures", text: Array(fixtures.utf8))])
    } catch {
      throw MockServerError(ofStart: error)
    }
  }

  /// Loads devices and channels, all or none. Devices replace those with the same id.
  ///
  /// - Throws: `MockServerError` with all problems.
  public func load(devices: [Device] = [], channels: [BroadcastChannel] = []) throws(MockServerError) {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Cannot fail: the values have no numbers that JSON lacks.
    let text = try? encoder.encode(Fixtures(devices: devices, channels: channels))
    try load(fixtures: String(decoding: text ?? Data(), as: UTF8.self))
  }

  private struct Fixtures: Encodable {
    let devices: [Device]
    let channels: [BroadcastChannel]
  }
}
