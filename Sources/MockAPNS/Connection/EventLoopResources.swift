import APNSMockRules
import APNSMockHTTP2Session
import APNSMockInbox
import NIOPosix

/// Buffers and caches shared by all connections of one event loop. A connection empties the buffers before it
/// returns to the loop, so an idle connection needs none of its own.
final class EventLoopResources {
  /// Bytes read from a socket.
  let cipherText = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Decrypted bytes for the HTTP/2 session.
  let plainText = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Frames to be encrypted and written.
  var frames: [UInt8] = []
  /// The storage of the records of the event loop's pushes.
  let recordArena = RecordArena()
  /// Provider tokens accepted on the event loop's connections, so that each connection need not verify the signature
  /// of the same token again.
  var knownTokens = ProviderTokenCache()
  /// Finished request streams to be reused.
  let streamPool = RequestStreamPool()

  // Safe to share: each thread accesses a value of its own here, and an event loop is one thread.
  nonisolated(unsafe) private static let perThread = ThreadSpecificVariable<EventLoopResources>()

  /// The resources of the current event loop.
  static var current: EventLoopResources {
    if let known = perThread.currentValue { return known }
    let new = EventLoopResources()
    perThread.currentValue = new
    return new
  }

  deinit {
    cipherText.deallocate()
    plainText.deallocate()
  }
}
