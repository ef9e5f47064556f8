extension UnsafeRawBufferPointer {
  /// The bytes in `range`, which must be within bounds.
  @inlinable @inline(__always)
  package func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }
}

/// Access to a text's UTF-8.
extension String {
  /// Calls `body` with the bytes of the text.
  @inlinable @inline(__always)
  package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    var text = self
    return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }
}

/// Hexadecimal digits.
package enum Hexadecimal {
  private static let lowercaseDigits = Array("0123456789abcdef".utf8)
  private static let uppercaseDigits = Array("0123456789ABCDEF".utf8)

  /// Returns the bytes as text, with two digits per byte.
  package static func text(_ bytes: some Collection<UInt8>, uppercase: Bool = false) -> String {
    let digits = uppercase ? uppercaseDigits : lowercaseDigits
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns a number as text with at least `digits` digits, padded with zeros.
  package static func text(_ number: some UnsignedInteger, digits count: Int, uppercase: Bool = false) -> String {
    let text = String(number, radix: 16, uppercase: uppercase)
    return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
  }

  /// Returns the value of an ASCII digit of either case; nil for any other character.
  package static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Decodes digits of either case, two per byte; nil for other characters, an odd number of digits, or none.
  package static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    guard !digits.isEmpty, digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      guard let value = value(of: digit) else { return nil }
      if let half = high { bytes.append(half << 4 | value) }
      high = high == nil ? value : nil
    }
    return bytes
  }

  /// Returns whether a character is a digit of either case.
  package static func isDigit(_ character: UInt8) -> Bool { value(of: character) != nil }
}

/// Percent-encoding (RFC 3986 section 2.1).
package enum PercentEncoding {
  /// Returns a text with all characters except the unreserved ones as `%XX`.
  ///
  /// - Parameter others: Further ASCII characters that are not encoded.
  package static func encode(_ text: String, except others: String = "") -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) || others.utf8.contains(byte) {
        encoded.append(byte)
      } else {
        encoded += ("%" + Hexadecimal.text(CollectionOfOne(byte), uppercase: true)).utf8
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// Decodes a text; nil if a percent sign is not followed by two hexadecimal digits, or the result is not UTF-8.
  ///
  /// - Parameter plusIsSpace: Whether `+` is decoded as a space, as in the query of a URL.
  package static func decode(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(Hexadecimal.value),
          let low = rest.popFirst().flatMap(Hexadecimal.value)
        else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Returns a text in which unreserved characters are not encoded; all others stay as they are (RFC 3986 section 6.2.2.2).
  package static func decodingUnreserved(_ text: some StringProtocol) -> String {
    guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
    var decoded: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2, let high = Hexadecimal.value(of: rest[rest.startIndex]),
        let low = Hexadecimal.value(of: rest[rest.startIndex + 1]), isUnreserved(high << 4 | low)
      {
        decoded.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        decoded.append(byte)
      }
    }
    return String(decoding: decoded, as: UTF8.self)
  }

  /// Returns whether a byte is a letter, a digit or one of `-._~` (RFC 3986 section 2.3).
  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-._~".utf8.contains(byte)
    }
  }
}

/// A decoded base64url text (RFC 4648 section 5), and whether its encoding was unusual.
package struct Base64URL {
  /// The decoded bytes.
  package private(set) var bytes: [UInt8] = []
  /// Whether the text uses `+` or `/` of the standard alphabet, or `=` padding. JWTs must not (RFC 7515 section 2), but
  /// APNs was observed to accept them.
  package private(set) var isStandardBase64 = false

  /// Decodes a text; nil if it has a character of neither alphabet, or an impossible length.
  package init?(_ text: [UInt8]) {
    guard let decoded = text.withUnsafeBytes({ Base64URL($0) }) else { return nil }
    self = decoded
  }

  /// Decodes a text; nil if it has a character of neither alphabet, or an impossible length.
  package init?(_ text: UnsafeRawBufferPointer) {
    var end = text.count
    while end > 0, text.count - end < 2, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
    isStandardBase64 = end < text.count
    guard end % 4 != 1 else { return nil }
    bytes.reserveCapacity(end / 4 * 3 + 2)
    var bits: UInt32 = 0
    var count = 0
    for character in text[..<end] {
      let value: UInt8
      switch character {
      case 0x41...0x5a: value = character - 0x41
      case 0x61...0x7a: value = character - 0x61 + 26
      case 0x30...0x39: value = character - 0x30 + 52
      case UInt8(ascii: "-"): value = 62
      case UInt8(ascii: "_"): value = 63
      case UInt8(ascii: "+"), UInt8(ascii: "/"):
        value = character == UInt8(ascii: "+") ? 62 : 63
        isStandardBase64 = true
      default: return nil
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
  }

  /// Returns the bytes in base64url without padding.
  package static func text(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for digit in 0...group.count { text.append(alphabet[bits >> (18 - 6 * digit) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
