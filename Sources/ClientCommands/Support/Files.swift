import MockAPNS
import APNSMockPlatformLibc

/// Reads and writes the files of the commands by path. Errors are `CommandFailure`s with the path and the system's
/// reason.
package enum Files {
  /// Returns the absolute path, which stays valid if the working directory changes.
  package static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + (path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
  }

  /// Returns whether two paths name the same file.
  package static func areSame(_ path: String, _ other: String) -> Bool {
    var (one, two) = (stat(), stat())
    guard stat(path, &one) == 0, stat(other, &two) == 0 else { return absolute(path) == absolute(other) }
    return one.st_dev == two.st_dev && one.st_ino == two.st_ino
  }

  /// Returns the content of a file; `-` is standard input.
  ///
  /// - Parameter limit: The size of the largest file to read, in bytes. No legitimate input is larger.
  static func contents(of path: String, limit: Int = 64 << 20) throws -> [UInt8] {
    do throws(FileError) {
      return path == "-"
        ? try WholeFile.standardInput(limit: limit) : try WholeFile(path: path).bytes(limit: limit)
    } catch {
      // The repair depends on the file's purpose, so the caller adds it.
      throw CommandFailure(.usage, "\(error)")
    }
  }

  /// Returns the content of a file as text.
  package static func text(of path: String) throws -> String { String(decoding: try contents(of: path), as: UTF8.self) }

  /// Replaces the file atomically. Only the current user can read it.
  static func replace(_ path: String, with bytes: [UInt8]) throws {
    try writing { () throws(FileError) in try WholeFile(path: path).replace(with: bytes, isPrivate: true) }
  }

  /// Begins an atomic replacement of a file, which is written in parts and visible once complete.
  ///
  /// - Parameter isPrivate: Whether only the current user can read the file: one with payloads. A test report, or a file of
  ///   the repository, is for others too.
  static func replacement(of path: String, isPrivate: Bool) throws -> FileReplacement {
    try writing { () throws(FileError) in try FileReplacement(of: path, isPrivate: isPrivate) }
  }

  /// Runs `work`, which writes a file, and converts its errors to `CommandFailure`s.
  static func writing<Result>(_ work: () throws(FileError) -> Result) throws -> Result {
    do throws(FileError) {
      return try work()
    } catch {
      throw CommandFailure(.usage, "\(error); \(error.repair), or name another file")
    }
  }
}

/// A file that is read in parts of at most 1 MiB, for files of any size.
package final class FileParts {
  private let path: String
  private let file: Int32
  private var part = [UInt8](repeating: 0, count: 1 << 20)

  /// Opens the file; `-` is standard input.
  ///
  /// - Throws: `CommandFailure` with the path and the system's reason.
  package init(_ path: String) throws {
    self.path = path
    file = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw failure }
  }

  deinit { if file > 0 { close(file) } }

  /// Returns the next part; nil at the end.
  ///
  /// - Throws: `CommandFailure` with the path and the system's reason.
  package func next() throws -> ArraySlice<UInt8>? {
    while true {
      let count = read(file, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure }
      return count == 0 ? nil : part[..<count]
    }
  }

  private var failure: CommandFailure {
    CommandFailure(.usage, "\(path): cannot be read: \(String(cString: strerror(errno)))")
  }
}
