#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// An advisory lock on a folder. Without it, two servers started at the same time on an empty folder would mix their
/// files.
enum FolderLock {
  /// Runs `body` while holding the lock, after waiting for it if necessary. Runs without a lock if the file system
  /// has no locks or the folder cannot be opened.
  static func holding<Result>(_ path: String, _ body: () throws -> Result) rethrows -> Result {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    // Closing the descriptor releases the lock.
    defer { if descriptor >= 0 { close(descriptor) } }
    if descriptor >= 0 {
      while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
    }
    return try body()
  }
}
