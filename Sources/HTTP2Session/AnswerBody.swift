/// The body of an answer on its way out, in the parts in which it leaves.
struct AnswerBody {
  /// What nghttp2 is given next.
  enum Step {
    /// So many bytes; END_STREAM goes with them if they are the last.
    case bytes(Int, isLast: Bool)
    /// Nothing before another part is let go.
    case held
    /// RST_STREAM with this code in place of an end.
    case cutShort(UInt32)
  }

  /// The part whose turn it is. Nearly every body has this one alone, and needs no array of parts.
  private var part: [UInt8]
  /// The parts after it.
  private var rest: ArraySlice<[UInt8]> = []
  private let count: Int
  private let resetCode: UInt32?
  /// How many parts may leave.
  private var released: Int
  private var index = 0
  private var offset = 0

  /// A body that leaves as a whole.
  init(_ body: [UInt8]) {
    part = body
    count = 1
    resetCode = nil
    released = .max
  }

  /// - Parameters:
  ///   - isHeld: whether each part waits for its `release`.
  ///   - resetCode: how the stream is reset after the last part; nil for an orderly end.
  init(parts: [[UInt8]], isHeld: Bool, resetCode: UInt32?) {
    part = parts.first ?? []
    rest = parts.dropFirst()
    count = parts.count
    self.resetCode = resetCode
    released = isHeld ? 0 : .max
  }

  /// Whether something waits for `release`. An answer without parts still has its end to give.
  var isHeld: Bool { released < max(count, 1) }

  /// Lets one more part go.
  mutating func release() {
    if isHeld { released += 1 }
  }

  /// Copies what fits of the part whose turn it is.
  mutating func copyNext(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Step {
    guard index < count else {
      if isHeld { return .held }
      return resetCode.map { .cutShort($0) } ?? .bytes(0, isLast: true)
    }
    guard index < released else { return .held }
    let size = min(buffer.count, part.count - offset)
    part.withUnsafeBufferPointer { part in
      _ = buffer.update(fromContentsOf: UnsafeBufferPointer(rebasing: part[offset..<offset + size]))
    }
    offset += size
    if offset == part.count {
      index += 1
      offset = 0
      part = rest.popFirst() ?? []
    }
    return .bytes(size, isLast: index == count && resetCode == nil)
  }
}
