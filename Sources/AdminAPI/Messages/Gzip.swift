/// Compresses texts to the gzip format (RFC 1952) with one block of dynamic Huffman codes (RFC 1951).
enum Gzip {
  /// The smallest match that is replaced by a reference, in bytes.
  private static let minMatch = 4
  private static let maxMatch = 258
  private static let maxDistance = 32 * 1024
  /// The number of earlier places that are compared for each place: more take longer and gain little.
  private static let maxProbes = 12
  private static let endOfBlock = 256

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
    literals[endOfBlock] = 1
    for token in tokens {
      guard token.distance > 0 else { literals[token.value] += 1; continue }
      literals[Self.length(token.value).symbol] += 1
      distances[Self.distance(token.distance).symbol] += 1
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
      guard token.distance > 0 else {
        bits.write(literalCode, token.value)
        continue
      }
      let length = Self.length(token.value)
      bits.write(literalCode, length.symbol)
      bits.write(length.extra, count: length.bits)
      let distance = Self.distance(token.distance)
      bits.write(distanceCode, distance.symbol)
      bits.write(distance.extra, count: distance.bits)
    }
    bits.write(literalCode, endOfBlock)
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
            let limit = min(maxMatch, text.count - place)
            var candidate = Int(newest[hash(text, place)])
            var probes = maxProbes
            while candidate >= 0, place - candidate <= maxDistance, probes > 0 {
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

  /// Returns the symbol of a match's length and its extra bits (RFC 1951, section 3.2.5).
  private static func length(_ length: Int) -> (symbol: Int, extra: Int, bits: Int) {
    if length == maxMatch { return (285, 0, 0) }
    let value = length - 3
    guard value >= 8 else { return (257 + value, 0, 0) }
    let bits = Int.bitWidth - value.leadingZeroBitCount - 3
    return (257 + bits * 4 + value >> bits, value & (1 << bits - 1), bits)
  }

  /// Returns the symbol of a match's distance and its extra bits (RFC 1951, section 3.2.5).
  private static func distance(_ distance: Int) -> (symbol: Int, extra: Int, bits: Int) {
    let value = distance - 1
    guard value >= 4 else { return (value, 0, 0) }
    let bits = Int.bitWidth - value.leadingZeroBitCount - 2
    return (bits * 2 + value >> bits, value & (1 << bits - 1), bits)
  }

  /// Returns the CRC-32 of RFC 1952, section 8.
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    let table = (0..<256 as Range<UInt32>).map { index in
      (0..<8).reduce(index) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1 }
    }
    return ~bytes.reduce(~0) { table[Int(($0 ^ UInt32($1)) & 0xff)] ^ $0 >> 8 }
  }
}

/// A canonical Huffman code (RFC 1951, section 3.2.2) of at most 15 bits per symbol.
private struct HuffmanCode {
  private static let maxLength = 15

  /// The number of bits of each symbol; 0 for a symbol that does not occur.
  private(set) var lengths: [Int]
  /// The code of each symbol.
  private(set) var codes: [Int]

  init(frequencies: [Int]) {
    lengths = Self.lengths(frequencies)
    var next = 0
    codes = [Int](repeating: 0, count: lengths.count)
    for length in 1...Self.maxLength {
      next <<= 1
      for (symbol, own) in lengths.enumerated() where own == length {
        codes[symbol] = next
        next += 1
      }
    }
  }

  /// Returns the depth of each symbol in a Huffman tree. If a symbol is too deep, its frequency is raised, which makes the
  /// tree flatter.
  private static func lengths(_ frequencies: [Int]) -> [Int] {
    var parents: [Int] = []
    // By weight; the nodes after the symbols are the inner ones.
    var waiting = frequencies.enumerated().filter { $0.element > 0 }.map { (weight: $0.element, node: $0.offset) }
    parents = [Int](repeating: -1, count: frequencies.count)
    while waiting.count > 1 {
      waiting.sort { ($0.weight, $0.node) > ($1.weight, $1.node) }
      let (one, other) = (waiting.removeLast(), waiting.removeLast())
      parents[one.node] = parents.count
      parents[other.node] = parents.count
      waiting.append((one.weight + other.weight, parents.count))
      parents.append(-1)
    }
    let lengths = frequencies.indices.map { symbol in
      var (length, node) = (0, symbol)
      while parents[node] >= 0 { (length, node) = (length + 1, parents[node]) }
      return length
    }
    guard lengths.contains(where: { $0 > maxLength }) else { return lengths }
    return Self.lengths(frequencies.map { $0 > 0 ? $0 / 2 + 1 : 0 })
  }
}

/// Writes bits, the lowest first.
private struct BitWriter {
  private var bytes: [UInt8]
  private var pending = 0
  private var count = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func write(_ value: Int, count bits: Int) {
    pending |= value << count
    count += bits
    while count >= 8 {
      bytes.append(UInt8(truncatingIfNeeded: pending))
      pending >>= 8
      count -= 8
    }
  }

  /// Writes a Huffman code, whose highest bit is first.
  mutating func write(reversed code: Int, count bits: Int) {
    var reversed = 0
    for bit in 0..<bits where code >> bit & 1 == 1 { reversed |= 1 << (bits - 1 - bit) }
    write(reversed, count: bits)
  }

  mutating func write(_ code: HuffmanCode, _ symbol: Int) {
    write(reversed: code.codes[symbol], count: code.lengths[symbol])
  }

  /// Ends the last byte.
  mutating func finish() -> [UInt8] {
    if count > 0 { write(0, count: 8 - count) }
    return bytes
  }
}
