import APNSMockClientCommands
import APNSMockInbox
import APNSMockRules
import MockAPNS
import APNSMockPlatformLibc

/// The export of the inbox when the server stops.
struct ExportOnExit: Sendable {
  /// The absolute path, because the working directory may change.
  let path: String
  /// The flag that requested the export, for messages.
  let flag: String

  /// Checks that the file can be written, so that a wrong path fails before the tests and not after them.
  ///
  /// - Throws: `CommandFailure`.
  init(to path: String, for flag: String) throws {
    self.flag = flag
    self.path = Files.absolute(path)
    if FileReplacement.isSpecial(self.path) {
      // Opening fails for a folder, for example.
      let file = open(self.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      let reason = String(cString: strerror(errno)).lowercased()
      guard file >= 0 else {
        throw CommandFailure(.usage, "\(flag): \(path): cannot be written (\(reason)); specify a file")
      }
      close(file)
      return
    }
    let folder = self.path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    guard access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 else {
      let reason = String(cString: strerror(errno)).lowercased()
      throw CommandFailure(
        .usage, "\(flag): \(path): the folder is not writable (\(reason)); specify another one")
    }
  }

  /// Writes other contents atomically.
  ///
  /// - Parameter isPrivate: Whether only the current user can read the file.
  /// - Throws: `CommandFailure`.
  func write(_ bytes: [UInt8], isPrivate: Bool) throws {
    do {
      let file = try FileReplacement(of: path, isPrivate: isPrivate)
      try file.append(bytes)
      try file.commit()
    } catch {
      throw CommandFailure(.failed, "\(flag): \(error)")
    }
  }

  /// Writes the export atomically. Only the current user can read it, because it contains payloads and device tokens.
  ///
  /// - Returns: The number of pushes.
  /// - Throws: `CommandFailure`.
  func write(_ state: ServerState) throws -> Int {
    try? state.inbox.writer?.awaitChanges()
    let snapshot = state.inbox.snapshot()
    var export = InboxExport(
      snapshot, .allKinds, as: isArray ? .array : .lines, rulebook: state.rulebook, in: state.inbox)
    try write(hasStore: state.inbox.writer != nil, count: snapshot.count) { try export.next() }
    return snapshot.count
  }

  /// Writes runs and their pushes, also those that resets have removed from the inbox.
  ///
  /// - Parameter count: The number of pushes, for messages.
  /// - Throws: `CommandFailure`.
  func write(_ records: RunRecords, by rulebook: Rulebook, hasStore: Bool, count: Int) throws {
    var export = RunExport(records, isArray: isArray, by: rulebook)
    try write(hasStore: hasStore, count: count) { try export.next() }
  }

  private var isArray: Bool { path.hasSuffix(".json") }

  private func write(hasStore: Bool, count: Int, _ next: () throws -> [UInt8]?) throws {
    do {
      let file = try FileReplacement(of: path, isPrivate: true)
      while let piece = try next() { try file.append(piece) }
      try file.commit()
    } catch let error as StoreUnavailable {
      throw CommandFailure(.failed, "\(flag): the store of the inbox cannot be read: \(error.problem)")
    } catch {
      let consequence = hasStore ? "" : "; the inbox (\(count) pushes) is lost"
      throw CommandFailure(.failed, "\(flag): \(error)\(consequence)")
    }
  }
}

/// A file with an exported inbox.
struct ExportFile {
  /// The file's path; `-` is standard input.
  let path: String

  init(_ path: String) { self.path = path }

  /// Reads the file in parts of 1 MiB.
  ///
  /// - Parameters:
  ///   - maxBytes: The memory limit of the inbox.
  ///   - opened: The file if it is open already, with the part of it that was read: a pipe cannot be read twice.
  /// - Throws: `CommandFailure` that names the file and line.
  func inbox(maxBytes: Int, opened: (file: FileParts, start: ArraySlice<UInt8>)? = nil) throws -> Inbox {
    let file = try opened?.file ?? FileParts(path)
    var reading = InboxImport(maxBytes: maxBytes)
    do {
      if let opened { try reading.read(Array(opened.start)) }
      while let part = try file.next() { try reading.read(Array(part)) }
      return try reading.finish()
    } catch let problem as InboxImport.Problem {
      throw CommandFailure(.usage, "\(path):\(problem)".onOneLine)
    }
  }
}
