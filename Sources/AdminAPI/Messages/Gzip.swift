/// Compresses texts to the gzip format (RFC 1952) with one block of dynamic Huffman codes (RFC 1951).
enum Gzip {
  /// The smallest match that is replaced by a reference, in bytes.
  private static let minMatch = 4
  /// The number of earlier places that are compared for each place: more take longer and gain little.
  private static let maxProbes = 12

  /// A literal byte, or a reference to earlier bytes.
  private struct Token {
    /// The literal, or the length of the reference.
    let value: Int
    /// The distance of the reference; 0 for a literal.
    let distance: Int
  }

  /// Returns the compressed text.
  static func compressed(_ text: [UInt8]) -> [UInt8] {
    let tokens = text.withUnsafeBufferPointer { Self.tokens(of: $0) }
    var literals = [Int](repeating: 0, count: 286)
    var distances = [Int](repeating: 0, count: 30)
    literals[DeflateFormat.endOfBlock] = 1
    for token in tokens {
      guard token.distance > 0 else { literals[token.value] += 1; continue }
      literals[DeflateFormat.length(token.value).symbol] += 1
      distances[DeflateFormat.distance(token.distance).symbol] += 1
    }
    // A code of one symbol is incomplete, which not every reader accepts.
    literals[0] = max(1, literals[0])
    for symbol in 0..<2 { distances[symbol] = max(1, distances[symbol]) }
    let literalCode = HuffmanCode(frequencies: literals)
    let distanceCode = HuffmanCode(frequencies: distances)

    // No name, no time, unknown system.
    var bits = BitWriter([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
    bits.write(0b101, count: 3)  // the last block, dynamic codes
    bits.write(literals.count - 257, count: 5)
    bits.write(distances.count - 1, count: 5)
    bits.write(19 - 4, count: 4)
    // The code lengths have a code themselves: here each of 0 to 15 is its own number of four bits. The order is that of RFC
    // 1951, section 3.2.7, whose first three symbols are repetitions.
    for index in 0..<19 { bits.write(index < 3 ? 0 : 4, count: 3) }
    for length in literalCode.lengths + distanceCode.lengths { bits.write(reversed: length, count: 4) }
    for token in tokens {
      if token.distance > 0 {
        bits.write(length: token.value, distance: token.distance, literalCode, distanceCode)
      } else {
        bits.write(literalCode, token.value)
      }
    }
    bits.write(literalCode, DeflateFormat.endOfBlock)
    var bytes = bits.finish()
    for number in [checksum(text), UInt32(truncatingIfNeeded: text.count)] {
      for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
    }
    return bytes
  }

  private static func tokens(of text: UnsafeBufferPointer<UInt8>) -> [Token] {
    var tokens: [Token] = []
    tokens.reserveCapacity(text.count / 3)
    // The newest place of each hash, and for each place the one before it with the same hash.
    var newest = [Int32](repeating: -1, count: 1 << 15)
    var earlier = [Int32](repeating: -1, count: text.count)
    newest.withUnsafeMutableBufferPointer { newest in
      earlier.withUnsafeMutableBufferPointer { earlier in
        func insert(_ place: Int) {
          guard place + minMatch <= text.count else { return }
          let key = hash(text, place)
          earlier[place] = newest[key]
          newest[key] = Int32(place)
        }
        var place = 0
        while place < text.count {
          var (best, distance) = (0, 0)
          if place + minMatch <= text.count {
            let limit = min(DeflateFormat.maxMatch, text.count - place)
            var candidate = Int(newest[hash(text, place)])
            var probes = maxProbes
            while candidate >= 0, place - candidate <= DeflateFormat.maxDistance, probes > 0 {
              var length = 0
              while length < limit, text[candidate + length] == text[place + length] { length += 1 }
              if length > best { (best, distance) = (length, place - candidate) }
              candidate = Int(earlier[candidate])
              probes -= 1
            }
          }
          if best < minMatch { (best, distance) = (1, 0) }
          tokens.append(Token(value: distance > 0 ? best : Int(text[place]), distance: distance))
          for inserted in place..<place + best { insert(inserted) }
          place += best
        }
      }
    }
    return tokens
  }

  private static func hash(_ text: UnsafeBufferPointer<UInt8>, _ place: Int) -> Int {
    var word: UInt32 = 0
    for offset in 0..<minMatch { word = word << 8 | UInt32(text[place + offset]) }
    return Int((word &* 2_654_435_761) >> 17)
  }

  /// Returns the CRC-32 of RFC 1952, section 8.
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    let table = (0..<256 as Range<UInt32>).map { index in
      (0..<8).reduce(index) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1 }
    }
    return ~bytes.reduce(~0) { table[Int(($0 ^ UInt32($1)) & 0xff)] ^ $0 >> 8 }
  }
}
