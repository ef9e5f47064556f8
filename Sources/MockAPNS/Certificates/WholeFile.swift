#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// One file that is read or replaced as a whole.
package struct WholeFile: Sendable {
  /// Where it is.
  package let path: String

  /// The file at `path`, which may not be there (yet).
  package init(path: String) { self.path = path }

  /// Its name in its folder.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether anything is there.
  package var exists: Bool { access(path, F_OK) == 0 }

  /// Whether somebody other than its owner may read it.
  var isOpenToOthers: Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o077 != 0
  }

  /// The same file by the path that all symbolic links lead to; itself if nothing is there.
  package var resolved: WholeFile {
    guard let target = realpath(path, nil) else { return self }
    defer { free(target) }
    return WholeFile(path: String(cString: target))
  }

  /// Whether it lies in `folder`, once all symbolic links are followed.
  func isInside(_ folder: String) -> Bool { exists && resolved.path.hasPrefix(folder + "/") }

  /// Its bytes.
  ///
  /// - Parameter limit: how many there may be. Nobody's key is as long as 1 MiB; a log given by mistake is.
  /// - Throws: `FileError`.
  package func bytes(limit: Int = 1 << 20) throws(FileError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileError(path: path, failing: "cannot be read") }
    defer { close(file) }
    return try bytes(of: file, limit: limit)
  }

  /// Its bytes as text, with anything that is not UTF-8 replaced.
  ///
  /// - Throws: `FileError`, also for more than 1 MiB.
  package func text() throws(FileError) -> String { String(decoding: try bytes(), as: UTF8.self) }

  /// Everything that comes on standard input.
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
          path: path, problem: "is larger than \(limit >> 20) MiB", repair: "see whether it is the right file")
      }
    }
  }

  /// Puts `bytes` there under a temporary name and renames it, so that nobody ever sees a part of it.
  ///
  /// - Parameter isPrivate: whether only this user may read them.
  /// - Throws: `FileError`.
  package func replace(with bytes: [UInt8], isPrivate: Bool) throws(FileError) {
    let replacement = try FileReplacement(of: path, isPrivate: isPrivate)
    try replacement.append(bytes)
    try replacement.commit()
  }

  /// Removes it if it still holds `bytes`: a newer one may have taken its place.
  package func remove(ifItHolds bytes: [UInt8]) {
    guard let found = try? self.bytes(), found == bytes else { return }
    unlink(path)
  }
}

/// What could not be done with a file.
package struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file.
  package let path: String
  /// What went wrong, with the system's reason.
  package let problem: String
  /// What to do about it.
  package let repair: String

  /// File and problem; who knows what the file is for has a better repair.
  package var description: String { "\(path): \(problem)" }
}
