import Inbox
import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The inbox as a file, written when the server ends.
struct ExportOnExit: Sendable {
  /// Where, from the root: the working directory may change.
  let path: String
  /// The flag that asks for it.
  let flag: String

  /// Looks whether the file could be written, so that a mistake shows before the tests run and not after them.
  ///
  /// - Throws: `CommandFailure`.
  init(to path: String, for flag: String) throws {
    self.flag = flag
    self.path = Files.absolute(path)
    if FileReplacement.isSpecial(self.path) {
      // Opened to see whether that is possible, as it is not for a folder.
      let file = open(self.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      let reason = String(cString: strerror(errno)).lowercased()
      guard file >= 0 else {
        throw CommandFailure(.usage, "\(flag): \(path): cannot be written to (\(reason)); name a file")
      }
      close(file)
      return
    }
    let folder = self.path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    guard access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 else {
      let reason = String(cString: strerror(errno)).lowercased()
      throw CommandFailure(
        .usage, "\(flag): \(path): its folder cannot be written to (\(reason)); name a file in another one")
    }
  }

  /// Writes it, under a temporary name at first.
  ///
  /// - Returns: how many pushes there are.
  /// - Throws: `CommandFailure`.
  func write(_ state: ServerState) throws -> Int {
    let snapshot = state.inbox.snapshot()
    let format = path.hasSuffix(".json") ? InboxExport.Format.array : .lines
    var export = InboxExport(snapshot, Selection(), as: format, rulebook: state.rulebook, in: state.inbox)
    do throws(FileError) {
      let file = try FileReplacement(of: path, isPrivate: false)
      while let piece = export.next() { try file.append(piece) }
      try file.commit()
    } catch {
      throw CommandFailure(.failed, "\(flag): \(error); the inbox is lost: \(snapshot.count) pushes")
    }
    return snapshot.count
  }
}
