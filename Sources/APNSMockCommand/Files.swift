#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Files that the commands read and write, by path.
enum Files {
  /// The path from the root, whatever the working directory becomes.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + (path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
  }

  /// All bytes of a file; `-` is standard input.
  ///
  /// - Throws: `CommandFailure` that names the file and the system's reason.
  static func contents(of path: String) throws -> [UInt8] {
    let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path, "cannot be read") }
    defer { if descriptor > 0 { close(descriptor) } }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure(path, "cannot be read") }
      bytes += chunk.prefix(count)
    }
  }

  /// The text of a file.
  static func text(of path: String) throws -> String { String(decoding: try contents(of: path), as: UTF8.self) }

  /// Puts `bytes` there so that nobody ever sees a part of them: under a temporary name, then renamed. Only this user may
  /// read them.
  ///
  /// - Throws: `CommandFailure` that names the file and the system's reason.
  static func replace(_ path: String, with bytes: [UInt8]) throws {
    let temporary = "\(path).\(getpid()).tmp"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    var isWritten = false
    if descriptor >= 0 {
      // A file of this size is written in one go or, on a full disk, not at all.
      isWritten = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } == bytes.count
      close(descriptor)
    }
    guard isWritten, rename(temporary, path) == 0 else {
      let failure = failure(path, "cannot be written")
      unlink(temporary)
      throw failure
    }
  }

  /// Removes a file if it still holds `bytes`: a newer one may have taken its place.
  static func remove(_ path: String, ifItHolds bytes: [UInt8]) {
    guard let found = try? contents(of: path), found == bytes else { return }
    unlink(path)
  }

  private static func failure(_ path: String, _ what: String) -> CommandFailure {
    CommandFailure(.usage, "\(path): \(what): \(String(cString: strerror(errno)))")
  }
}
