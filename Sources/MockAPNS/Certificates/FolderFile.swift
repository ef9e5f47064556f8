#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// One small file that is read or replaced as a whole.
struct FolderFile: Sendable {
  /// Where it is.
  let path: String

  /// Its name in its folder.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether anything is there.
  var exists: Bool { access(path, F_OK) == 0 }

  /// Whether somebody other than its owner may read it.
  var isOpenToOthers: Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o077 != 0
  }

  /// Whether it lies in `folder`, once all symbolic links are followed.
  func isInside(_ folder: String) -> Bool {
    guard let resolved = realpath(path, nil) else { return false }
    defer { free(resolved) }
    return String(cString: resolved).hasPrefix(folder + "/")
  }

  /// Its bytes as text, with anything that is not UTF-8 replaced.
  ///
  /// - Throws: `CertificateFolderError` with the system's reason.
  func text() throws -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw failure("cannot be read") }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 8192)
    while true {
      let count = read(file, &chunk, chunk.count)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure("cannot be read") }
      bytes += chunk.prefix(count)
      // Nobody's key is this long; a device or a log given by mistake is.
      guard bytes.count <= 1 << 20 else {
        throw CertificateFolderError(place: path, problem: "is larger than 1 MiB", repair: "is it the right file?")
      }
    }
  }

  /// Puts `bytes` there under a temporary name and renames it, so that nobody ever sees a part of it.
  ///
  /// - Throws: `CertificateFolderError` with the system's reason.
  func replace(with bytes: [UInt8], isPrivate: Bool) throws {
    let temporary = "\(path).\(getpid()).tmp"
    unlink(temporary)
    let mode: mode_t = isPrivate ? 0o600 : 0o644
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard file >= 0 else { throw failure("cannot be written") }
    do {
      defer { close(file) }
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          let failure = failure("cannot be written")
          unlink(temporary)
          throw failure
        }
        rest = rest.dropFirst(count)
      }
    }
    guard rename(temporary, path) == 0 else {
      let failure = failure("cannot be written")
      unlink(temporary)
      throw failure
    }
  }

  private func failure(_ what: String) -> CertificateFolderError {
    let reason = String(cString: strerror(errno))
    return CertificateFolderError(
      place: path, problem: "\(what): \(reason)",
      repair: "see to it that this user may use the file and its folder, or name another folder with --certs")
  }
}
