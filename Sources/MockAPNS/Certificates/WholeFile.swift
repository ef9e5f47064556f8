#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

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
  /// - Parameter limit: The maximum size. No key is as long as 1 MiB; a log given by mistake is.
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
