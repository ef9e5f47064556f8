internal import Foundation

/// Comparisons on bytes as they came off the wire, without a `String` between.
extension UnsafeRawBufferPointer {
  /// The same bytes.
  func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let mine = baseAddress, let theirs = other.baseAddress else { return count == 0 }
    return memcmp(mine, theirs, count) == 0
  }

  /// The same bytes as an ASCII literal.
  func equals(_ literal: StaticString) -> Bool {
    guard count == literal.utf8CodeUnitCount else { return false }
    guard let baseAddress else { return true }
    return memcmp(baseAddress, literal.utf8Start, count) == 0
  }

  /// The same bytes as a text's UTF-8.
  func equals(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { equals(UnsafeRawBufferPointer($0)) }
  }

  /// Begins with an ASCII literal.
  func hasPrefix(_ literal: StaticString) -> Bool {
    guard count >= literal.utf8CodeUnitCount, let baseAddress else { return literal.utf8CodeUnitCount == 0 }
    return memcmp(baseAddress, literal.utf8Start, literal.utf8CodeUnitCount) == 0
  }

  /// Ends with an ASCII literal.
  func hasSuffix(_ literal: StaticString) -> Bool {
    let size = literal.utf8CodeUnitCount
    guard count >= size, let baseAddress else { return size == 0 }
    return memcmp(baseAddress + (count - size), literal.utf8Start, size) == 0
  }

  /// A part of it; `range` must lie within.
  func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }

  /// Only hexadecimal digits of any case; true for nothing.
  var isHexadecimal: Bool {
    // One pass without an early way out, which the compiler turns into vector code.
    var bad: UInt8 = 0
    for byte in self {
      let isDigit = byte &- 0x30 < 10
      let isLetter = (byte | 0x20) &- 0x61 < 6
      bad |= isDigit || isLetter ? 0 : 1
    }
    return bad == 0
  }

  /// A UUID in its canonical form, 8-4-4-4-12 hexadecimal digits of any case.
  var isCanonicalUUID: Bool {
    guard count == 36, self[8] == 0x2d, self[13] == 0x2d, self[18] == 0x2d, self[23] == 0x2d else { return false }
    return part(0..<8).isHexadecimal && part(9..<13).isHexadecimal && part(14..<18).isHexadecimal
      && part(19..<23).isHexadecimal && part(24..<36).isHexadecimal
  }

  /// A whole number written in decimal digits alone that fits; `nil` for anything else.
  var wholeNumber: Int64? {
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
