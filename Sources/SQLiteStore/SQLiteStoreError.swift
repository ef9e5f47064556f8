internal import GRDB
internal import APNSMockInbox
internal import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc

/// Why a file cannot be used as a store. Its description is a sentence with the repair.
package struct SQLiteStoreError: Error, CustomStringConvertible {
  package let description: String

  private init(_ description: String) { self.description = description }

  /// Explains an error of SQLite, or of what reads a file.
  init(_ error: any Error, path: String) {
    switch error {
    case let error as SQLiteStoreError: self = error
    case let row as DamagedRow: self = .damaged(path: path, "\(row)")
    case let error as DatabaseError:
      let text = error.message ?? error.resultCode.description
      switch error.resultCode {
      case .SQLITE_NOTADB:
        self.init(
          "\(path) is no SQLite database, or is damaged: choose another file with --store sqlite:FILE, or remove it")
      case .SQLITE_CORRUPT: self = .damaged(path: path, text)
      case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM: self = .notWritable(path: path, text)
      case .SQLITE_BUSY, .SQLITE_LOCKED: self = .inUse(path: path)
      default: self = .other(path: path, text)
      }
    default: self = .other(path: path, "\(error)")
    }
  }

  static func inUse(path: String) -> Self {
    Self("the store \(path) is used by another program: stop it, or choose another file with --store sqlite:FILE")
  }

  /// - Parameter text: The damage, without values of rows.
  static func damaged(path: String, _ text: String) -> Self {
    Self(
      "\(path) is damaged: \(text): stop the server and run apns-mock store repair \(path), which keeps what can be read; or "
        + "restore a backup")
  }

  /// The file was removed or replaced while it was in use.
  static func removed(path: String) -> Self {
    Self(
      "\(path) or \(path)-wal was removed or replaced while the server runs: move it back, or save the pushes with "
        + "apns-mock export and restart the server")
  }

  static func foreign(path: String) -> Self {
    Self("\(path) is a database of another program: choose another file with --store sqlite:FILE")
  }

  /// There is something other than a file, such as a folder or a device.
  static func notFile(path: String) -> Self {
    Self("\(path) is not a file: choose another one with --store sqlite:FILE")
  }

  static func missing(path: String) -> Self { Self("\(path) does not exist, or is empty: name the file of a store") }

  /// The former file of an earlier repair is still there.
  static func formerFileExists(path: String) -> Self {
    Self("\(path) is there from an earlier repair: move it away, or remove it if nothing in it is needed")
  }

  static func older(path: String, version: Int) -> Self {
    Self(
      "\(path) was written by an older version of apns-mock (format \(version), this one knows \(Schema.version)): "
        + "start a server with --store sqlite:\(path), which changes it to the new format")
  }

  static func tooOld(path: String, version: Int) -> Self {
    Self(
      "\(path) has the format \(version) of an older version that was not released: choose another file with "
        + "--store sqlite:FILE")
  }

  static func newer(path: String, version: Int) -> Self {
    Self(
      "\(path) was written by a newer version of apns-mock (format \(version), this one knows \(Schema.version)): "
        + "use that version, or choose another file with --store sqlite:FILE")
  }

  static func notWritable(path: String, _ text: String) -> Self {
    Self(
      "cannot write \(path) (\(text)): the folder must exist, and this user must be able to write the file and the folder"
    )
  }

  static func other(path: String, _ text: String) -> Self {
    Self("the store \(path) failed: \(text): repair the cause, or choose another file with --store sqlite:FILE")
  }
}

/// Creates a file that only this user can read, unless it exists.
func createPrivateFile(_ path: String) throws(SQLiteStoreError) {
  let created = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
  guard created >= 0 else { throw .notWritable(path: path, String(cString: strerror(errno))) }
  close(created)
}

/// The files that SQLite creates beside a file, and that a connection that only reads does not remove.
struct OtherFiles {
  private let missing: [String]

  /// Notes which of them are missing.
  ///
  /// - Throws: `SQLiteStoreError.notFile` if there is a folder or a device in place of the file.
  init(of path: String) throws(SQLiteStoreError) {
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG { throw .notFile(path: path) }
    missing = ["-wal", "-shm"].map { path + $0 }.filter { access($0, F_OK) != 0 }
  }

  /// Removes those that were missing. Only with the lock of the file.
  func removeNew() { for path in missing { unlink(path) } }
}

/// A lock on the file itself, also under another name, that keeps a second server from using it. The system releases it when
/// the process ends.
final class FileLock: Sendable {
  /// nil after the release.
  private let descriptor: NIOLockedValueBox<Int32?>
  /// Whether the file was missing.
  let isNew: Bool

  /// Locks a file.
  ///
  /// - Throws: `SQLiteStoreError.missing` too.
  convenience init(existing path: String) throws(SQLiteStoreError) {
    guard access(path, F_OK) == 0 else { throw .missing(path: path) }
    _ = try OtherFiles(of: path)
    try self.init(path: path)
  }

  /// Locks a file, which is created if it is missing.
  init(path: String) throws(SQLiteStoreError) {
    var opened = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    isNew = opened >= 0
    // Without O_EXCL also the target of a link may be created.
    if !isNew, errno == EEXIST { opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
    guard opened >= 0 else { throw .notWritable(path: path, String(cString: strerror(errno))) }
    descriptor = NIOLockedValueBox(opened)
    // The descriptor stays open after a refusal: closing it would end the locks of SQLite if this process uses the file.
    guard Self.set(Int16(F_WRLCK), opened) else {
      let problem = errno
      throw [EAGAIN, EACCES].contains(problem)
        ? .inUse(path: path) : .other(path: path, String(cString: strerror(problem)))
    }
  }

  #if os(Linux)
    /// `F_OFD_SETLK`, which the headers of glibc define only for `_GNU_SOURCE`.
    private static let command: Int32 = 37
  #else
    private static let command = F_OFD_SETLK
  #endif

  /// Locks one byte, behind those that SQLite locks (its documentation, "Locking And Concurrency").
  private static func set(_ type: Int16, _ descriptor: Int32) -> Bool {
    var range = flock()
    range.l_type = type
    range.l_whence = Int16(SEEK_SET)
    range.l_start = 0x4000_0000 + 4096
    range.l_len = 1
    // Of the descriptor, not of the process: SQLite closes descriptors of the same file.
    return fcntl(descriptor, command, &range) == 0
  }

  /// Ends the lock, after SQLite has closed the file. Further calls do nothing.
  func release() {
    descriptor.withLockedValue { descriptor in
      if let descriptor { close(descriptor) }
      descriptor = nil
    }
  }
}
