/// What the DEFLATE format defines (RFC 1951): the limits of references to earlier bytes, and their symbols.
enum DeflateFormat {
  static let maxMatch = 258
  static let maxDistance = 32 * 1024
  static let endOfBlock = 256

  /// The code of literals and lengths, and that of distances, of a block with fixed codes (section 3.2.6).
  static let fixedLiterals = HuffmanCode(
    lengths: [Int](repeating: 8, count: 144) + [Int](repeating: 9, count: 112) + [Int](repeating: 7, count: 24)
      + [Int](repeating: 8, count: 8))
  static let fixedDistances = HuffmanCode(lengths: [Int](repeating: 5, count: 32))

  /// Returns the symbol of a match's length and its extra bits (RFC 1951, section 3.2.5).
  static func length(_ length: Int) -> (symbol: Int, extra: Int, bits: Int) {
    if length == maxMatch { return (285, 0, 0) }
    let value = length - 3
    guard value >= 8 else { return (257 + value, 0, 0) }
    let bits = Int.bitWidth - value.leadingZeroBitCount - 3
    return (257 + bits * 4 + value >> bits, value & (1 << bits - 1), bits)
  }

  /// Returns the symbol of a match's distance and its extra bits (RFC 1951, section 3.2.5).
  static func distance(_ distance: Int) -> (symbol: Int, extra: Int, bits: Int) {
    let value = distance - 1
    guard value >= 4 else { return (value, 0, 0) }
    let bits = Int.bitWidth - value.leadingZeroBitCount - 2
    return (bits * 2 + value >> bits, value & (1 << bits - 1), bits)
  }
}

/// A canonical Huffman code (RFC 1951, section 3.2.2) of at most 15 bits per symbol.
struct HuffmanCode {
  private static let maxLength = 15

  /// The number of bits of each symbol; 0 for a symbol that does not occur.
  private(set) var lengths: [Int]
  /// The code of each symbol, with its highest bit first in the output: as the lowest here.
  private(set) var codes: [Int]

  init(frequencies: [Int]) { self.init(lengths: Self.lengths(frequencies)) }

  init(lengths: [Int]) {
    self.lengths = lengths
    var next = 0
    codes = [Int](repeating: 0, count: lengths.count)
    for length in 1...Self.maxLength {
      next <<= 1
      for (symbol, own) in lengths.enumerated() where own == length {
        codes[symbol] = Self.reversed(next, length)
        next += 1
      }
    }
  }

  /// Returns the lowest bits of a number in the opposite order.
  fileprivate static func reversed(_ value: Int, _ count: Int) -> Int {
    (0..<count).reduce(0) { $0 | (value >> $1 & 1) << (count - 1 - $1) }
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
struct BitWriter {
  private(set) var bytes: [UInt8]
  private var pending = 0
  private var count = 0

  init(_ bytes: [UInt8] = []) { self.bytes = bytes }

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
    write(HuffmanCode.reversed(code, bits), count: bits)
  }

  mutating func write(_ code: HuffmanCode, _ symbol: Int) {
    write(code.codes[symbol], count: code.lengths[symbol])
  }

  /// Writes a reference to earlier bytes.
  mutating func write(length: Int, distance: Int, _ literalCode: HuffmanCode, _ distanceCode: HuffmanCode) {
    let length = DeflateFormat.length(length)
    write(literalCode, length.symbol)
    write(length.extra, count: length.bits)
    let distance = DeflateFormat.distance(distance)
    write(distanceCode, distance.symbol)
    write(distance.extra, count: distance.bits)
  }

  /// Ends the last byte.
  mutating func finish() -> [UInt8] {
    if count > 0 { write(0, count: 8 - count) }
    return bytes
  }
}
