#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

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
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileError(path: path, failing: "cannot be written") }
      rest = rest.dropFirst(count)
    }
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
      case ENOSPC, EDQUOT, EFBIG: "make room there"
      case EISDIR: "name a file in it"
      case ENOENT, ENOTDIR: "check that the folder exists"
      default: "check the permissions of the file and its folder"
      }
    self.init(path: path, problem: "\(what): \(String(cString: strerror(number)))", repair: repair)
  }
}
