internal import APNSMockRules
package import APNSMockNotation
internal import APNSMockPlatformLibc

/// The text of a fixture file. A regular file is mapped into memory, so that reading it needs no memory of its own.
package final class FixtureDocument: Sendable {
  /// The path or name, for problems.
  package let name: String
  /// The text. It exists, unchanged, as long as the document.
  nonisolated(unsafe) let bytes: UnsafeRawBufferPointer
  private let isMapped: Bool

  /// A hash of the text.
  package var hash: UInt64 { PushKey(bytes: bytes).number }

  /// The maximum length of a file that cannot be mapped, such as a pipe.
  package static let unmappedLimit = 64 << 20

  /// Creates a document from text.
  package init(name: String, text: [UInt8]) {
    self.name = name
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 1)
    copy.copyBytes(from: text)
    bytes = UnsafeRawBufferPointer(copy)
    isMapped = false
  }

  /// Opens a file.
  ///
  /// - Throws: `FileFailure` if it cannot be read, or if it is a pipe with more than 64 MiB.
  package convenience init(path: String) throws(FileFailure) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw FileFailure(unreadable: path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw FileFailure(unreadable: path) }
    if status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
      let start = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, file, 0)
      guard let start, start != MAP_FAILED else { throw FileFailure(unreadable: path) }
      self.init(name: path, mapped: UnsafeRawBufferPointer(start: start, count: Int(status.st_size)))
    } else {
      self.init(name: path, text: try Self.text(of: file, path: path))
    }
  }

  private init(name: String, mapped: UnsafeRawBufferPointer) {
    self.name = name
    bytes = mapped
    isMapped = true
  }

  deinit {
    if isMapped {
      munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
    } else {
      bytes.deallocate()
    }
  }

  private static func text(of file: Int32, path: String) throws(FileFailure) -> [UInt8] {
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(file, &chunk, chunk.count)
      if count == 0 { return text }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileFailure(unreadable: path) }
      text += chunk.prefix(count)
      guard text.count <= unmappedLimit else {
        throw FileFailure([
          FileProblem(
            file: path, "more than \(unmappedLimit >> 20) MiB from a pipe", hint: "write them to a file first")
        ])
      }
    }
  }

  /// Lets the system use the memory of the text before `offset` for other purposes; it is read again on access.
  func release(upTo offset: Int) {
    guard isMapped, let start = bytes.baseAddress else { return }
    madvise(UnsafeMutableRawPointer(mutating: start), offset, MADV_DONTNEED)
  }
}

extension FileFailure {
  /// Creates a failure from `errno`.
  fileprivate init(unreadable path: String) {
    self.init([
      FileProblem(
        file: path, "cannot be read: \(String(cString: strerror(errno)))",
        hint: "check the path, and the permissions of the file and its folder")
    ])
  }

  /// Runs `load`, which can throw no other error than a failure.
  package static func converting(_ load: () throws -> Void) throws(FileFailure) {
    do {
      try load()
    } catch {
      throw error as? FileFailure ?? FileFailure([FileProblem(file: "", "\(error)")])
    }
  }
}
