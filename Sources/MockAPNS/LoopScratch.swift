import APNSRules
import HTTP2Session
import Inbox
import NIOPosix

/// What all connections of one event loop share. Buffers they use in turn: what a connection puts there is used up before
/// it returns to the loop, so an idle connection owns none.
final class LoopScratch {
  /// What a socket gave.
  let cipherText = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Plain text on its way into the HTTP/2 session.
  let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Frames on their way out.
  @exclusivity(unchecked) var output: [UInt8] = []
  /// Where the records of its pushes stand.
  let records = RecordArena()
  /// Provider tokens that passed on its connections: the signature of one need not be checked on each of them.
  @exclusivity(unchecked) var knownTokens = KnownTokens()
  /// What is left of requests that were answered, for the next ones.
  let streams = RequestStreamPool()

  // Each thread gets and sets a value of its own here, and an event loop is one thread: nothing is shared.
  nonisolated(unsafe) private static let perThread = ThreadSpecificVariable<LoopScratch>()

  /// The buffers of the event loop that runs now.
  static var current: LoopScratch {
    if let known = perThread.currentValue { return known }
    let made = LoopScratch()
    perThread.currentValue = made
    return made
  }

  deinit {
    cipherText.deallocate()
    input.deallocate()
  }
}
