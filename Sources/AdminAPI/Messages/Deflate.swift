/// Compresses bytes in the DEFLATE format (RFC 1951), in one block with the fixed Huffman codes.
///
/// Looks at one earlier position for each match, which suffices for records of pushes: they repeat most of the one before.
struct Deflate {
  private static let minMatch = 4, maxMatch = 258, maxDistance = 32_768
  private static let hashBits = 15
  /// The number of bytes that are kept together in memory.
  private static let windowLimit = 1 << 20

  /// The compressed bytes so far, without up to seven bits.
  private(set) var bytes: [UInt8] = []
  private var bits: UInt64 = 0
  private var bitCount: UInt64 = 0
  private var window: [UInt8] = []
  /// For each hash of four bytes their last position in `window`; -1 for none.
  private var last = [Int32](repeating: -1, count: 1 << hashBits)

  init() {
    // The last block, with fixed codes.
    write(0b011, 3)
  }

  /// Compresses the next bytes.
  mutating func append(_ input: [UInt8]) {
    if window.count > Self.windowLimit {
      let removed = window.count - Self.maxDistance
      window.removeFirst(removed)
      for index in last.indices { last[index] = max(-1, last[index] - Int32(removed)) }
    }
    let start = window.count
    window += input
    let codes = Self.codes
    var (table, position) = ([Int32](), start)
    // Not a copy.
    swap(&table, &last)
    let window = window
    window.withUnsafeBufferPointer { text in
      table.withUnsafeMutableBufferPointer { table in
        while position < text.count {
          guard position + Self.minMatch <= text.count else {
            write(codes.literals[Int(text[position])])
            position += 1
            continue
          }
          let hash = Self.hash(text, position)
          let candidate = Int(table[hash])
          table[hash] = Int32(truncatingIfNeeded: position)
          var length = 0
          if candidate >= 0, position - candidate <= Self.maxDistance {
            let limit = min(Self.maxMatch, text.count - position)
            while length < limit, text[candidate + length] == text[position + length] { length += 1 }
          }
          guard length >= Self.minMatch else {
            write(codes.literals[Int(text[position])])
            position += 1
            continue
          }
          writeMatch(length, position - candidate, codes)
          // Some positions within the match, so that later ones find them.
          var next = position + 1
          position += length
          while next < position, next + Self.minMatch <= text.count {
            table[Self.hash(text, next)] = Int32(truncatingIfNeeded: next)
            next += 2
          }
        }
      }
    }
    swap(&table, &last)
  }

  /// Ends the stream and returns all of it.
  mutating func finish() -> [UInt8] {
    write(Self.codes.literals[256])
    write(0, 7)
    return bytes
  }

  private static func hash(_ text: UnsafeBufferPointer<UInt8>, _ position: Int) -> Int {
    let word =
      UInt32(text[position]) | UInt32(text[position + 1]) << 8 | UInt32(text[position + 2]) << 16
      | UInt32(text[position + 3]) << 24
    return Int((word &* 0x9E37_79B1) >> UInt32(32 - hashBits))
  }

  // MARK: - Codes

  private struct Code {
    var bits: UInt64 = 0
    var count: UInt64 = 0
  }

  /// The fixed codes of literals, lengths and distances, with their bits in the order in which they are written.
  private struct Codes {
    var literals: [Code] = []
    /// For each length of a match its code and extra bits.
    var lengths = [Code](repeating: Code(), count: Deflate.maxMatch + 1)
    /// For each distance code its bits, the first distance and the number of extra bits.
    var distances: [(code: Code, first: Int, extra: UInt64)] = []

    init() {
      for symbol in 0..<288 {
        switch symbol {
        case ..<144: literals.append(Self.code(0x30 + symbol, 8))
        case ..<256: literals.append(Self.code(0x190 + symbol - 144, 9))
        case ..<280: literals.append(Self.code(symbol - 256, 7))
        default: literals.append(Self.code(0xC0 + symbol - 280, 8))
        }
      }
      var length = 3
      for symbol in 257..<285 {
        let extra = symbol < 265 ? 0 : (symbol - 261) / 4
        for value in 0..<(1 << extra) where length + value < Deflate.maxMatch {
          let code = literals[symbol]
          lengths[length + value] = Code(
            bits: code.bits | UInt64(value) << code.count, count: code.count + UInt64(extra))
        }
        length += 1 << extra
      }
      lengths[Deflate.maxMatch] = literals[285]
      var distance = 1
      for symbol in 0..<30 {
        let extra = symbol < 4 ? 0 : symbol / 2 - 1
        distances.append((Self.code(symbol, 5), distance, UInt64(extra)))
        distance += 1 << extra
      }
    }

    /// Huffman codes are written from their highest bit on.
    static func code(_ value: Int, _ count: Int) -> Code {
      let reversed = (0..<count).reduce(0) { $0 | (value >> $1 & 1) << (count - 1 - $1) }
      return Code(bits: UInt64(reversed), count: UInt64(count))
    }
  }

  private static let codes = Codes()

  private mutating func writeMatch(_ length: Int, _ distance: Int, _ codes: borrowing Codes) {
    write(codes.lengths[length])
    // Two codes for each power of two.
    let high = Int.bitWidth - 1 - (distance - 1).leadingZeroBitCount
    let symbol = distance <= 4 ? distance - 1 : 2 * high + ((distance - 1) >> (high - 1) & 1)
    let (code, first, extra) = codes.distances[symbol]
    write(code)
    write(UInt64(distance - first), extra)
  }

  private mutating func write(_ code: Code) { write(code.bits, code.count) }

  private mutating func write(_ value: UInt64, _ count: UInt64) {
    bits |= value << bitCount
    bitCount += count
    while bitCount >= 8 {
      bytes.append(UInt8(truncatingIfNeeded: bits))
      bits >>= 8
      bitCount -= 8
    }
  }
}
