package import APNSMockRules
internal import APNSMockNotation

/// An export of an inbox as text, produced in chunks.
package struct InboxExport: Sendable {
  /// The format of an export; the raw values are the names.
  package enum Format: String, CaseIterable, Sendable {
    /// One record per line.
    case lines = "ndjson"
    /// One array of all records.
    case array = "json"
    /// An HTTP Archive 1.2, which browsers and HTTP debuggers open.
    case httpArchive = "har"
    /// One row for each record, with a header row. It cannot be imported again.
    case table = "csv"
  }

  private let format: Format
  private let snapshot: InboxSnapshot
  /// Whether it has all pushes of the inbox.
  private let isWhole: Bool
  private let rulebook: Rulebook
  private let inbox: Inbox?
  /// The runs in the inbox, for formats that have them.
  private let runs: [TestRun]
  private var iterator: InboxIterator
  private var hasBegun = false
  /// The number of records so far.
  private var count = 0
  /// The number of records of each run so far.
  private var counts: [String: Int] = [:]
  private var list: ExportList
  private var hasEnded = false

  /// Creates an export that begins with the first selected record.
  ///
  /// - Parameters:
  ///   - rulebook: The rules that determine the findings.
  ///   - inbox: The inbox of the snapshot, for findings that depend on several records.
  package init(
    _ snapshot: InboxSnapshot, _ selection: Selection, as format: Format, rulebook: Rulebook, in inbox: Inbox? = nil
  ) {
    (self.format, self.snapshot, isWhole) = (format, snapshot, selection.isEverything)
    list = ExportList(isArray: format == .array)
    self.inbox = inbox
    runs = format == .lines || format == .array ? inbox?.runs.all ?? [] : []
    self.rulebook = rulebook
    iterator = InboxIterator(snapshot, selection)
  }

  /// Returns the next chunk, possibly empty; nil at the end.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read, so that records are missing.
  package mutating func next() throws(StoreUnavailable) -> [UInt8]? {
    guard !hasEnded else { return nil }
    var text: [UInt8] = []
    if !hasBegun {
      hasBegun = true
      try inbox?.updateFindings(by: rulebook)
      if format == .httpArchive { text += Record.harOpening }
      if format == .table { text += Record.csvHeader }
      for run in runs { list.append(run) }
    }
    guard let records = try iterator.next() else {
      hasEnded = true
      let missing = runs.isEmpty ? [:] : inbox?.missingOfRuns(snapshot) ?? [:]
      for run in runs {
        list.append(
          endOf: run, pushes: counts[run.id] ?? 0,
          missing: isWhole ? run.missing.map { $0 + (missing[run.id] ?? 0) } : nil)
      }
      list.end()
      return text + (format == .httpArchive ? Record.harEnd : list.take())
    }
    for record in records {
      count += 1
      append(record, to: &text)
    }
    return text + list.take()
  }

  private mutating func append(_ record: Record, to text: inout [UInt8]) {
    switch format {
    case .table: text += record.csvRow(findings: record.findingNames(by: rulebook, in: inbox))
    case .httpArchive:
      text += (count > 1 ? ",\n" : "\n").utf8
      var writer = JSONWriter(capacity: 2048)
      record.writeHAREntry(to: &writer, findings: record.findingNames(by: rulebook, in: inbox))
      text += writer.bytes
    case .lines, .array:
      let owner = inbox?.runs.attribution.owner(of: record)
      if let owner { counts[owner.run, default: 0] += 1 }
      list.append(
        JSONWriter.object { writer in
          record.writeMembers(
            to: &writer, as: record.origin == nil ? record.name : .seq(count), rulebook: rulebook, in: inbox,
            owner: owner)
          record.writeExportMembers(to: &writer, owner: owner)
        })
    }
  }
}
