import Inbox
import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file with an exported inbox.
struct ExportFile {
  /// The file's path; `-` is standard input.
  let path: String

  init(_ path: String) { self.path = path }

  /// Reads the file in parts of 1 MiB.
  ///
  /// - Parameter maxBytes: The memory limit of the inbox.
  /// - Throws: `CommandFailure` that names the file and line.
  func inbox(maxBytes: Int) throws -> Inbox {
    let file = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw failure("\(path): cannot be read: \(String(cString: strerror(errno)))") }
    defer { if file != 0 { close(file) } }
    var reading = InboxImport(maxBytes: maxBytes)
    var piece = [UInt8](repeating: 0, count: 1 << 20)
    do {
      while true {
        let count = read(file, &piece, piece.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw failure("\(path): cannot be read: \(String(cString: strerror(errno)))") }
        guard count > 0 else { return try reading.finish() }
        try piece.withUnsafeBytes { try reading.read(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      }
    } catch let problem as InboxImport.Problem {
      throw CommandFailure(.usage, lines: ["\(path):\(problem)"])
    }
  }

  private func failure(_ words: String) -> CommandFailure { CommandFailure(.usage, words) }
}
