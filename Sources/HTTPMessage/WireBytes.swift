internal import APNSMockPlatformLibc

/// Tests and conversions of received bytes without creating a `String`. Most process eight bytes at a time.
extension UnsafeRawBufferPointer {
  /// Returns whether tests hold for all bytes.
  ///
  /// - Parameters:
  ///   - byte: The test of one byte, used for fewer than eight bytes.
  ///   - word: The test of eight bytes at once. It may see some bytes twice.
  @inlinable @inline(__always)
  package func allSatisfy(byte: (UInt8) -> Bool, word: (UInt64) -> Bool) -> Bool {
    guard count >= 8 else { return allSatisfy(byte) }
    var index = 0
    while index &+ 8 <= count {
      guard word(self.word(at: index)) else { return false }
      index &+= 8
    }
    return word(self.word(at: count &- 8))
  }

  /// Returns the eight bytes from `offset` as a little-endian number.
  @inlinable @inline(__always)
  package func word(at offset: Int) -> UInt64 {
    UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Returns whether the bytes equal those of `other`.
  package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let mine = baseAddress, let theirs = other.baseAddress else { return count == 0 }
    return memcmp(mine, theirs, count) == 0
  }

  /// Returns whether the bytes equal an ASCII literal.
  @inlinable @inline(__always)
  package func equals(_ literal: StaticString) -> Bool {
    guard count == literal.utf8CodeUnitCount else { return false }
    let other = UnsafeRawBufferPointer(start: literal.utf8Start, count: count)
    // Most names and values have 4 to 16 bytes, compared as two possibly overlapping words. Those of the literal are
    // known at compile time.
    switch count {
    case 8...16: return hasEqualWords(UInt64.self, of: other, at: 0, and: count &- 8)
    case 4..<8: return hasEqualWords(UInt32.self, of: other, at: 0, and: count &- 4)
    default: return elementsEqual(other)
    }
  }

  /// Returns whether the words at two offsets are the same in both buffers.
  @inlinable @inline(__always)
  func hasEqualWords<Word: FixedWidthInteger & BitwiseCopyable>(
    _: Word.Type, of other: UnsafeRawBufferPointer, at first: Int, and second: Int
  ) -> Bool {
    loadUnaligned(fromByteOffset: first, as: Word.self) == other.loadUnaligned(fromByteOffset: first, as: Word.self)
      && loadUnaligned(fromByteOffset: second, as: Word.self)
        == other.loadUnaligned(fromByteOffset: second, as: Word.self)
  }

  /// Returns whether the bytes are `values` in hexadecimal digits of either case. Only valid for hexadecimal digits:
  /// other bytes may count as the same values.
  package func encodeHexadecimally(_ values: UnsafeRawBufferPointer) -> Bool {
    guard count == 2 * values.count else { return false }
    guard values.count >= 4 else {
      return values.indices.allSatisfy { self[2 * $0].digitValue << 4 | self[2 * $0 + 1].digitValue == values[$0] }
    }
    var index = 0
    while index &+ 4 <= values.count {
      guard isEncoded(values, at: index) else { return false }
      index &+= 4
    }
    // The last four bytes, which may overlap the previous ones.
    return isEncoded(values, at: values.count &- 4)
  }

  /// Returns whether eight digits encode the four bytes of `values` from `offset`.
  private func isEncoded(_ values: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    // The low half of the byte of A or a is 1; bit 6 is set in letters only.
    let digits = word(at: 2 &* offset)
    let nibbles = digits & 0x0f0f_0f0f_0f0f_0f0f &+ (digits >> 6 & 0x0101_0101_0101_0101) &* 9
    var bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff
    bytes = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff
    let value = UInt32(truncatingIfNeeded: bytes | bytes >> 16)
    return value == UInt32(littleEndian: values.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// Returns whether no byte is 0x7f or less than `first`, which is at most 0x7f. 0x20 excludes control characters,
  /// 0x21 also spaces. Bytes from 0x80 are allowed.
  @inlinable
  package func isText(from first: UInt8) -> Bool {
    guard count >= 8 else { return allSatisfy { $0 >= first && $0 != 0x7f } }
    // Without a branch per word, the compiler vectorizes the loop.
    var marks = UInt64.highBits
    func check(at offset: Int) {
      let word = word(at: offset)
      marks &= (word & ~.highBits).marks(from: first, through: 0x7e) | word
    }
    for index in 0..<count / 8 { check(at: 8 &* index) }
    check(at: count &- 8)
    return marks == .highBits
  }

  /// The value of decimal digits; nil if there are other bytes, none at all, or the number does not fit.
  package var wholeNumber: Int64? {
    if isEmpty { return nil }
    var number: Int64 = 0
    for byte in self {
      let digit = byte &- 0x30
      guard digit < 10 else { return nil }
      let (tens, tooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, stillTooLarge) = tens.addingReportingOverflow(Int64(digit))
      guard !tooLarge, !stillTooLarge else { return nil }
      number = sum
    }
    return number
  }
}

/// Operations on eight bytes at once.
extension UInt64 {
  /// The highest bit of each byte.
  @inlinable @inline(__always)
  package static var highBits: UInt64 { 0x8080_8080_8080_8080 }

  /// The bit of each byte that is set in lower-case letters and in digits but not in upper-case letters.
  @inlinable @inline(__always)
  package static var lowercaseBits: UInt64 { 0x2020_2020_2020_2020 }

  /// Returns the highest bit of each byte that is in a range. All bytes and both bounds must be below 0x80.
  ///
  /// Adding `0x80 - first` sets the highest bit of a byte that is at least `first`; adding `0x7f - last` sets it for
  /// a byte that is greater than `last`. Neither addition carries into the next byte.
  @inlinable @inline(__always)
  package func marks(from first: UInt8, through last: UInt8) -> UInt64 {
    let each: UInt64 = 0x0101_0101_0101_0101
    return (self &+ each &* UInt64(0x80 &- first)) & ~(self &+ each &* UInt64(0x7f &- last)) & .highBits
  }

  /// Creates the eight hexadecimal digits of a number in memory order.
  ///
  /// - Parameter ten: The digit for ten, `a` or `A`; the digits for eleven to fifteen follow it.
  @inlinable @inline(__always)
  package init(digitsOf number: UInt32, ten: UInt8) {
    // Spread the half bytes into bytes; the highest one is first in the result.
    var digits = UInt64(number)
    digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
    digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    // Half bytes from ten are letters: adding six carries into the next half.
    let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    let distance = UInt64(ten &- UInt8(ascii: "9") &- 1)
    self = (digits &+ 0x3030_3030_3030_3030 &+ letters &* distance).bigEndian
  }
}

extension UInt8 {
  /// The value of a hexadecimal digit of either case.
  fileprivate var digitValue: UInt8 { self & 0xf &+ (self >> 6) &* 9 }
}
