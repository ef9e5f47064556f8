import APNSMockTestSupport
import Testing

@testable import APNSMockNotation

/// The search for sixteen positions at once, compared with a plain search.
@Suite struct LiteralSearchTests {
  /// Returns the first position of `text` in `bytes`, found by comparing it at each position.
  static func firstPosition(of text: [UInt8], in bytes: [UInt8], foldsCase: Bool) -> Int? {
    func fold(_ byte: UInt8) -> UInt8 { foldsCase && (0x41...0x5A).contains(byte) ? byte + 0x20 : byte }
    let (text, bytes) = (text.map(fold), bytes.map(fold))
    return (0...max(0, bytes.count - text.count)).first { bytes.dropFirst($0).starts(with: text) }
  }

  static func expectSame(
    _ text: [UInt8], in bytes: [UInt8], foldsCase: Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = bytes.withUnsafeBytes { LiteralSearch(text, foldsCase: foldsCase).firstPosition(in: $0) }
    let expected = firstPosition(of: text, in: bytes, foldsCase: foldsCase)
    if found != expected {
      let (text, bytes) = (String(decoding: text, as: UTF8.self), String(decoding: bytes, as: UTF8.self))
      Issue.record("\(text) in \(bytes): \(found as Any), not \(expected as Any)", sourceLocation: sourceLocation)
    }
  }

  /// Texts at every position of bytes whose length is around one, four and five blocks, in both cases.
  @Test(arguments: ["k", "Kz", "Order", "order-shipped-77", "{\"title\":\"Grüße", "aAaAaAaAaAaAaAaAaAaAaAaA"])
  func findsAtEveryPosition(text: String) {
    let text = Array(text.utf8)
    for count in [text.count, 15, 16, 17, 31, 32, 33, 63, 64, 65, 79, 80, 81, 97] where count >= text.count {
      for position in 0...count - text.count {
        var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: count)
        bytes.replaceSubrange(position..<position + text.count, with: text)
        for changed in [bytes, Array(String(decoding: bytes, as: UTF8.self).uppercased().utf8)] {
          for foldsCase in [true, false] { Self.expectSame(text, in: changed, foldsCase: foldsCase) }
        }
        // All but the last byte, and not beyond the end.
        let short = Array(bytes.dropLast())
        Self.expectSame(text, in: short, foldsCase: true)
        bytes[position + text.count - 1] = UInt8(ascii: "#")
        Self.expectSame(text, in: bytes, foldsCase: true)
      }
    }
  }

  /// Bytes outside of the buffer are not found, although they are in the same memory.
  @Test func staysWithinBounds() {
    let bytes = Array("xxorderxxxxxxxxxxxxxxxxxxxxxxxxxxxxxorderxx".utf8)
    let search = LiteralSearch("order".utf8, foldsCase: true)
    bytes.withUnsafeBytes { bytes in
      for start in 3...36 {
        for end in start...40 {
          #expect(search.firstPosition(in: UnsafeRawBufferPointer(rebasing: bytes[start..<end])) == nil)
        }
      }
    }
  }

  /// Only letters are folded: the bytes next to them in ASCII differ from others in the same bit.
  @Test func foldsLettersOnly() {
    for byte in UInt8.min...UInt8.max {
      for other in [byte, byte ^ 0x20] {
        let bytes = [UInt8](repeating: UInt8(ascii: "-"), count: 40) + [other]
        Self.expectSame([byte], in: bytes, foldsCase: true)
        Self.expectSame([byte], in: bytes, foldsCase: false)
      }
    }
  }

  /// Generated texts of few letters, so that parts of them occur often.
  @Test func agreesWithAPlainSearch() {
    var generator = SplitMix(state: 4711)
    for _ in 0..<5000 {
      let letters = Array("abAB\"é".utf8.prefix(Int.random(in: 1...7, using: &generator)))
      func word(_ counts: ClosedRange<Int>) -> [UInt8] {
        (0..<Int.random(in: counts, using: &generator)).map { _ in letters.randomElement(using: &generator) ?? 0 }
      }
      Self.expectSame(word(0...9), in: word(0...150), foldsCase: Bool.random(using: &generator))
    }
  }

  /// A text that almost occurs everywhere takes linear time.
  @Test func hostileTextsAreFast() {
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: 2000) + [UInt8(ascii: "e")]
    var bytes = [UInt8]()
    while bytes.count < 2_000_000 { bytes += [UInt8](repeating: UInt8(ascii: "a"), count: 1999) + [UInt8(ascii: "e")] }
    Self.expectNothing(text, in: bytes)
    Self.expectNothing(Array(text.reversed()), in: bytes)
  }

  private static func expectNothing(_ text: [UInt8], in bytes: [UInt8]) {
    #expect(bytes.withUnsafeBytes { LiteralSearch(text, foldsCase: true).firstPosition(in: $0) } == nil)
  }

  @Test func findsAByte() {
    for count in 0...100 {
      for position in 0..<count {
        var bytes = [UInt8](repeating: 0x5D, count: count)
        bytes[position] = 0x5C
        for start in [0, 1, position, position + 1, count] {
          let found = bytes.withUnsafeBytes { $0.firstPosition(of: 0x5C, from: start) }
          #expect(found == (start <= position ? position : nil))
        }
      }
    }
  }
}
