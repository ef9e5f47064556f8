/// The registered devices at one moment: a value that is copied, changed and swapped.
public struct DeviceTable: Sendable {
  /// Goes up with each change.
  public private(set) var version: UInt64 = 0
  /// How many devices it has.
  public private(set) var count = 0
  /// The devices by a hash of their tokens, which few share: a push is looked up by the bytes of its token, without a
  /// `String` of them.
  private var byHash: [Int: [Device]] = [:]

  /// A table of these devices; of two with one token the later counts.
  public init(_ devices: [Device] = []) {
    for device in devices { set(device) }
  }

  /// The devices by token.
  public var devices: [Device] { byHash.values.joined().sorted { $0.token < $1.token } }

  /// Adds a device or replaces the one with its token.
  public mutating func set(_ device: Device) {
    take(device.token)
    byHash[Self.hash(of: device.token), default: []].append(device)
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
    let hash = Self.hash(of: token)
    guard var same = byHash[hash], let place = same.firstIndex(where: { $0.token == token }) else { return nil }
    let gone = same.remove(at: place)
    byHash[hash] = same.isEmpty ? nil : same
    count -= 1
    return gone
  }

  /// Forgets all devices.
  public mutating func removeAll() {
    guard count > 0 else { return }
    byHash.removeAll()
    count = 0
    version += 1
  }

  /// The device with this token, in any case.
  public subscript(token: String) -> Device? {
    var token = token.lowercased()
    return token.withUTF8 { device(UnsafeRawBufferPointer($0)) }
  }

  /// The device with this token as it came off the wire, hexadecimal in any case. Costs nothing while the table is
  /// empty.
  public func device(_ token: UnsafeRawBufferPointer) -> Device? {
    if count == 0 { return nil }
    return byHash[Self.hash(of: token)]?.first { device in
      var known = device.token
      return known.withUTF8 { token.equalsHexadecimal(UnsafeRawBufferPointer($0)) }
    }
  }

  private static func hash(of token: String) -> Int {
    var token = token
    return token.withUTF8 { hash(of: UnsafeRawBufferPointer($0)) }
  }

  /// The same for a token in any case.
  private static func hash(of token: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    token.forEachLowercasedWord { hasher.combine($0) }
    return hasher.finalize()
  }
}

extension UnsafeRawBufferPointer {
  /// The same hexadecimal digits in any case; other bytes are compared as they may.
  fileprivate func equalsHexadecimal(_ other: UnsafeRawBufferPointer) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0 | 0x20 == $1 | 0x20 }
  }

  /// Calls `body` with eight hexadecimal digits after the other in lower case; the last ones may be fewer.
  fileprivate func forEachLowercasedWord(_ body: (UInt64) -> Void) {
    // Setting bit 5 puts A…F into lower case and leaves digits and a…f alone.
    let lowercased: UInt64 = 0x2020_2020_2020_2020
    var offset = 0
    while offset + 8 <= count {
      body(loadUnaligned(fromByteOffset: offset, as: UInt64.self) | lowercased)
      offset += 8
    }
    while offset < count {
      body(UInt64(self[offset]) | lowercased)
      offset += 1
    }
  }
}
