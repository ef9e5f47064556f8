import APNSMockPlatformLibc

/// An IP address as bytes in network order: 4 for IPv4, 16 for IPv6. An IPv4-mapped IPv6 address (RFC 4291, section
/// 2.5.5.2) is stored as IPv4.
package struct IPAddress: Sendable, Equatable {
  package let bytes: [UInt8]

  /// Creates an address from its text; nil if `text` is not an IP address.
  package init?(_ text: some StringProtocol) {
    let text = String(text)
    for (family, size) in [(AF_INET, 4), (AF_INET6, 16)] {
      var bytes = [UInt8](repeating: 0, count: size)
      guard inet_pton(family, text, &bytes) == 1 else { continue }
      let isMapped = size == 16 && bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11].allSatisfy { $0 == 0xFF }
      self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
      return
    }
    return nil
  }
}

/// A block of IP addresses in CIDR notation, for example `10.0.0.0/8`. A single address is a block with all bits.
package struct AddressBlock: Sendable, Equatable {
  /// The block as written in the profile file.
  package let text: String
  private let bytes: [UInt8]
  private let prefixLength: Int

  /// The reason why a text is not a block of addresses.
  package enum Problem: Error, Equatable {
    /// The part before the slash is not an IP address.
    case address
    /// The prefix length is not a number from 0 to `max`.
    case prefixLength(max: Int)
    /// Bits after the prefix are set.
    case hostBits
  }

  /// Creates a block from an address or CIDR notation.
  ///
  /// - Parameter allowsHostBits: Whether bits after the prefix are ignored.
  /// - Throws: `Problem` for a malformed text.
  package init(_ text: String, allowsHostBits: Bool = false) throws(Problem) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(parts[0]) else { throw .address }
    let bits = address.bytes.count * 8
    var length = bits
    if parts.count == 2 {
      // An IPv4-mapped prefix counts its bits from the beginning of the IPv6 address.
      let offset = bits == 32 && parts[0].contains(":") ? 96 : 0
      guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(parts[1]),
        (offset...offset + bits).contains(number)
      else { throw .prefixLength(max: offset + bits) }
      length = number - offset
    }
    self.text = text
    bytes = Self.masked(address.bytes, to: length)
    prefixLength = length
    guard allowsHostBits || bytes == address.bytes else { throw .hostBits }
  }

  package func contains(_ address: IPAddress) -> Bool {
    address.bytes.count == bytes.count && Self.masked(address.bytes, to: prefixLength) == bytes
  }

  private static func masked(_ bytes: [UInt8], to length: Int) -> [UInt8] {
    bytes.enumerated().map { index, byte in
      let kept = min(max(length - index * 8, 0), 8)
      return kept == 0 ? 0 : byte & (0xFF << (8 - kept))
    }
  }
}
