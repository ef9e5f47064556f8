internal import APNSMockPlatformLibc

/// A file that is read or replaced as a whole.
package struct WholeFile: Sendable {
  /// The file's path.
  package let path: String

  /// Creates a reference to the file at `path`, which need not exist.
  package init(path: String) { self.path = path }

  /// The last component of the path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether the file exists.
  package var exists: Bool { access(path, F_OK) == 0 }

  /// Whether the permissions grant group or others any access.
  var isOpenToOthers: Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o077 != 0
  }

  /// The file with all symbolic links resolved; itself if it does not exist.
  package var resolved: WholeFile {
    guard let target = realpath(path, nil) else { return self }
    defer { free(target) }
    return WholeFile(path: String(cString: target))
  }

  /// Returns whether the file is inside `folder` after all symbolic links are resolved.
  func isInside(_ folder: String) -> Bool { exists && resolved.path.hasPrefix(folder + "/") }

  /// Reads the file's bytes.
  ///
  /// - Parameter limit: The maximum size. Longer files are not key files.
  /// - Throws: `FileError`.
  package func bytes(limit: Int = 1 << 20) throws(FileError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileError(path: path, failing: "cannot be read") }
    defer { close(file) }
    return try bytes(of: file, limit: limit)
  }

  /// Reads the file's text, with invalid UTF-8 replaced.
  ///
  /// - Throws: `FileError`, also for more than 1 MiB.
  package func text() throws(FileError) -> String { String(decoding: try bytes(), as: UTF8.self) }

  /// Reads standard input to its end.
  ///
  /// - Throws: `FileError`, also for more than `limit` bytes.
  package static func standardInput(limit: Int) throws(FileError) -> [UInt8] {
    try WholeFile(path: "standard input").bytes(of: 0, limit: limit)
  }

  private func bytes(of file: Int32, limit: Int) throws(FileError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = read(file, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileError(path: path, failing: "cannot be read") }
      bytes += chunk.prefix(count)
      guard bytes.count <= limit else {
        throw FileError(
          path: path, problem: "is larger than \(limit >> 20) MiB", repair: "check that it is the right file")
      }
    }
  }

  /// Replaces the file atomically: writes a temporary file and renames it.
  ///
  /// - Parameter isPrivate: Whether only the current user may read the file.
  /// - Throws: `FileError`.
  package func replace(with bytes: [UInt8], isPrivate: Bool) throws(FileError) {
    let replacement = try FileReplacement(of: path, isPrivate: isPrivate)
    try replacement.append(bytes)
    try replacement.commit()
  }

  /// Removes the file if it still contains `bytes`: it may have been replaced by a newer one.
  package func remove(ifItHolds bytes: [UInt8]) {
    guard let found = try? self.bytes(), found == bytes else { return }
    unlink(path)
  }
}

/// An error of a file operation.
package struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file's path.
  package let path: String
  /// The problem, with the system's reason.
  package let problem: String
  /// The way to solve the problem.
  package let repair: String

  /// The path and the problem. Callers that know the file's purpose can add a better repair.
  package var description: String { "\(path): \(problem)" }
}

/// The new content of a file, written in pieces to a temporary file. `commit` replaces the file atomically; without
/// it, nothing changes. Anything but a regular file (a pipe, a terminal) cannot be replaced, and each piece is
/// written to it directly.
package final class FileReplacement {
  private let path: String
  /// The path of the temporary file; nil if the file is written directly.
  private let temporary: String?
  private var file: Int32

  /// Creates a temporary file next to the one at `path`.
  ///
  /// - Parameter isPrivate: Whether only the current user may read the file.
  /// - Throws: `FileError`.
  package init(of path: String, isPrivate: Bool) throws(FileError) {
    self.path = path
    guard !Self.isSpecial(path) else {
      temporary = nil
      file = open(path, O_WRONLY | O_CLOEXEC)
      guard file >= 0 else { throw FileError(path: path, failing: "cannot be written") }
      return
    }
    let temporary = Self.temporary(for: path)
    self.temporary = temporary
    unlink(temporary)
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isPrivate ? 0o600 : 0o644)
    guard file >= 0 else { throw FileError(path: path, failing: "cannot be written") }
  }

  deinit {
    guard file >= 0 else { return }
    close(file)
    if let temporary { unlink(temporary) }
  }

  /// Removes the temporary file for `path`, when the process ends while writing it.
  package static func abandon(_ path: String) { unlink(temporary(for: path)) }

  private static func temporary(for path: String) -> String { "\(path).\(getpid()).tmp" }

  /// Returns whether something other than a regular file exists at `path`.
  package static func isSpecial(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
  }

  /// Appends bytes.
  ///
  /// - Throws: `FileError`.
  package func append(_ bytes: [UInt8]) throws(FileError) {
    guard writeAll(bytes, to: file) else { throw FileError(path: path, failing: "cannot be written") }
  }

  /// Replaces the file by the new content.
  ///
  /// - Throws: `FileError`; then nothing has changed.
  package func commit() throws(FileError) {
    let closed = close(file)
    file = -1
    guard closed == 0, temporary.map({ rename($0, path) == 0 }) ?? true else {
      let error = FileError(path: path, failing: "cannot be written")
      if let temporary { unlink(temporary) }
      throw error
    }
  }
}

extension FileError {
  /// Creates an error from `errno`.
  init(path: String, failing what: String) {
    let number = errno
    let repair =
      switch number {
      case ENOSPC, EDQUOT, EFBIG: "free space on that file system"
      case EISDIR: "specify a file, not a folder"
      case ENOENT, ENOTDIR: "check that the folder exists"
      default: "check the permissions of the file and its folder"
      }
    self.init(path: path, problem: "\(what): \(String(cString: strerror(number)))", repair: repair)
  }
}

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
