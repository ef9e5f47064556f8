internal import GRDB
package import Inbox
internal import PlatformLibc

/// Why a file cannot be used as a store. Its description is a sentence with the repair.
package enum SQLiteStoreError: Error, CustomStringConvertible {
  /// Another program has locked the file.
  case inUse(path: String)
  /// The file is not an SQLite database.
  case notDatabase(path: String)
  /// The file was damaged while it was in use.
  case damaged(path: String, String)
  /// A row has a value that this program cannot have written.
  case damagedRow(path: String, DamagedRow)
  /// The file was removed or replaced while it was in use.
  case removed(path: String)
  /// The file is a database of another program.
  case foreign(path: String)
  /// The file was written by a newer version of this program.
  case newer(path: String, version: Int)
  /// There is something other than a file, such as a folder or a device.
  case notFile(path: String)
  /// The file or its folder cannot be written.
  case notWritable(path: String, String)
  /// Any other error of SQLite.
  case other(path: String, String)

  init(_ error: any Error, path: String) {
    if let error = error as? SQLiteStoreError {
      self = error
    } else if let row = error as? DamagedRow {
      self = .damagedRow(path: path, row)
    } else if let error = error as? DatabaseError {
      let text = error.message ?? error.resultCode.description
      switch error.resultCode {
      case .SQLITE_NOTADB, .SQLITE_CORRUPT: self = .notDatabase(path: path)
      case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM: self = .notWritable(path: path, text)
      case .SQLITE_BUSY, .SQLITE_LOCKED: self = .inUse(path: path)
      default: self = .other(path: path, text)
      }
    } else {
      self = .other(path: path, String(describing: error))
    }
  }

  package var description: String {
    switch self {
    case .inUse(let path):
      "the store \(path) is used by another program: stop it, or choose another file with --store sqlite:FILE"
    case .notDatabase(let path):
      "\(path) is no SQLite database, or is damaged: choose another file with --store sqlite:FILE, or remove it"
    case .damaged(let path, let text):
      "\(path) is damaged (\(text)): stop the server, and restore a backup, or save what can be read with "
        + "sqlite3 \(path) .recover"
    case .damagedRow(let path, let row):
      "\(path) is damaged: \(row): restore a backup, or stop the server and run sqlite3 \(path) \"\(row.repair)\""
    case .removed(let path):
      "\(path) or \(path)-wal was removed or replaced while the server runs: move it back, or save the pushes with "
        + "apns-mock export and restart the server"
    case .foreign(let path):
      "\(path) is a database of another program: choose another file with --store sqlite:FILE"
    case .notFile(let path): "\(path) is not a file: choose another one with --store sqlite:FILE"
    case .newer(let path, let version):
      "\(path) was written by a newer version of apns-mock (format \(version), this one knows \(Schema.version)): "
        + "use that version, or choose another file with --store sqlite:FILE"
    case .notWritable(let path, let text):
      "cannot write \(path) (\(text)): the folder must exist, and this user must be able to write the file and the folder"
    case .other(let path, let text):
      "the store \(path) failed: \(text): repair the cause, or choose another file with --store sqlite:FILE"
    }
  }
}

/// Creates a file that only this user can read, unless it exists. SQLite gives the files beside it the same permissions.
func createPrivateFile(_ path: String) throws(SQLiteStoreError) {
  let created = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
  guard created >= 0 else { throw .notWritable(path: path, String(cString: strerror(errno))) }
  close(created)
}

/// A lock that keeps a second server from using a file. The system releases it when the process ends.
final class FileLock: Sendable {
  private let file: String
  private let descriptor: Int32
  /// Whether the file of the lock was missing.
  private let isNew: Bool

  init(path: String) throws(SQLiteStoreError) {
    // A link to the file must not have a lock of its own, also if the file is still missing.
    var resolved = realpath(path, nil)
    defer { free(resolved) }
    var link = stat()
    if resolved == nil, lstat(path, &link) == 0 {
      try createPrivateFile(path)
      resolved = realpath(path, nil)
    }
    file = (resolved.map { String(cString: $0) } ?? path) + ".lock"
    var attempts = 0
    while true {
      attempts += 1
      var opened = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      let isNew = opened >= 0
      if !isNew, errno == EEXIST { opened = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o644) }
      guard opened >= 0 else { throw .notWritable(path: file, String(cString: strerror(errno))) }
      guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
        let problem = errno
        close(opened)
        throw problem == EWOULDBLOCK ? .inUse(path: path) : .other(path: path, String(cString: strerror(problem)))
      }
      // Another server may have removed the file between the two calls. Some file systems do not show that it is the same.
      var (locked, named) = (stat(), stat())
      let isSame = fstat(opened, &locked) == 0 && stat(file, &named) == 0 && locked.st_ino == named.st_ino
      if isSame || attempts == 3 {
        (descriptor, self.isNew) = (opened, isNew)
        return
      }
      close(opened)
    }
  }

  func release() { flock(descriptor, LOCK_UN) }

  /// Removes the file of the lock if it was missing before, because the store is not opened.
  func discard() { if isNew { unlink(file) } }

  deinit { close(descriptor) }
}
