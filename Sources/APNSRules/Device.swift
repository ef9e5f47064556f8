/// A device token registered with the server. All other device tokens are treated as online.
package struct Device: Sendable, Equatable {
  /// The state of a device token.
  package enum State: String, Sendable, CaseIterable {
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
  /// The current state.
  package var state: State
  /// When the state began, in milliseconds since 1970 of the server's clock: the `timestamp` of a 410.
  package var since: Int64

  /// Creates a device; the token is converted to lower case.
  package init(
    token: String, topic: String? = nil, environment: PushEnvironment? = nil, state: State = .online, since: Int64
  ) {
    self.token = token.lowercased()
    self.topic = topic
    self.environment = environment
    self.state = state
    self.since = since
  }
}

/// The syntax of device tokens.
package enum DeviceToken {
  /// Whether `bytes` are 2 to 400 hexadecimal digits of either case, an even number (Protocol.md, section 13, row
  /// 8: the length is not fixed; 64 to 160 digits were observed, 200 are announced).
  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    !bytes.isEmpty && bytes.count <= 400 && bytes.count.isMultiple(of: 2) && bytes.isHexadecimal
  }

  /// Whether `text` is a device token.
  package static func isWellFormed(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isWellFormed(UnsafeRawBufferPointer($0)) }
  }

  /// The first four and last two digits, for logs and explanations.
  package static func abbreviated(_ text: String) -> String {
    text.utf8.count <= 8 ? text : "\(text.prefix(4))…\(text.suffix(2))"
  }
}

/// The registered devices. A value type: the server copies, changes and replaces it.
package struct DeviceTable: Sendable {
  /// The maximum number of devices that may be registered with the admin API.
  package static let limit = 100_000
  /// The maximum length of a device's topic in bytes. APNs accepts no longer `apns-topic` (`BadTopic`; our
  /// inference).
  package static let topicLimit = 255

  /// Increases with each change.
  package private(set) var version: UInt64 = 0
  /// The number of devices.
  package private(set) var count = 0
  /// The devices by the `PushKey` number of their tokens, which rarely collide: a push is looked up by the received
  /// bytes of its token, without creating a `String`.
  private var byKey: [UInt64: Entry] = [:]

  /// A device with its rejection. A class, so that rejecting a push only retains a reference and allocates nothing.
  final class Entry: Sendable {
    let device: Device
    /// The rejection of pushes to this device once their topic is right; nil while the device is online.
    let rejection: Rejection?
    /// The next entry with the same key.
    fileprivate let next: Entry?

    fileprivate init(_ device: Device, next: Entry?) {
      self.device = device
      rejection = device.rejection
      self.next = next
    }
  }

  /// Creates a table; of devices with equal tokens the last one counts.
  package init(_ devices: [Device] = []) {
    for device in devices { set(device) }
  }

  /// All devices, sorted by token.
  package var devices: [Device] { byKey.values.flatMap(Self.devices).sorted { $0.token < $1.token } }

  /// Adds a device or replaces the one with the same token.
  package mutating func set(_ device: Device) {
    removeEntry(device.token)
    let key = Self.key(of: device.token)
    byKey[key] = Entry(device, next: byKey[key])
    count += 1
    version += 1
  }

  /// Removes a device.
  ///
  /// - Returns: The removed device; nil if the table does not contain it.
  @discardableResult
  package mutating func remove(_ token: String) -> Device? {
    guard let removed = removeEntry(token.lowercased()) else { return nil }
    version += 1
    return removed
  }

  /// Removes the device with this lower-case token from its key's list.
  @discardableResult
  private mutating func removeEntry(_ token: String) -> Device? {
    let key = Self.key(of: token)
    let same = Self.devices(byKey[key])
    guard let removed = same.first(where: { $0.token == token }) else { return nil }
    byKey[key] = same.filter { $0.token != token }.reduce(nil) { Entry($1, next: $0) }
    count -= 1
    return removed
  }

  /// Removes all devices.
  package mutating func removeAll() {
    guard count > 0 else { return }
    byKey.removeAll()
    count = 0
    version += 1
  }

  /// The device with this token, whose digits may have either case.
  package subscript(token: String) -> Device? {
    var token = token
    return token.withUTF8 { entry(UnsafeRawBufferPointer($0))?.device }
  }

  /// Returns the entry of this device token, hexadecimal digits of either case. Costs nothing while the table is
  /// empty.
  func entry(_ token: UnsafeRawBufferPointer) -> Entry? {
    if count == 0 { return nil }
    var entry = byKey[PushKey(deviceToken: token).number]
    while let found = entry, !Self.matches(token, found.device) { entry = found.next }
    return entry
  }

  private static func key(of token: String) -> UInt64 {
    var token = token
    return token.withUTF8 { PushKey(deviceToken: UnsafeRawBufferPointer($0)).number }
  }

  private static func matches(_ token: UnsafeRawBufferPointer, _ device: Device) -> Bool {
    var expected = device.token
    return expected.withUTF8 { token.equalsHexadecimal($0) }
  }

  /// The devices of an entry and of those linked to it.
  private static func devices(_ entry: Entry?) -> [Device] {
    sequence(first: entry, next: { $0?.next }).compactMap { $0?.device }
  }
}
