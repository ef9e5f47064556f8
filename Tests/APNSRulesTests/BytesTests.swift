import Testing

@testable import APNSRules

/// How bytes off the wire are compared.
@Suite struct BytesTests {
  /// Lengths on both sides of what is compared at once.
  @Test(arguments: [0, 1, 2, 7, 8, 9, 15, 16, 17, 64, 66])
  func hexadecimalDigitsAreTheSameInAnyCase(count: Int) {
    let digits = Array("0123456789abcdefABCDEF".utf8)
    let text = (0..<count).map { digits[$0 * 7 % digits.count] }
    #expect(Self.equal(text, Array(String(decoding: text, as: UTF8.self).uppercased().utf8)))
    #expect(Self.equal(text, Array(String(decoding: text, as: UTF8.self).lowercased().utf8)))
    #expect(!Self.equal(text, text + [UInt8(ascii: "0")]))
    for position in text.indices {
      for digit in digits where digit | 0x20 != text[position] | 0x20 {
        var other = text
        other[position] = digit
        #expect(!Self.equal(text, other), "\(count) digits, another at \(position)")
      }
    }
  }

  /// Tests of many bytes at once against the same of one byte after the other: each byte at each place.
  @Test(arguments: [0, 1, 7, 8, 9, 16, 23])
  func wordsAreTestedAsTheirBytesAre(count: Int) {
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

  private static func equal(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.withUnsafeBytes { one in other.withUnsafeBufferPointer { one.equalsHexadecimal($0) } }
  }
}
