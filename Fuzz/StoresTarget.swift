import APNSMockRules
import Foundation
import GRDBSQLite
import APNSMockInbox
import MockAPNS
import APNSMockSQLiteStore

/// Fuzzes stored inboxes: cells and bytes of a file are edited. Then it is opened, read in all ways, and written; it is
/// refused, or requests are. No error may contain what a row contains.
struct StoresTarget: FuzzTarget {
  private static let rulebook = Rulebook()
  /// A text in edited cells that must not be in an error.
  private static let secret = "confidential"

  private let folder: URL
  private let content: Data

  private var path: String { folder.appending(path: "inbox.db").path }

  /// The columns of each table.
  private static let tables: [(name: String, columns: [String])] =
    [StoredTable.push, .connection, .providerToken, .checkList, .contents].map {
      ($0.name, $0.columns)
    } + [
      ("block", ["first_seq", "oldest", "newest"] + RecordColumn.Hashed.allCases.map(\.rawValue)), ("name", ["name"]),
    ]

  /// One edit of each cell of the first rows with each kind of value, and some of bytes.
  let seeds = Self.madeSeeds()

  private static func madeSeeds() -> [[UInt8]] {
    var seeds: [[UInt8]] = [
      [1, 0, 0, 0, 20, 4, 1, 2, 3, 4], [1, 0, 0, 0x80, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0x80, 1],
    ]
    for (table, columns) in tables.map(\.columns).enumerated() {
      for column in columns.indices {
        for value: UInt8 in 0..<8 {
          let bytes = [UInt8](repeating: value == 1 ? 0x7F : 0xFF, count: 8)
          seeds.append([0, UInt8(table), UInt8(column), value & 1, value] + bytes)
        }
      }
    }
    return seeds
  }

  /// Stores the records of `ConnectionsTarget`'s seeds, with a complete block of the index.
  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "apns-mock-fuzz-\(getpid())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appending(path: "inbox.db").path
    let connections = try ConnectionsTarget()
    var records: [Record] = []
    for file in try FileManager.default.contentsOfDirectory(
      at: URL(filePath: "Fuzz/Seeds/connections"), includingPropertiesForKeys: nil)
    {
      let inbox = try Data(contentsOf: file).withUnsafeBytes { connections.converse($0) }.inbox
      records += try (0...inbox.snapshot().lastSeq).compactMap { try inbox.record(seq: $0) }
    }
    for part in [Array(records.prefix(2)), records] {
      let (inbox, writer) = try Self.open(path)
      var part = part
      inbox.append(&part)
      try writer.stop()
      Self.execute("UPDATE contents SET last_seq = max(last_seq, 4092), reserved_seq = max(last_seq, 4092)", in: path)
    }
    Self.execute("PRAGMA wal_checkpoint(TRUNCATE)", in: path)
    content = try Data(contentsOf: folder.appending(path: "inbox.db"))
    expect(content.count > 1 << 16, "the file contains nothing")
  }

  private static func open(_ path: String) throws -> (Inbox, RecordWriter) {
    var options = RecordWriter.Options()
    // Otherwise closing a store that fails takes seconds.
    (options.recentRecords, options.failurePolicy) = (2, .drop)
    let writer = RecordWriter(try SQLiteStore(path: path, isDurable: false, seed: 1) { _ in }, options) { event in
      switch event {
      case .failed(let text), .readFailed(let text), .leftOut(let text): expect(!text.contains(secret), text)
      case .recovered: break
      }
    }
    return (Inbox(maxRecords: 60, maxBytes: .max, writer: writer), writer)
  }

  private static func execute(_ sql: String, in path: String) {
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    guard sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else { return }
    sqlite3_exec(handle, sql, nil, nil, nil)
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    for suffix in ["-wal", "-shm", ".lock", ".version1", ".version2"] { unlink(path + suffix) }
    var input = Input(bytes)
    var edited = content
    var statements: [String] = []
    while !input.isAtEnd {
      switch input.byte() % 3 {
      case 0: statements.append(Self.edit(&input))
      case 1:
        let position = Self.number(&input, bytes: 4) % max(1, edited.count)
        for byte in input.piece(Int(input.byte())) where position < edited.count { edited[position] = byte }
      default: edited = edited.prefix(Self.number(&input, bytes: 4) % max(1, edited.count))
      }
    }
    guard (try? edited.write(to: URL(filePath: path))) != nil else { return }
    if !statements.isEmpty { Self.execute(statements.joined(separator: ";"), in: path) }
    do {
      let (inbox, writer) = try Self.open(path)
      defer { try? writer.stop() }
      use(inbox)
    } catch {
      let text = "\(error)"
      expect(!text.contains(Self.secret) && text.contains(path), text)
    }
  }

  private static func number(_ input: inout Input, bytes: Int) -> Int {
    (0..<bytes).reduce(0) { number, _ in number << 8 | Int(input.byte()) }
  }

  /// Returns the SQL that edits a cell.
  private static func edit(_ input: inout Input) -> String {
    let table = tables[Int(input.byte()) % tables.count]
    let column = table.columns[Int(input.byte()) % table.columns.count]
    let row = input.byte()
    let value =
      switch input.byte() % 8 {
      case 0: "NULL"
      case 1: String(Int64(truncatingIfNeeded: number(&input, bytes: 8)))
      case 2: String(Int8(bitPattern: input.byte()))
      case 3: "1.5e\(input.byte())"
      case 4: "x'\(hex(input.piece(Int(input.byte()))))'"
      case 5: "CAST(x'\(hex(input.piece(Int(input.byte()))))' AS TEXT)"
      case 6: "'\(secret)'"
      default: "printf('%.*c', \(Int(input.byte()) << 10), 'x')"
      }
    let condition =
      table.name == "name"
      ? "" : "WHERE rowid = (SELECT rowid FROM \(table.name) ORDER BY rowid LIMIT 1 OFFSET \(row % 64))"
    return "UPDATE OR IGNORE \(table.name) SET \(column) = \(value) \(condition)"
  }

  private static func hex(_ bytes: UnsafeRawBufferPointer) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 0xF, radix: 16) }.joined()
  }

  /// Reads and writes in all ways.
  private func use(_ inbox: Inbox) {
    for query in ["", "status:400", "reason:BadTopic", "device_token:ab", "is:duplicate", "text:hello", "findings:*"] {
      let snapshot = inbox.snapshot().leavingOutDamage
      let context = FilterContext(now: 1_769_860_800_000, snapshot: snapshot)
      guard let page = try? PageQuery([("q", query), ("kind", "*"), ("limit", "100")], in: context) else { continue }
      guard let found = try? snapshot.page(page) else { continue }
      var statistics = InboxStatistics(buckets: 5)
      for record in found.items {
        statistics.add(record)
        _ = inbox.findings(on: record, by: Self.rulebook)
      }
    }
    for format in InboxExport.Format.allCases {
      var export = InboxExport(inbox.snapshot(), .allKinds, as: format, rulebook: Self.rulebook, in: inbox)
      while (try? export.next()) != nil {}
    }
    if let record = (1...2).lazy.compactMap({ try? inbox.record(seq: $0) }).first {
      inbox.setDeliveries([(record.seq, .delivered)])
      inbox.append(record)
    }
    inbox.writer?.flush()
  }
}
