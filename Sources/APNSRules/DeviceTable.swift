/// The registered devices. A value type: the server copies, changes and replaces it.
public struct DeviceTable: Sendable {
  /// The maximum number of devices that may be registered with the admin API.
  public static let limit = 100_000
  /// The maximum length of a device's topic in bytes. APNs accepts no longer `apns-topic` (`BadTopic`; our
  /// inference).
  public static let topicLimit = 255

  /// Increases with each change.
  public private(set) var version: UInt64 = 0
  /// The number of devices.
  public private(set) var count = 0
  /// The devices by the `PushKey` number of their tokens, which rarely collide: a push is looked up by the received
  /// bytes of its token, without creating a `String`.
  private var byKey: [UInt64: Entry] = [:]

  /// A device with its rejection. A class, so that rejecting a push only retains a reference and allocates nothing.
  final class Entry: Sendable {
    let device: Device
    /// The rejection of pushes to this device once their topic is right; nil while the device is online.
    let farewell: Rejection?
    /// The next entry with the same key.
    fileprivate let next: Entry?

    fileprivate init(_ device: Device, next: Entry?) {
      self.device = device
      farewell = device.farewell
      self.next = next
    }
  }

  /// Creates a table; of devices with equal tokens the last one counts.
  public init(_ devices: [Device] = []) {
    for device in devices { set(device) }
  }

  /// All devices, sorted by token.
  public var devices: [Device] { byKey.values.flatMap(Self.devices).sorted { $0.token < $1.token } }

  /// Adds a device or replaces the one with the same token.
  public mutating func set(_ device: Device) {
    take(device.token)
    let key = Self.key(of: device.token)
    byKey[key] = Entry(device, next: byKey[key])
    count += 1
    version += 1
  }

  /// Removes a device.
  ///
  /// - Returns: the removed device; nil if the table does not contain it.
  @discardableResult
  public mutating func remove(_ token: String) -> Device? {
    guard let gone = take(token.lowercased()) else { return nil }
    version += 1
    return gone
  }

  /// Removes the device with this lower-case token from its key's list.
  @discardableResult
  private mutating func take(_ token: String) -> Device? {
    let key = Self.key(of: token)
    let same = Self.devices(byKey[key])
    guard let gone = same.first(where: { $0.token == token }) else { return nil }
    byKey[key] = same.filter { $0.token != token }.reduce(nil) { Entry($1, next: $0) }
    count -= 1
    return gone
  }

  /// Removes all devices.
  public mutating func removeAll() {
    guard count > 0 else { return }
    byKey.removeAll()
    count = 0
    version += 1
  }

  /// The device with this token, whose digits may have either case.
  public subscript(token: String) -> Device? {
    var token = token
    return token.withUTF8 { entry(UnsafeRawBufferPointer($0))?.device }
  }

  /// Returns the entry of this device token, hexadecimal digits of either case. Costs nothing while the table is
  /// empty.
  func entry(_ token: UnsafeRawBufferPointer) -> Entry? {
    if count == 0 { return nil }
    var entry = byKey[PushKey(deviceToken: token).number]
    while let found = entry, !Self.names(token, found.device) { entry = found.next }
    return entry
  }

  private static func key(of token: String) -> UInt64 {
    var token = token
    return token.withUTF8 { PushKey(deviceToken: UnsafeRawBufferPointer($0)).number }
  }

  private static func names(_ token: UnsafeRawBufferPointer, _ device: Device) -> Bool {
    var known = device.token
    return known.withUTF8 { token.equalsHexadecimal($0) }
  }

  /// The devices of an entry and of those linked to it.
  private static func devices(_ entry: Entry?) -> [Device] {
    sequence(first: entry, next: { $0?.next }).compactMap { $0?.device }
  }
}
