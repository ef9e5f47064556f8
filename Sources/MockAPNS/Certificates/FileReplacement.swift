#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// What a file will hold, while it is written piece by piece under a temporary name. Until `commit` nobody sees any of
/// it; if that is never called, nothing has changed. What is no ordinary file (a pipe, a terminal) cannot be replaced and
/// gets each piece at once.
package final class FileReplacement {
  private let path: String
  /// Nil for what is written to at once.
  private let temporary: String?
  private var file: Int32

  /// Begins a file of its own beside the one at `path`.
  ///
  /// - Parameter isPrivate: whether only this user may read it.
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

  /// Removes what there is so far of the file at `path`: for the end of a process in whose midst it is written.
  package static func abandon(_ path: String) { unlink(temporary(for: path)) }

  private static func temporary(for path: String) -> String { "\(path).\(getpid()).tmp" }

  /// Whether something is there that is no ordinary file.
  package static func isSpecial(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
  }

  /// Writes what comes next.
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

  /// Puts it in its place.
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
  /// A failure of the system's, just now.
  init(path: String, failing what: String) {
    let number = errno
    let repair =
      switch number {
      case ENOSPC, EDQUOT, EFBIG: "make room there"
      case EISDIR: "name a file in it"
      case ENOENT, ENOTDIR: "see whether its folder is there"
      default: "see to it that this user may use the file and its folder"
      }
    self.init(path: path, problem: "\(what): \(String(cString: strerror(number)))", repair: repair)
  }
}
