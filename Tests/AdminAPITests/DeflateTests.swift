import Testing

@testable import APNSMockAdminAPI

@Suite("Deflate")
struct DeflateTests {
  /// Decompresses one block with the fixed Huffman codes (RFC 1951, section 3.2.6).
  private func inflate(_ bytes: [UInt8]) -> [UInt8] {
    var (position, output) = (0, [UInt8]())
    func bit() -> Int {
      defer { position += 1 }
      return position / 8 < bytes.count ? Int(bytes[position / 8] >> UInt8(position % 8)) & 1 : 0
    }
    func number(_ count: Int) -> Int { (0..<count).reduce(0) { $0 | bit() << $1 } }
    func code(_ count: Int, from start: Int = 0) -> Int { (0..<count).reduce(start) { code, _ in code << 1 | bit() } }
    #expect(number(3) == 0b011)
    while position < bytes.count * 8 {
      var symbol = code(7)
      if symbol <= 0b0010111 {
        symbol += 256
      } else {
        symbol = code(1, from: symbol)
        switch symbol {
        case 0x30...0xBF: symbol -= 0x30
        case 0xC0...0xC7: symbol += 280 - 0xC0
        default: symbol = code(1, from: symbol) - 0x190 + 144
        }
      }
      if symbol < 256 { output.append(UInt8(symbol)) }
      if symbol == 256 { return output }
      guard symbol > 256 else { continue }
      let lengths = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
        258,
      ]
      let extra = symbol < 265 || symbol == 285 ? 0 : (symbol - 261) / 4
      let length = lengths[symbol - 257] + number(extra)
      let distanceCode = code(5)
      let distanceExtra = distanceCode < 4 ? 0 : distanceCode / 2 - 1
      let first = distanceCode < 4 ? distanceCode + 1 : (2 + distanceCode % 2) << distanceExtra + 1
      let distance = first + number(distanceExtra)
      guard distance <= output.count else {
        Issue.record("a distance beyond the beginning")
        return output
      }
      for _ in 0..<length { output.append(output[output.count - distance]) }
    }
    Issue.record("no end")
    return output
  }

  @Test("What is compressed in parts is decompressed to the same bytes")
  func roundTrip() {
    var generator = SystemRandomNumberGenerator()
    let words = (0..<200).map { _ in
      (0..<Int.random(in: 1...40, using: &generator)).map { _ in UInt8.random(in: 32...90) }
    }
    for size in [0, 1, 3, 4, 5, 100, 5_000, 200_000, 2_500_000] {
      var input: [UInt8] = []
      while input.count < size {
        input +=
          Int.random(in: 0..<50) == 0
          ? (0..<300).map { _ in UInt8.random(in: 0...255) } : words[Int.random(in: 0..<words.count)]
        if Int.random(in: 0..<100) == 0 { input += [UInt8](repeating: 7, count: 1_000) }
      }
      input = Array(input.prefix(size))
      var deflate = Deflate()
      var start = 0
      while start < size {
        let end = min(size, start + Int.random(in: 1...400_000))
        deflate.append(Array(input[start..<end]))
        start = end
      }
      let compressed = deflate.finish()
      #expect(inflate(compressed) == input)
      if size > 5_000 { #expect(compressed.count < size) }
    }
  }
}
