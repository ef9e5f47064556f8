#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// Keeps a folder for one process at a time, as far as those processes ask: two servers that start together on an empty
/// folder would otherwise mix their files.
enum FolderLock {
  /// Runs `body` while nobody else holds the folder; waits for it if need be. Where a file system has no locks, or the
  /// folder cannot be opened, it runs without.
  static func holding<Result>(_ path: String, _ body: () throws -> Result) rethrows -> Result {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    // Closing gives the lock back.
    defer { if descriptor >= 0 { close(descriptor) } }
    if descriptor >= 0 {
      while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
    }
    return try body()
  }
}
