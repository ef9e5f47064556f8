/// Compresses bytes in the DEFLATE format (RFC 1951), in one block with the fixed Huffman codes.
///
/// Looks at one earlier position for each match, which suffices for records of pushes: they repeat most of the one before.
struct Deflate {
  private static let minMatch = 4
  private static let hashBits = 15
  /// The number of bytes that are kept together in memory.
  private static let windowLimit = 1 << 20

  private var output = BitWriter()
  private var window: [UInt8] = []
  /// For each hash of four bytes their last position in `window`; -1 for none.
  private var last = [Int32](repeating: -1, count: 1 << hashBits)

  /// The compressed bytes so far, without up to seven bits.
  var bytes: [UInt8] { output.bytes }

  init() {
    // The last block, with fixed codes.
    output.write(0b011, count: 3)
  }

  /// Compresses the next bytes.
  mutating func append(_ input: [UInt8]) {
    if window.count > Self.windowLimit {
      let removed = window.count - DeflateFormat.maxDistance
      window.removeFirst(removed)
      for index in last.indices { last[index] = max(-1, last[index] - Int32(removed)) }
    }
    let start = window.count
    window += input
    let (literalCode, distanceCode) = (DeflateFormat.fixedLiterals, DeflateFormat.fixedDistances)
    var (table, position) = ([Int32](), start)
    // Not a copy.
    swap(&table, &last)
    let window = window
    window.withUnsafeBufferPointer { text in
      table.withUnsafeMutableBufferPointer { table in
        while position < text.count {
          guard position + Self.minMatch <= text.count else {
            output.write(literalCode, Int(text[position]))
            position += 1
            continue
          }
          let hash = Self.hash(text, position)
          let candidate = Int(table[hash])
          table[hash] = Int32(truncatingIfNeeded: position)
          var length = 0
          if candidate >= 0, position - candidate <= DeflateFormat.maxDistance {
            let limit = min(DeflateFormat.maxMatch, text.count - position)
            while length < limit, text[candidate + length] == text[position + length] { length += 1 }
          }
          guard length >= Self.minMatch else {
            output.write(literalCode, Int(text[position]))
            position += 1
            continue
          }
          output.write(length: length, distance: position - candidate, literalCode, distanceCode)
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
    output.write(DeflateFormat.fixedLiterals, DeflateFormat.endOfBlock)
    return output.finish()
  }

  private static func hash(_ text: UnsafeBufferPointer<UInt8>, _ position: Int) -> Int {
    let word =
      UInt32(text[position]) | UInt32(text[position + 1]) << 8 | UInt32(text[position + 2]) << 16
      | UInt32(text[position + 3]) << 24
    return Int((word &* 0x9E37_79B1) >> UInt32(32 - hashBits))
  }
}
