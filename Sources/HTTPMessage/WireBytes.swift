#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// What bytes off the wire are, without a `String` between. Most are looked at eight at a time.
extension UnsafeRawBufferPointer {
  /// Whether tests hold for all bytes.
  ///
  /// - Parameters:
  ///   - byte: of a single one, for a text that is shorter than a word.
  ///   - word: the same of eight at once. The last eight may be looked at twice.
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

  /// The eight bytes from `offset`, the first of them lowest.
  @inlinable @inline(__always)
  package func word(at offset: Int) -> UInt64 {
    UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The same bytes.
  package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let mine = baseAddress, let theirs = other.baseAddress else { return count == 0 }
    return memcmp(mine, theirs, count) == 0
  }

  /// The same bytes as an ASCII literal.
  @inlinable @inline(__always)
  package func equals(_ literal: StaticString) -> Bool {
    guard count == literal.utf8CodeUnitCount else { return false }
    let other = UnsafeRawBufferPointer(start: literal.utf8Start, count: count)
    // Names and their values have 4 to 16 bytes as a rule: two words that may overlap, the literal's known when this is
    // compiled.
    switch count {
    case 8...16: return hasWord(UInt64.self, of: other, at: 0, and: count &- 8)
    case 4..<8: return hasWord(UInt32.self, of: other, at: 0, and: count &- 4)
    default: return elementsEqual(other)
    }
  }

  /// Whether two words at these places are the same here and there.
  @inlinable @inline(__always)
  func hasWord<Word: FixedWidthInteger & BitwiseCopyable>(
    _: Word.Type, of other: UnsafeRawBufferPointer, at first: Int, and second: Int
  ) -> Bool {
    loadUnaligned(fromByteOffset: first, as: Word.self) == other.loadUnaligned(fromByteOffset: first, as: Word.self)
      && loadUnaligned(fromByteOffset: second, as: Word.self)
        == other.loadUnaligned(fromByteOffset: second, as: Word.self)
  }

  /// Without 0x7f, and without what is below `first`, which is 0x7f at most: from 0x20 text without control characters, from
  /// 0x21 also without spaces. Bytes from 0x80 on are text.
  @inlinable
  package func isText(from first: UInt8) -> Bool {
    guard count >= 8 else { return allSatisfy { $0 >= first && $0 != 0x7f } }
    // Without a decision for each word the compiler takes several of them at once.
    var marks = UInt64.highBits
    func look(at offset: Int) {
      let word = word(at: offset)
      marks &= (word & ~.highBits).marks(from: first, through: 0x7e) | word
    }
    for index in 0..<count / 8 { look(at: 8 &* index) }
    look(at: count &- 8)
    return marks == .highBits
  }

  /// A whole number written in decimal digits alone that fits; `nil` for anything else.
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

/// Eight bytes at once.
extension UInt64 {
  /// The highest bit of each.
  @inlinable @inline(__always)
  package static var highBits: UInt64 { 0x8080_8080_8080_8080 }

  /// The bit of each that is set in small letters and not in capital ones; in digits it is set.
  @inlinable @inline(__always)
  package static var smallLetters: UInt64 { 0x2020_2020_2020_2020 }

  /// The highest bit of each that lies in a range. All have to be below 0x80, and so have the ends of the range.
  ///
  /// Adding `0x80 - first` sets the highest bit of a byte that is `first` or more, and adding `0x7f - last` that of one which
  /// is more than `last`; neither carries into the next byte.
  @inlinable @inline(__always)
  package func marks(from first: UInt8, through last: UInt8) -> UInt64 {
    let each: UInt64 = 0x0101_0101_0101_0101
    return (self &+ each &* UInt64(0x80 &- first)) & ~(self &+ each &* UInt64(0x7f &- last)) & .highBits
  }

  /// The eight hexadecimal digits of a number as they stand in memory.
  ///
  /// - Parameter ten: the digit for ten, `a` or `A`; those for eleven and so on follow it.
  @inlinable @inline(__always)
  package init(digitsOf number: UInt32, ten: UInt8) {
    // Each half byte in a byte of its own, the highest one first in the result.
    var digits = UInt64(number)
    digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
    digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    // Those from ten on are letters: six more carries into the next half.
    let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    let distance = UInt64(ten &- UInt8(ascii: "9") &- 1)
    self = (digits &+ 0x3030_3030_3030_3030 &+ letters &* distance).bigEndian
  }
}
