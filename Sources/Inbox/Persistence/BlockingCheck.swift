internal import Dispatch
internal import PlatformLibc

/// Ends the process if a thread waits for a store that must not: an event loop, on which connections depend, or one of Swift's
/// cooperative threads, of which there are as many as cores. Only in a build with the flag `CHECKS_BLOCKING`, as those with a
/// sanitizer, and if the environment variable `CHECK_BLOCKING` is set: tests of this module wait on such threads.
enum BlockingCheck {
  #if CHECKS_BLOCKING
    private static let isEnabled = getenv("CHECK_BLOCKING") != nil

    /// Checks that the thread may wait for a store.
    static func threadMayWait() {
      guard isEnabled else { return }
      var name = [CChar](repeating: 0, count: 64)
      pthread_getname_np(pthread_self(), &name, name.count)
      let thread = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      // The queues of an executor or of a thread of its own have other labels.
      let queue = String(cString: __dispatch_queue_get_label(nil))
      guard thread.hasPrefix("NIO-ELT") || queue.hasPrefix("com.apple.root.") else { return }
      fatalError("\(thread), \(queue): this thread must not wait for a store")
    }
  #else
    /// Does nothing.
    @inline(__always) static func threadMayWait() {}
  #endif
}
