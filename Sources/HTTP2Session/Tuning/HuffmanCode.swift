/// A decoder for the Huffman code of HPACK strings (RFC 7541 section 5.2 and appendix B).
struct HuffmanCode: Sendable {
  /// The bytes by the length of their codes in bits, in the order of their codes. The code is canonical: each code
  /// is the previous one plus one, with a zero appended for each additional bit.
  ///
  /// The last code, all ones, is the end-of-string symbol, which must not occur in a string.
  static let lengths: [(bits: Int, bytes: [UInt8])] = [
    (5, Array("012aceiost".utf8)),
    (6, Array(" %-./3456789=A_bdfghlmnpru".utf8)),
    (7, Array(":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz".utf8)),
    (8, Array("&*,;XZ".utf8)),
    (10, Array("!\"()?".utf8)),
    (11, Array("'+|".utf8)),
    (12, Array("#>".utf8)),
    (13, Array("\0$@[]~".utf8)),
    (14, Array("^}".utf8)),
    (15, Array("<`{".utf8)),
    (19, [92, 195, 208]),
    (20, [128, 130, 131, 162, 184, 194, 224, 226]),
    (21, [153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230]),
    (
      22,
      [
        129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196,
        198, 228, 232, 233,
      ]
    ),
    (
      23,
      [
        1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182,
        183, 188, 191, 197, 231, 239,
      ]
    ),
    (24, [9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237]),
    (25, [199, 207, 234, 235]),
    (26, [192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255]),
    (27, [203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254]),
    (
      28,
      [
        2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127, 220, 249,
      ]
    ),
    (30, [10, 13, 22]),
  ]

  /// The result of decoding the next `width` bits.
  private struct Entry {
    /// The total length of the decoded codes in bits; `UInt8.max` if the first code is longer than `width`.
    var bits: UInt8 = .max
    /// The number of decoded bytes: two if both codes fit.
    var count: UInt8 = 0
    /// The decoded bytes; the first one is the lowest.
    var bytes: UInt16 = 0
  }
  /// The number of bits decoded in one table lookup: enough for two of the characters most common in tokens and
  /// paths.
  private static let width = 12

  /// Codes longer than `width` bits.
  private struct Long {
    let bits: Int
    let first: UInt64
    let bytes: [UInt8]
  }

  /// The lookup table, indexed by the next `width` bits.
  private let entries: [Entry]
  private let longCodes: [Long]

  /// The shared decoder.
  static let hpack = HuffmanCode()

  private init() {
    var single = [Entry](repeating: Entry(), count: 1 << Self.width)
    var longCodes: [Long] = []
    var code = 0
    var length = 0
    for (bits, bytes) in Self.lengths {
      code <<= bits - length
      length = bits
      if bits > Self.width { longCodes.append(Long(bits: bits, first: UInt64(code), bytes: bytes)) }
      for byte in bytes {
        if bits <= Self.width {
          let rest = Self.width - bits
          for entry in code << rest..<(code + 1) << rest {
            single[entry] = Entry(bits: UInt8(bits), count: 1, bytes: UInt16(byte))
          }
        }
        code += 1
      }
    }
    entries = single.indices.map { index in
      let first = single[index]
      let second = single[index << Int(first.bits) & (single.count - 1)]
      guard first.count == 1, second.count == 1, first.bits + second.bits <= Self.width else { return first }
      return Entry(bits: first.bits + second.bits, count: 2, bytes: second.bytes << 8 | first.bytes)
    }
    self.longCodes = longCodes
  }

  /// The capacity required to decode a string of `count` bytes: the shortest codes have five bits, and two bytes
  /// are written at a time.
  static func capacity(for count: Int) -> Int { count * 8 / 5 + 2 }

  /// Decodes a string.
  ///
  /// - Parameter target: A buffer of at least `capacity(for:)` bytes.
  /// - Returns: The number of decoded bytes, or nil if the string is invalid.
  func decode(_ coded: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer) -> Int? {
    entries.withUnsafeBufferPointer { entries in
      var next = target
      var offset = 0
      // The next bits, from the highest on. The bits below the first `valid` ones are zeros or later bits of the
      // string.
      var window: UInt64 = 0
      var valid = 0
      func append(_ entry: Entry) {
        next.storeBytes(of: entry.bytes.littleEndian, as: UInt16.self)
        next += Int(entry.count)
        window &<<= UInt64(entry.bits)
        valid &-= Int(entry.bits)
      }
      while true {
        window |= Self.word(at: offset, of: coded) &>> UInt64(valid)
        let loaded = min((63 &- valid) &>> 3, coded.count &- offset)
        offset &+= loaded
        valid &+= loaded &* 8
        // At least 56 bits are valid unless the string ends.
        let most = valid
        for _ in 0..<4 {
          let entry = entries[Int(window &>> UInt64(64 &- Self.width))]
          if Int(entry.bits) > valid { break }
          append(entry)
        }
        if valid < most { continue }
        // A long code or the end of the string. The padding is all ones, and so is no valid code.
        let padded = window | .max &>> UInt64(valid)
        if valid < 8, padded == .max { return next - target }
        var entry = entries[Int(padded &>> UInt64(64 &- Self.width))]
        if entry.count == 0 { entry = longCode(at: padded) }
        guard Int(entry.bits) <= valid else { return nil }
        append(entry)
      }
    }
  }

  /// Returns the eight bytes from `offset`, the first one highest, padded with zeros beyond the end.
  @inline(__always)
  private static func word(at offset: Int, of bytes: UnsafeRawBufferPointer) -> UInt64 {
    let beyond = offset &+ 8 &- bytes.count
    if beyond <= 0 { return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    if beyond >= 8 { return 0 }
    if bytes.count >= 8 {
      let last = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self))
      return last &<< UInt64(8 &* beyond)
    }
    return bytes[offset...].reduce(0) { $0 &<< 8 | UInt64($1) } &<< UInt64(8 &* beyond)
  }

  /// Decodes the code of more than `width` bits at the top of `window`.
  private func longCode(at window: UInt64) -> Entry {
    for codes in longCodes {
      let code = window >> UInt64(64 - codes.bits)
      if code < codes.first + UInt64(codes.bytes.count) {
        return Entry(bits: UInt8(codes.bits), count: 1, bytes: UInt16(codes.bytes[Int(code - codes.first)]))
      }
    }
    return Entry()
  }
}
