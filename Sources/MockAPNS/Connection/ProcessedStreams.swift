internal import APNSMockNotation
import APNSMockFaultModel

/// The streams of a connection that are processed: those that no GOAWAY frame excluded.
struct ProcessedStreams: Equatable {
  /// What a GOAWAY frame is sent for.
  enum GoAwayCause {
    /// A push on this stream.
    case push(Int32)
    /// Something else; the client has opened the streams up to this one.
    case connection(lastReceivedStream: Int32)
  }

  /// The lowest last stream of all GOAWAY frames sent: later streams are not processed.
  private(set) var lastAccepted = Int32.max
  /// When `lastAccepted` was last lowered, in monotonic nanoseconds.
  private(set) var loweredAt: MonotonicTime = 0
  /// The highest stream whose request was processed.
  private(set) var highestProcessed: Int32 = 0

  /// Records that a request is processed.
  mutating func didProcess(_ stream: Int32) { highestProcessed = max(highestProcessed, stream) }

  /// Records that a GOAWAY with this last stream is sent. The last stream never rises again.
  mutating func exclude(after stream: Int32, at now: MonotonicTime) {
    guard stream < lastAccepted else { return }
    lastAccepted = stream
    loweredAt = now
  }

  /// Returns whether requests on later streams were processed before the one on this stream, which can happen when it
  /// was delayed. A GOAWAY then has to include those streams too, and this one is refused with its own RST_STREAM.
  func isOvertaken(_ stream: Int32) -> Bool { highestProcessed > stream }

  /// Returns the last stream that a fault's GOAWAY names. A later GOAWAY never names a higher stream (RFC 9113 section
  /// 6.8).
  func lastStream(of goAway: Action.GoAwayParameters, causedBy cause: GoAwayCause) -> Int32 {
    let wanted: Int32 =
      switch (goAway.lastStream, cause) {
      case (.all, _): .max
      case (_, .connection(let lastReceivedStream)): lastReceivedStream
      case (.beforeThis, .push(let stream)): isOvertaken(stream) ? highestProcessed : max(0, stream - 2)
      case (.this, .push(let stream)): max(stream, highestProcessed)
      }
    return min(wanted, lastAccepted)
  }
}
