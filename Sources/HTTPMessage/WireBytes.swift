/// What bytes off the wire are, without a `String` between.
///
/// Tests look at eight of them at a time: for a byte below 0x80, adding `0x80 - first` sets its highest bit if it is `first` or
/// more, and adding `0x7f - last` does if it is more than `last`; neither carries into the next byte.
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

  /// Without 0x7f, and without what is below `first`, which is 0x7f at most: from 0x20 text without control characters, from
  /// 0x21 also without spaces. Bytes from 0x80 on are text.
  @inlinable
  package func isText(from first: UInt8) -> Bool {
    guard count >= 8 else { return allSatisfy { $0 >= first && $0 != 0x7f } }
    let (high, each): (UInt64, UInt64) = (0x8080_8080_8080_8080, 0x0101_0101_0101_0101)
    let distance = each &* UInt64(0x80 &- first)
    // Without a decision for each word the compiler takes several of them at once.
    var marks = high
    func look(at offset: Int) {
      let word = word(at: offset)
      let low = word & ~high
      marks &= (low &+ distance) & ~(low &+ each) | word
    }
    for index in 0..<count / 8 { look(at: 8 &* index) }
    look(at: count &- 8)
    return marks == high
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
