import Testing

@testable import APNSMockHTTP2Session

/// Huffman-coded strings (RFC 7541 section 5.2).
@Suite struct HuffmanCodeTests {
  /// RFC 7541 appendix B: the code of each byte in hexadecimal digits and its number of bits; the last entry is EOS.
  private static let appendixB = """
    1ff8/13 7fffd8/23 fffffe2/28 fffffe3/28 fffffe4/28 fffffe5/28 fffffe6/28 fffffe7/28 fffffe8/28 ffffea/24
    3ffffffc/30 fffffe9/28 fffffea/28 3ffffffd/30 fffffeb/28 fffffec/28 fffffed/28 fffffee/28 fffffef/28 ffffff0/28
    ffffff1/28 ffffff2/28 3ffffffe/30 ffffff3/28 ffffff4/28 ffffff5/28 ffffff6/28 ffffff7/28 ffffff8/28 ffffff9/28
    ffffffa/28 ffffffb/28 14/6 3f8/10 3f9/10 ffa/12 1ff9/13 15/6 f8/8 7fa/11 3fa/10 3fb/10 f9/8 7fb/11 fa/8 16/6 17/6
    18/6 0/5 1/5 2/5 19/6 1a/6 1b/6 1c/6 1d/6 1e/6 1f/6 5c/7 fb/8 7ffc/15 20/6 ffb/12 3fc/10 1ffa/13 21/6 5d/7 5e/7
    5f/7 60/7 61/7 62/7 63/7 64/7 65/7 66/7 67/7 68/7 69/7 6a/7 6b/7 6c/7 6d/7 6e/7 6f/7 70/7 71/7 72/7 fc/8 73/7
    fd/8 1ffb/13 7fff0/19 1ffc/13 3ffc/14 22/6 7ffd/15 3/5 23/6 4/5 24/6 5/5 25/6 26/6 27/6 6/5 74/7 75/7 28/6 29/6
    2a/6 7/5 2b/6 76/7 2c/6 8/5 9/5 2d/6 77/7 78/7 79/7 7a/7 7b/7 7ffe/15 7fc/11 3ffd/14 1ffd/13 ffffffc/28 fffe6/20
    3fffd2/22 fffe7/20 fffe8/20 3fffd3/22 3fffd4/22 3fffd5/22 7fffd9/23 3fffd6/22 7fffda/23 7fffdb/23 7fffdc/23
    7fffdd/23 7fffde/23 ffffeb/24 7fffdf/23 ffffec/24 ffffed/24 3fffd7/22 7fffe0/23 ffffee/24 7fffe1/23 7fffe2/23
    7fffe3/23 7fffe4/23 1fffdc/21 3fffd8/22 7fffe5/23 3fffd9/22 7fffe6/23 7fffe7/23 ffffef/24 3fffda/22 1fffdd/21
    fffe9/20 3fffdb/22 3fffdc/22 7fffe8/23 7fffe9/23 1fffde/21 7fffea/23 3fffdd/22 3fffde/22 fffff0/24 1fffdf/21
    3fffdf/22 7fffeb/23 7fffec/23 1fffe0/21 1fffe1/21 3fffe0/22 1fffe2/21 7fffed/23 3fffe1/22 7fffee/23 7fffef/23
    fffea/20 3fffe2/22 3fffe3/22 3fffe4/22 7ffff0/23 3fffe5/22 3fffe6/22 7ffff1/23 3ffffe0/26 3ffffe1/26 fffeb/20
    7fff1/19 3fffe7/22 7ffff2/23 3fffe8/22 1ffffec/25 3ffffe2/26 3ffffe3/26 3ffffe4/26 7ffffde/27 7ffffdf/27
    3ffffe5/26 fffff1/24 1ffffed/25 7fff2/19 1fffe3/21 3ffffe6/26 7ffffe0/27 7ffffe1/27 3ffffe7/26 7ffffe2/27
    fffff2/24 1fffe4/21 1fffe5/21 3ffffe8/26 3ffffe9/26 ffffffd/28 7ffffe3/27 7ffffe4/27 7ffffe5/27 fffec/20
    fffff3/24 fffed/20 1fffe6/21 3fffe9/22 1fffe7/21 1fffe8/21 7ffff3/23 3fffea/22 3fffeb/22 1ffffee/25 1ffffef/25
    fffff4/24 fffff5/24 3ffffea/26 7ffff4/23 3ffffeb/26 7ffffe6/27 3ffffec/26 3ffffed/26 7ffffe7/27 7ffffe8/27
    7ffffe9/27 7ffffea/27 7ffffeb/27 ffffffe/28 7ffffec/27 7ffffed/27 7ffffee/27 7ffffef/27 7fffff0/27 3ffffee/26
    3fffffff/30
    """
  private static let codes = appendixB.split { $0.isWhitespace }.map { entry in
    let parts = entry.split(separator: "/")
    return (code: UInt32(parts[0], radix: 16) ?? 0, bits: Int(parts[1]) ?? 0)
  }
  private static let end = 256

