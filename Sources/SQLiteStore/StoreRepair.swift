internal import GRDB
internal import APNSMockInbox
internal import APNSMockPlatformLibc

/// Repairs a file: copies what can be read to a new one, which takes its place. The former file is kept.
package struct StoreRepair {
  /// What was wrong.
  package let check: StoreCheck
  /// The former file; nil if nothing was wrong and nothing was changed.
  package let former: String?

  /// Repairs a file that no server uses.
  ///
  /// - Parameter progress: Is called now and then with a sentence about what is done.
  /// - Throws: `SQLiteStoreError` if the file cannot be repaired. It is then unchanged.
  package init(path: String, progress: (String) -> Void) throws(SQLiteStoreError) {
    // Of a link, the file itself is replaced.
    let path = Self.resolved(path)
    let lock = try FileLock(existing: path)
    defer { lock.release() }
    let found = try Self.reading(path, lock) { file throws(SQLiteStoreError) in try StoreCheck(file, progress) }
    guard found.problemCount > 0 else {
      (check, former) = (found, nil)
      return
    }
    let (new, old) = (path + ".repairing", path + ".damaged")
    guard access(old, F_OK) != 0 else { throw .formerFileExists(path: old) }
    Self.remove(new)
    do {
      progress("copying what can be read to \(new)")
      check = try Self.reading(path, lock) { file throws(SQLiteStoreError) in
        do { return try Self.copy(file, to: new, progress) } catch { throw SQLiteStoreError(error, path: path) }
      }
      try Self.exchange(path, with: new, keptAs: old)
    } catch {
      Self.remove(new)
      throw SQLiteStoreError(error, path: path)
    }
    former = old
  }

  private static func reading(
    _ path: String, _ lock: FileLock, _ read: (ReadableFile) throws(SQLiteStoreError) -> StoreCheck
  ) throws(SQLiteStoreError) -> StoreCheck {
    let file = try ReadableFile(path, lock)
    defer { file.close() }
    return try read(file)
  }

  private static func resolved(_ path: String) -> String {
    let resolved = realpath(path, nil)
    defer { free(resolved) }
    return resolved.map { String(cString: $0) } ?? path
  }

  private static func remove(_ path: String) { for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) } }

  /// The size of the records that are written in one transaction, in bytes.
  private static let batchSize = 8 << 20

  private static func copy(_ file: ReadableFile, to new: String, _ progress: (String) -> Void) throws -> StoreCheck {
    var check = StoreCheck()
    for problem in try file.pageProblems() { check.add(problem) }
    var contents = try file.read { db in
      do {
        return try SQLiteStore.contents(db)
      } catch {
        check.add(ReadableFile.text(of: error))
        return StoredContents(repairing: db)
      }
    }
    let seed = try? file.read { try SQLiteStore.seed($0) }
    let store = try SQLiteStore(path: new, isDurable: true, seed: seed ?? 0) { _ in }
    do {
      (contents.count, contents.bytes) = (0, 0)
      var batch = StoreBatch()
      batch.serverState = ((try? file.read { try $0.serverState() }) ?? [:]).mapValues { $0 }
      func write() throws {
        // The last of them goes on after all numbers that clients may know.
        contents.lastSeq = max(contents.lastSeq, batch.appended.last?.seq ?? 0)
        batch.contents = contents
        _ = try store.write(batch) {}
        batch = StoreBatch()
      }
      var size = 0
      try file.forEachPush(to: &check, progress: progress) { record, check in
        guard record.seq > contents.emptiedThrough else { return }
        check.readable += 1
        contents.count += 1
        contents.bytes += record.storedSize
        // The number of the connection `c7` is 7.
        contents.lastConnection = max(contents.lastConnection, Int(record.connection.id.dropFirst()) ?? 0)
        batch.appended.append(copy record)
        size += record.storedSize
        guard size >= batchSize else { return }
        size = 0
        try write()
      }
      try write()
      try store.close()
    } catch {
      try? store.close()
      throw error
    }
    return check
  }

  /// Puts the new file in the place of the former one, which gets another name together with its log.
  private static func exchange(_ path: String, with new: String, keptAs old: String) throws {
    // The log first: SQLite must not find it beside another file.
    for (from, to) in [(path + "-wal", old + "-wal"), (path, old), (new, path)] {
      guard rename(from, to) != 0, !(errno == ENOENT && from.hasSuffix("-wal")) else { continue }
      throw SQLiteStoreError.notWritable(path: from, String(cString: strerror(errno)))
    }
    unlink(path + "-shm")
  }
}

extension StoredContents {
  /// Returns the largest plausible `seq`: a server leaves no larger gaps than `gapLimit`.
  static func seqLimit(_ db: Database) -> Int {
    guard let last = try? db.number("SELECT last_seq FROM contents").map({ Int($0) }), numbers.contains(last) else {
      return numbers.upperBound
    }
    return min(last + gapLimit, numbers.upperBound)
  }

  /// Takes from a damaged row what is plausible.
  fileprivate init(repairing db: Database) {
    self.init()
    let newest = Int((try? db.number("SELECT max(seq) FROM push WHERE seq <= $1", [String(Self.seqLimit(db))])) ?? 0)
    func number(_ column: String) -> Int {
      guard let number = try? db.number("SELECT \(column) FROM contents").map({ Int($0) }),
        Self.numbers.contains(number)
      else {
        return 0
      }
      return number
    }
    evicted = number("evicted")
    // Numbers that clients may know are not used again.
    lastSeq = [newest, number("last_seq"), number("reserved_seq")].filter { $0 <= newest + Self.gapLimit }.max() ?? 0
    emptiedThrough = number("emptied_through") <= lastSeq ? number("emptied_through") : 0
    lastEvicted = min(number("last_evicted"), lastSeq)
    lastConnection = number("last_connection")
  }
}
