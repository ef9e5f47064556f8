/// The body of a response, sent in one or more parts.
struct AnswerBody {
  /// The next step for nghttp2's data provider.
  enum Step {
    /// The number of bytes to send; the last bytes carry END_STREAM.
    case bytes(Int, isLast: Bool)
    /// Wait for `release`.
    case held
    /// Reset the stream with this code instead of ending it.
    case cutShort(UInt32)
  }

  /// The current part. Nearly all bodies have only one part, which needs no array.
  private var part: [UInt8]
  /// The parts after the current one.
  private var rest: ArraySlice<[UInt8]> = []
  private let count: Int
  private let resetCode: UInt32?
  /// The number of parts that may be sent.
  private var released: Int
  private var index = 0
  private var offset = 0

  /// Creates a body that is sent as a whole.
  init(_ body: [UInt8]) {
    part = body
    count = 1
    resetCode = nil
    released = .max
  }

  /// Creates a body in parts.
  ///
  /// - Parameters:
  ///   - isHeld: whether each part waits for `release`.
  ///   - resetCode: the code to reset the stream with after the last part; nil to end it with END_STREAM.
  init(parts: [[UInt8]], isHeld: Bool, resetCode: UInt32?) {
    part = parts.first ?? []
    rest = parts.dropFirst()
    count = parts.count
    self.resetCode = resetCode
    released = isHeld ? 0 : .max
  }

  /// Whether a part waits for `release`. A held body without parts holds its END_STREAM.
  var isHeld: Bool { released < max(count, 1) }

  /// Allows one more part to be sent.
  mutating func release() {
    if isHeld { released += 1 }
  }

  /// Copies as much of the current part as fits.
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
