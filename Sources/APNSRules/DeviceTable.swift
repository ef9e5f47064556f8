/// The registered devices at one moment: a value that is copied, changed and swapped.
public struct DeviceTable: Sendable {
  /// Goes up with each change.
  public private(set) var version: UInt64 = 0
  private var byToken: [String: Device] = [:]

  /// A table of these devices; of two with one token the later counts.
  public init(_ devices: [Device] = []) {
    for device in devices { set(device) }
  }

  /// How many devices it has.
  public var count: Int { byToken.count }

  /// The devices by token.
  public var devices: [Device] { byToken.values.sorted { $0.token < $1.token } }

  /// Adds a device or replaces the one with its token.
  public mutating func set(_ device: Device) {
    byToken[device.token] = device
    version += 1
  }

  /// Forgets a device.
  ///
  /// - Returns: what it was, `nil` if the table did not have it.
  @discardableResult
  public mutating func remove(_ token: String) -> Device? {
    guard let gone = byToken.removeValue(forKey: token.lowercased()) else { return nil }
    version += 1
    return gone
  }

  /// Forgets all devices.
  public mutating func removeAll() {
    guard !byToken.isEmpty else { return }
    byToken.removeAll()
    version += 1
  }

  /// The device with this token, in any case.
  public subscript(token: String) -> Device? { byToken[token.lowercased()] }

  /// The device with this token as it came off the wire, hexadecimal in any case. Costs nothing while the table is
  /// empty.
  public func device(_ token: UnsafeRawBufferPointer) -> Device? {
    if byToken.isEmpty { return nil }
    return byToken[String(lowercasedHexadecimal: token)]
  }
}

extension String {
  /// Hexadecimal digits in lower case; other bytes come out as they may.
  init(lowercasedHexadecimal bytes: UnsafeRawBufferPointer) {
    self.init(unsafeUninitializedCapacity: bytes.count) { buffer in
      // Setting bit 5 puts A…F into lower case and leaves digits and a…f alone.
      for (index, byte) in bytes.enumerated() { buffer[index] = byte | 0x20 }
      return bytes.count
    }
  }
}
