import APNSMockInbox
import NIOCore

/// The frames that wait until the store has the records of the requests that they answer: with `--durable answer`, with a
/// store that is slower than the pushes, or on a server that was stopped or cut off and may not be the active one any more.
///
/// All frames behind them wait too, with one exception: while the store fails, responses to pushes that are refused leave
/// before them, and so do frames such as acknowledgements of PING.
struct HeldFrames {
  /// The number of bytes from which the connection is not read.
  static let limit = 256 << 10

  /// What the held frames, as they are now, let pass.
  private enum Passing {
    case nothing
    /// Whole responses: the held frames end complete responses too and contain no SETTINGS, no GOAWAY, no status 100 and not
    /// the first header fields of the connection.
    case responses
  }

  /// What is known of the session's frames.
  struct Facts {
    /// Whether the session has no more frames.
    var isComplete: Bool
    /// Whether header fields were among the frames so far.
    var hasSentFields: Bool
    /// Whether a response is not complete, or was preceded by status 100.
    var isOrdered: Bool
  }

  enum Placement: Equatable { case write, hold }

  /// What answers to the newest requests of the connection wait for.
  private(set) var prerequisite = AnswerGate.Prerequisite()
  private var parts = CircularBuffer<(prerequisite: AnswerGate.Prerequisite, bytes: ByteBuffer)>(initialCapacity: 1)
  /// The number of bytes that wait.
  private(set) var byteCount = 0
  private var passing = Passing.nothing
  /// Whether the handler waits for what the first frames wait for.
  private var isAwaited = false
  /// Whether what waits has a SETTINGS or GOAWAY frame.
  private var hasOrderedFrames = false
  /// Whether the first header fields of the connection have left. They may have to announce the size of HPACK's table
  /// (RFC 7541, section 4.2), so nothing passes them.
  var hasSentFields = false

  /// Whether no frames wait.
  var isEmpty: Bool { parts.isEmpty }

  /// Returns what to wait for now; nil if that is nothing, or the handler waits already.
  mutating func beginWait() -> AnswerGate.Prerequisite? {
    guard !isAwaited, let first = parts.first else { return nil }
    isAwaited = true
    return first.prerequisite
  }

  /// What `beginWait` returned is met.
  mutating func waitEnded() { isAwaited = false }

  /// Records of requests were appended: their answers wait for them.
  mutating func extend(by gate: AnswerGate) {
    gate.extend(&prerequisite)
    passing = .nothing
  }

  /// Decides about new frames of the session.
  mutating func place(_ frames: borrowing [UInt8], _ facts: Facts, for writer: RecordWriter) -> Placement {
    let gate = writer.answers
    if isEmpty && gate.isMet(prerequisite)
      || passing == .responses && gate.refusesPushes && !Self.areOrdered(frames)
    {
      hasSentFields = facts.hasSentFields
      return .write
    }
    if !frames.isEmpty {
      byteCount += frames.count
      parts.append((prerequisite, ByteBuffer(bytes: copy frames)))
      hasOrderedFrames = hasOrderedFrames || Self.areOrdered(frames)
    }
    let letsPass =
      facts.isComplete && writer.options.durability == .answer && !hasOrderedFrames
      && (hasSentFields || !facts.hasSentFields) && !facts.isOrdered
    passing = letsPass ? .responses : .nothing
    return frames.isEmpty ? .write : .hold
  }

  /// Removes the first frames and returns them, if they need not wait any more.
  mutating func removeFirst(ifMetBy gate: AnswerGate) -> ByteBuffer? {
    guard let first = parts.first, gate.isMet(first.prerequisite) else { return nil }
    parts.removeFirst()
    byteCount -= first.bytes.readableBytes
    if isEmpty { hasOrderedFrames = false }
    return first.bytes
  }

  mutating func removeAll() {
    parts.removeAll()
    byteCount = 0
    hasOrderedFrames = false
  }

  /// Whether some of the frames are SETTINGS or GOAWAY (RFC 9113, sections 6.5 and 6.8).
  static func areOrdered(_ frames: borrowing [UInt8]) -> Bool {
    var offset = 0
    while offset + 9 <= frames.count {
      if frames[offset + 3] == 4 || frames[offset + 3] == 7 { return true }
      offset += 9 + (Int(frames[offset]) << 16 | Int(frames[offset + 1]) << 8 | Int(frames[offset + 2]))
    }
    return false
  }
}
