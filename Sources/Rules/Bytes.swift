internal import Foundation
package import APNSMockHTTPMessage
internal import APNSMockNotation

/// Comparisons of received bytes, without converting them to `String`.
extension UnsafeRawBufferPointer {
  /// Whether these bytes equal a text's UTF-8. Labeled because an unlabeled literal would become a `String`.
  func equals(text: String) -> Bool {
    return text.withBytes { equals($0) }
  }

  /// Whether the bytes begin with an ASCII literal.
  func hasPrefix(_ literal: StaticString) -> Bool {
    guard count >= literal.utf8CodeUnitCount, let baseAddress else { return literal.utf8CodeUnitCount == 0 }
    return memcmp(baseAddress, literal.utf8Start, literal.utf8CodeUnitCount) == 0
  }

  /// Whether the bytes end with an ASCII literal.
  func hasSuffix(_ literal: StaticString) -> Bool {
    let size = literal.utf8CodeUnitCount
    guard count >= size, size > 0, let baseAddress else { return size == 0 }
    // Most comparisons are decided by the last byte, without a call.
    return self[count - 1] == literal.utf8Start[size - 1]
      && memcmp(baseAddress + (count - size), literal.utf8Start, size) == 0
  }

  /// Whether the bytes equal an ASCII literal in lower case, ignoring the case of letters.
  func equalsIgnoringCase(_ literal: StaticString) -> Bool {
    guard count == literal.utf8CodeUnitCount else { return false }
    return zip(self, UnsafeRawBufferPointer(start: literal.utf8Start, count: count)).allSatisfy { byte, expected in
      byte == expected || (0x41...0x5A).contains(byte) && byte | 0x20 == expected
    }
  }

  /// The value of the first field with this name, for a packed header list.
  func firstField(_ name: StaticString) -> ByteRange? {
    var found: ByteRange?
    HeaderList.forEachField(in: self) { fieldName, value in
      if found == nil, part(fieldName.indices).equals(name) { found = value }
    }
    return found
  }

  /// The first index of `byte` at or after `start`.
  func firstIndex(of byte: UInt8, from start: Int) -> Int? {
    guard start < count, let baseAddress else { return nil }
    guard let found = memchr(baseAddress + start, Int32(byte), count - start) else { return nil }
    return UnsafeRawPointer(found) - baseAddress
  }

  /// Whether all bytes are hexadecimal digits of either case; true if there are none.
  var isHexadecimal: Bool {
    allSatisfy(byte: { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 6 }, word: { $0.isHexadecimal })
  }

  /// The value of a whole number in decimal digits, clamped to `Int64.max`; nil for anything else.
  var clampedWholeNumber: Int64? {
    if let wholeNumber { return wholeNumber }
    return !isEmpty && allSatisfy { $0 &- 0x30 < 10 } ? .max : nil
  }

  /// Whether this is a UUID in its canonical form, 8-4-4-4-12 hexadecimal digits of either case.
  var isCanonicalUUID: Bool {
    guard count == 36, self[8] == 0x2d, self[13] == 0x2d, self[18] == 0x2d, self[23] == 0x2d else { return false }
    // The groups of four are checked two at a time, without the hyphen between them; the last twelve digits in two
    // overlapping words.
    let middle = word(at: 9) & 0xffff_ffff | word(at: 14) << 32
    let late = word(at: 19) & 0xffff_ffff | word(at: 24) << 32
    return word(at: 0).isHexadecimal && middle.isHexadecimal && late.isHexadecimal && word(at: 28).isHexadecimal
  }
}

extension UInt64 {
  /// Whether each of the eight bytes is a hexadecimal digit of either case.
  fileprivate var isHexadecimal: Bool {
    let letters = (self | .lowercaseBits).marks(from: 0x61, through: 0x66)
    return self & .highBits == 0 && marks(from: 0x30, through: 0x39) | letters == .highBits
  }
}

/// An optional range of a header list, stored in four bytes; an `Optional<ByteRange>` takes six.
@propertyWrapper
package struct CompactRange: Sendable, Equatable {
  /// The offset in the lower half, the count in the upper half. All ones mean nil: a header list with that range
  /// would be twice as long as the maximum.
  private var bits = UInt32.max

  /// Creates an empty value.
  package init() {}

  /// The range, or nil.
  package var wrappedValue: ByteRange? {
    get { bits == .max ? nil : ByteRange(offset: Int(bits & 0xFFFF), count: Int(bits >> 16)) }
    set { bits = newValue.map { UInt32($0.offset) | UInt32($0.count) << 16 } ?? .max }
  }
}
