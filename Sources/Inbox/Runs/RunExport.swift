internal import APNSMockNotation
package import APNSMockRules

/// The runs, their tests and their pushes as an export, made in chunks.
package struct RunExport: Sendable {
  private let records: RunRecords
  private let ids: Set<String>?
  private let rulebook: Rulebook
  private var iterator: RunRecordsIterator
  private var list: ExportList
  private var counts: [String: Int] = [:]
  private var state = State.begins

  private enum State { case begins, reads, ended }

  /// Creates an export.
  ///
  /// - Parameters:
  ///   - ids: The runs; nil for all, and the pushes of none.
  ///   - isArray: Whether it is one array, in place of an object per line.
  package init(_ records: RunRecords, of ids: Set<String>? = nil, isArray: Bool = false, by rulebook: Rulebook) {
    (self.records, self.ids, self.rulebook, list) = (records, ids, rulebook, ExportList(isArray: isArray))
    iterator = records.makeIterator()
  }

  /// Returns the next chunk, possibly empty; nil at the end.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read, so that pushes are missing.
  package mutating func next() throws(StoreUnavailable) -> [UInt8]? {
    switch state {
    case .ended: return nil
    case .begins:
      state = .reads
      for run in records.runs where ids?.contains(run.id) ?? true { list.append(run) }
    case .reads:
      guard let group = try iterator.next() else {
        state = .ended
        for run in records.runs where ids?.contains(run.id) ?? true {
          list.append(endOf: run, pushes: counts[run.id] ?? 0, missing: records.missing(of: [run.id]))
        }
        list.end()
        return list.take()
      }
      for record in group {
        let owner = records.attribution.owner(of: record)
        if let ids, owner.map({ ids.contains($0.run) }) != true { continue }
        if let owner { counts[owner.run, default: 0] += 1 }
        list.append(records.object(record, of: owner, as: .seq(record.seq), by: rulebook))
      }
    }
    return list.take()
  }
}

/// The text of an export in JSON: an object per line, or one array of all objects.
struct ExportList: Sendable {
  private let isArray: Bool
  private var text: [UInt8] = []
  private var hasItem = false

  init(isArray: Bool) { self.isArray = isArray }

  /// Appends an object.
  mutating func append(_ object: [UInt8]) {
    if isArray { text += (hasItem ? ",\n" : "[\n").utf8 }
    hasItem = true
    text += object
    if !isArray { text.append(UInt8(ascii: "\n")) }
  }

  /// Appends a run and its tests.
  mutating func append(_ run: TestRun) {
    append(JSONWriter.object { run.writeMembers(to: &$0) })
    for test in run.tests { append(JSONWriter.object { test.writeMembers(to: &$0, of: run.id) }) }
  }

  /// Appends a run again, behind its pushes, so that an export that is cut off can be recognized.
  ///
  /// - Parameters:
  ///   - pushes: The number of its pushes in the export.
  ///   - missing: The number of its other pushes; nil if it is unknown.
  mutating func append(endOf run: TestRun, pushes: Int, missing: Int?) {
    var run = run
    run.missing = missing
    append(
      JSONWriter.object { writer in
        run.writeMembers(to: &writer)
        writer.member("pushes", pushes)
      })
  }

  /// Ends the text.
  mutating func end() {
    if isArray { text += (hasItem ? "\n]\n" : "[\n]\n").utf8 }
  }

  /// Returns and removes the text so far.
  mutating func take() -> [UInt8] {
    defer { text = [] }
    return text
  }
}

extension RunRecords {
  /// Returns a push as an object of an export; see `Record.writeMembers`.
  func object(
    _ record: Record, of owner: RunAttribution.Owner?, as name: PushName, connection prefix: String = "",
    by rulebook: Rulebook
  ) -> [UInt8] {
    JSONWriter.object { writer in
      record.writeMembers(
        to: &writer, as: name, rulebook: rulebook, owner: owner,
        findings: findings[record.name]?.map(\.kind.rawValue) ?? [], connection: prefix)
      record.writeExportMembers(to: &writer, owner: owner)
    }
  }
}

extension JSONWriter {
  /// Returns an object.
  static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter(capacity: 2048)
    writer.object(members)
    return writer.bytes
  }
}