  /// Returns the concatenated codes of the symbols, padded with bits of one value.
  static func coded(_ symbols: [Int], filledWith fill: Int = 1, more: Int = 0) -> [UInt8] {
    var bits = symbols.flatMap { symbol in
      let (code, count) = codes[symbol]
      return (0..<count).map { Int(code >> UInt32(count - 1 - $0)) & 1 }
    }
    while bits.count % 8 != 0 { bits.append(fill) }
    bits += [Int](repeating: fill, count: more)
    return stride(from: 0, to: bits.count, by: 8).map { start in
      bits[start..<start + 8].reduce(0) { $0 << 1 | UInt8($1) }
    }
  }

  private func decoded(_ coded: [UInt8]) -> [UInt8]? {
    let room = HuffmanCode.capacity(for: coded.count)
    let guarded = room + 8
    return withUnsafeTemporaryAllocation(byteCount: guarded, alignment: 1) { target in
      target.initializeMemory(as: UInt8.self, repeating: 0xee)
      guard let start = target.baseAddress else { return nil }
      let count = coded.withUnsafeBytes { HuffmanCode.hpack.decode($0, to: start) }
      #expect(target[room...].allSatisfy { $0 == 0xee }, "something was written behind the room for \(coded.count)")
      return count.map { Array(target[..<$0]) }
    }
  }

  @Test func tableIsComplete() {
    #expect(Self.codes.count == 257)
    #expect(HuffmanCode.lengths.flatMap(\.bytes).sorted() == Array(0...255))
  }

  @Test(arguments: 0...255)
  func eachByteIsDecodedAloneAndAmongOthers(byte: Int) {
    #expect(decoded(Self.coded([byte])) == [UInt8(byte)])
    // At each bit position within a byte, at the end of the string and far from it.
    for before in 0..<12 {
      for behind in [0, 1, 3, 20] {
        let text = [Int](repeating: 0x61, count: before) + [byte] + [Int](repeating: 0x7a, count: behind)
        #expect(decoded(Self.coded(text)) == text.map(UInt8.init))
      }
    }
  }

  @Test(arguments: [
    ("C.4.1", "f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"), ("C.4.2", "a8eb10649cbf", "no-cache"),
    ("C.4.3 name", "25a849e95ba97d7f", "custom-key"), ("C.4.3 value", "25a849e95bb8e8b4bf", "custom-value"),
    ("C.6.1 status", "6402", "302"), ("C.6.1 cache-control", "aec3771a4b", "private"),
    ("C.6.1 date", "d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("C.6.1 location", "9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"),
    ("C.6.2", "640eff", "307"), ("C.6.3", "9bd9ab", "gzip"),
    (
      "C.6.3 set-cookie",
      "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
      "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
    ),
  ])
  func examplesOfTheRFC(section: String, coded: String, text: String) {
    #expect(decoded(Array(hexadecimal: coded)) == Array(text.utf8), "\(section)")
  }

  @Test func stringsOfEachLength() {
    for length in 0...300 {
      let text = (0..<length).map { 0x21 + ($0 * 7 + length) % 94 }
      #expect(decoded(Self.coded(text)) == text.map(UInt8.init))
    }
    let longest = [Int](repeating: 0x30, count: 26_000)
    #expect(decoded(Self.coded(longest))?.count == longest.count)
  }

  @Test(arguments: invalid)
  func invalidCodes(what: String, coded: [UInt8]) {
    #expect(decoded(coded) == nil, "\(what)")
  }

  private static let invalid: [(String, [UInt8])] = [
    ("the end's code", coded([end])), ("the end's code in the middle", coded([0x61, end, 0x61])),
    ("filled up with zeros", coded([0x61], filledWith: 0)), ("a byte too much", coded([0x61], more: 8)),
    ("nothing but a byte too much", [0xff]), ("eight bytes too much", coded([0x61], more: 64)),
    ("a code that is not whole", [0x1e]),
    ("a long code that is not whole", Array(coded([0x61, 0x0a]).dropLast(2))),
    ("nothing of a long code but its beginning", [0xff, 0xff, 0xfe]),
  ]
}

extension [UInt8] {
  /// Creates the bytes that hexadecimal digits describe.
  init(hexadecimal digits: String) {
    let digits = digits.compactMap(\.hexDigitValue)
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
