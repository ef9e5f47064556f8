import APNSMockHTTPMessage
import Testing

@testable import APNSMockRules

/// Comparisons of bytes received from the network.
@Suite struct BytesTests {
  /// Compares the test of eight bytes at once with a test of each byte: every byte value at every position.
  @Test(arguments: [0, 1, 7, 8, 9, 16, 23])
  func wordsAreTestedLikeTheirBytes(count: Int) {
    func isDigit(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit && byte < 0x80 }
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: count)
    #expect(text.withUnsafeBytes { $0.isHexadecimal })
    for position in text.indices {
      for byte in UInt8.min...UInt8.max {
        var other = text
        other[position] = byte
        let found = other.withUnsafeBytes { $0.isHexadecimal }
        #expect(found == isDigit(byte), "\(count) bytes, \(byte) at \(position)")
      }
    }
  }

  /// Compares hexadecimal digits with the bytes they encode: every byte value at every position, in both cases.
  @Test(arguments: [0, 1, 3, 4, 5, 8, 31, 32])
  func digitsAreComparedWithTheirBytes(count: Int) {
    let values = (0..<count).map { UInt8(truncatingIfNeeded: 0x9A &+ 0x35 &* $0) }
    for position in values.indices {
      for byte in UInt8.min...UInt8.max {
        var other = values
        other[position] = byte
        let text = other.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        for digits in [Array(text.utf8), Array(text.uppercased().utf8)] {
          let isEqual = digits.withUnsafeBytes { digits in values.withUnsafeBytes { digits.encodeHexadecimally($0) } }
          #expect(isEqual == (byte == values[position]), "\(text), another at \(position)")
        }
      }
    }
    let longer = [UInt8](repeating: UInt8(ascii: "0"), count: 2 * count + 2)
    #expect(!longer.withUnsafeBytes { digits in values.withUnsafeBytes { digits.encodeHexadecimally($0) } })
  }

  /// Literals of each length that is compared by separate code.
  @Test(
    arguments: [
      "", "a", "te", "abc", ":path", ":method", "apns-id1", "apns-expiration", "apns-collapse-id",
      "x-more-than-two-words",
    ] as [StaticString])
  func literalsAreComparedCompletely(_ literal: StaticString) {
    let text = literal.withUTF8Buffer { Array($0) }
    #expect(text.withUnsafeBytes { $0.equals(literal) })
    #expect(!(text + [0]).withUnsafeBytes { $0.equals(literal) })
    for position in text.indices {
      var other = text
      other[position] ^= 1
      #expect(!other.withUnsafeBytes { $0.equals(literal) }, "another byte at \(position)")
      #expect(!text[..<position].withUnsafeBytes { $0.equals(literal) }, "only \(position) bytes")
    }
  }

  @Test(arguments: [(0, 0), (0x20, 0x7e), (0x2d, 0x2d), (0x30, 0x39), (0, 0x7f)] as [(UInt8, UInt8)])
  func bytesOfARangeAreMarked(first: UInt8, last: UInt8) {
    for byte in UInt8.min...0x7f {
      // Neighbors at both ends of the range must neither be marked nor change the mark of this byte.
      for neighbor: UInt8 in [0, 0x7f] {
        let word = UInt64(neighbor) | UInt64(byte) << 24 | UInt64(neighbor) << 56
        let mark = word.marks(from: first, through: last) >> 24 & 0xff
        #expect(mark == ((first...last).contains(byte) ? 0x80 : 0), "\(byte) beside \(neighbor)")
      }
    }
  }

  @Test(arguments: [0, 0x0123_4567, 0x89ab_cdef, 0xa9b8_7f60, .max] as [UInt32])
  func hexadecimalDigitsAreInTextOrder(number: UInt32) {
    let text = String(number, radix: 16)
    let padded = String(repeating: "0", count: 8 - text.count) + text
    let small = UInt64(digitsOf: number, ten: UInt8(ascii: "a"))
    let capital = UInt64(digitsOf: number, ten: UInt8(ascii: "A"))
    #expect(withUnsafeBytes(of: small) { $0.elementsEqual(padded.utf8) })
    #expect(withUnsafeBytes(of: capital) { $0.elementsEqual(padded.uppercased().utf8) })
  }
}
