/// The registered devices at one moment: a value that is copied, changed and swapped.
public struct DeviceTable: Sendable {
  /// The most devices that may be registered over the admin API.
  public static let limit = 100_000
  /// The longest topic of a device, in bytes. APNs accepts no longer one as `apns-topic` (`BadTopic`; our inference).
  public static let topicLimit = 255

  /// Goes up with each change.
  public private(set) var version: UInt64 = 0
  /// How many devices it has.
  public private(set) var count = 0
  /// The devices by the number of their tokens' `PushKey`, which hardly ever two share: a push is looked up by the bytes
  /// of its token, without a `String` of them.
  private var byKey: [UInt64: Entry] = [:]

  /// A device, and what a push to it needs. An object, so that a push which is rejected for it takes a reference and
  /// makes nothing.
  final class Entry: Sendable {
    let device: Device
    /// Why pushes to it are rejected once their topic is right; `nil` while the device is online.
    let farewell: Rejection?
    /// Another one with this key.
    fileprivate let next: Entry?

    fileprivate init(_ device: Device, next: Entry?) {
      self.device = device
      farewell = device.farewell
      self.next = next
    }
  }

  /// A table of these devices; of two with one token the later counts.
  public init(_ devices: [Device] = []) {
    for device in devices { set(device) }
  }

  /// The devices by token.
  public var devices: [Device] { byKey.values.flatMap(Self.devices).sorted { $0.token < $1.token } }

  /// Adds a device or replaces the one with its token.
  public mutating func set(_ device: Device) {
    take(device.token)
    let key = Self.key(of: device.token)
    byKey[key] = Entry(device, next: byKey[key])
    count += 1
    version += 1
  }

  /// Forgets a device.
  ///
  /// - Returns: what it was, `nil` if the table did not have it.
  @discardableResult
  public mutating func remove(_ token: String) -> Device? {
    guard let gone = take(token.lowercased()) else { return nil }
    version += 1
    return gone
  }

  /// Takes out the device with this token, which is in lower case.
  @discardableResult
  private mutating func take(_ token: String) -> Device? {
    let key = Self.key(of: token)
    let same = Self.devices(byKey[key])
    guard let gone = same.first(where: { $0.token == token }) else { return nil }
    byKey[key] = same.filter { $0.token != token }.reduce(nil) { Entry($1, next: $0) }
    count -= 1
    return gone
  }

  /// Forgets all devices.
  public mutating func removeAll() {
    guard count > 0 else { return }
    byKey.removeAll()
    count = 0
    version += 1
  }

  /// The device with this token, in any case.
  public subscript(token: String) -> Device? {
    var token = token
    return token.withUTF8 { entry(UnsafeRawBufferPointer($0))?.device }
  }

  /// The device with this token as it came off the wire, hexadecimal in any case. Costs nothing while the table is
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

  /// Those of an entry and the ones behind it.
  private static func devices(_ entry: Entry?) -> [Device] {
    sequence(first: entry, next: { $0?.next }).compactMap { $0?.device }
  }
}
