/// A decoded part of a JWT, and whether its encoding was unusual.
struct Base64URL {
  /// The decoded bytes.
  private(set) var bytes: [UInt8] = []
  /// Whether it uses `+` or `/`, or `=` padding, which RFC 7515 section 2 forbids and APNs was observed to accept.
  private(set) var isStandardBase64 = false

  /// Decodes `text`; nil if it has a character of neither alphabet, or an impossible length.
  init?(_ text: UnsafeRawBufferPointer) {
    var end = text.count
    while end > 0, text.count - end < 2, text[end - 1] == 0x3d { end -= 1 }
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
      case 0x2d: value = 62
      case 0x5f: value = 63
      case 0x2b:
        value = 62
        isStandardBase64 = true
      case 0x2f:
        value = 63
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
}
