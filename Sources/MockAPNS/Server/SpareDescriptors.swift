internal import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc

/// Some open file descriptors, which are closed when connections have used up all others.
///
/// libdispatch, which runs Swift's tasks, sometimes reads the state of its threads from `/proc`, and ends the process if it
/// cannot open such a file (`src/event/workqueue.c` in its repository).
final class SpareDescriptors: Sendable {
  static let shared = SpareDescriptors()

  private static let count = 2

  private let open = NIOLockedValueBox<[CInt]>([])

  /// Opens the descriptors.
  ///
  /// - Returns: False if the system has none left.
  func acquire() -> Bool {
    open.withLockedValue { open in
      while open.count < Self.count {
        let descriptor = APNSMockPlatformLibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        open.append(descriptor)
      }
      return true
    }
  }

  /// Closes the descriptors, so that the process can open other files.
  func release() {
    open.withLockedValue { open in
      for descriptor in open { close(descriptor) }
      open = []
    }
  }
}
