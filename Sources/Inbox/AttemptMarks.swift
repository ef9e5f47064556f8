/// A bit for each of some pushes, at a place by its key: what has none is not among them. Most pushes that are asked for
/// are not, and are so told from those that are without a look into a table of megabytes.
struct AttemptMarks {
  /// How many may be marked before it is time to begin anew: then one in four others has a mark too.
  static let limit = 1 << 17
  private static let bits: UInt64 = 19

  private var words: [UInt64] = []
  /// How many were marked.
  private(set) var count = 0

  /// Marks of nothing.
  init() {}

  /// Marks of these.
  init(_ keys: some Sequence<UInt64>) {
    for key in keys { insert(key) }
  }

  mutating func insert(_ key: UInt64) {
    if words.isEmpty { words = Array(repeating: 0, count: 1 << (Self.bits - 6)) }
    words[Self.word(of: key)] |= Self.bit(of: key)
    count += 1
  }

  /// Whether a push may be among them.
  func mayContain(_ key: UInt64) -> Bool { !words.isEmpty && words[Self.word(of: key)] & Self.bit(of: key) != 0 }

  private static func word(of key: UInt64) -> Int { Int(key >> (64 - bits + 6)) }

  private static func bit(of key: UInt64) -> UInt64 { 1 << (key >> (64 - bits) & 63) }
}
