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

  private let parts: [[UInt8]]
  private let resetCode: UInt32?
  /// How many parts may leave.
  private var released: Int
  private var index = 0
  private var offset = 0

  /// - Parameters:
  ///   - isHeld: whether each part waits for its `release`.
  ///   - resetCode: how the stream is reset after the last part; nil for an orderly end.
  init(parts: [[UInt8]], isHeld: Bool, resetCode: UInt32?) {
    self.parts = parts
    self.resetCode = resetCode
    released = isHeld ? 0 : .max
  }

  /// Whether something waits for `release`. An answer without parts still has its end to give.
  var isHeld: Bool { released < max(parts.count, 1) }

  /// Lets one more part go.
  mutating func release() {
    if isHeld { released += 1 }
  }

  /// Copies what fits of the part whose turn it is.
  mutating func copyNext(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Step {
    guard index < parts.count else {
      if isHeld { return .held }
      return resetCode.map { .cutShort($0) } ?? .bytes(0, isLast: true)
    }
    guard index < released else { return .held }
    let part = parts[index]
    let count = min(buffer.count, part.count - offset)
    _ = buffer.update(fromContentsOf: part[offset..<offset + count])
    offset += count
    if offset == part.count {
      index += 1
      offset = 0
    }
    return .bytes(count, isLast: index == parts.count && resetCode == nil)
  }
}
