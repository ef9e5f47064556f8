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
  private let rulebook: Rulebook
  private let inbox: Inbox?
  private var iterator: InboxIterator
  private var hasBegun = false
  /// The number of records so far.
  private var count = 0
  /// Whether a run, a test or a record has been written, which a comma separates from the next one in an array.
  private var hasItem = false
  private var hasEnded = false

  /// Creates an export that begins with the first selected record.
  ///
  /// - Parameters:
  ///   - rulebook: The rules that determine the findings.
  ///   - inbox: The inbox of the snapshot, for findings that depend on several records.
  package init(
    _ snapshot: InboxSnapshot, _ selection: Selection, as format: Format, rulebook: Rulebook, in inbox: Inbox? = nil
  ) {
    self.format = format
    self.inbox = inbox
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
      try inbox?.updateFindings(by: rulebook)
      text += opening
    }
    if !hasBegun, format == .lines || format == .array { appendRuns(to: &text) }
    hasBegun = true
    guard let records = try iterator.next() else {
      hasEnded = true
      return text + end
    }
    for record in records {
      if format == .array || format == .httpArchive { text.append(contentsOf: (hasItem ? ",\n" : "\n").utf8) }
      hasItem = true
      count += 1
      append(record, to: &text)
    }
    return text
  }

  /// Appends the runs and their tests, each as an object of its own.
  private mutating func appendRuns(to text: inout [UInt8]) {
    func append(_ write: (inout JSONWriter) -> Void) {
      if format == .array { text.append(contentsOf: (hasItem ? ",\n" : "\n").utf8) }
      hasItem = true
      var writer = JSONWriter()
      writer.object(write)
      text += writer.bytes
      if format == .lines { text.append(UInt8(ascii: "\n")) }
    }
    for run in inbox?.runs.all ?? [] { run.writeLines(append) }
  }

  private func append(_ record: Record, to text: inout [UInt8]) {
    if format == .table {
      text += record.csvRow(findings: record.findingNames(by: rulebook, in: inbox))
      return
    }
    var writer = JSONWriter(capacity: 2048)
    if format == .httpArchive {
      record.writeHAREntry(to: &writer, findings: record.findingNames(by: rulebook, in: inbox))
    } else {
      record.writeExported(to: &writer, number: count, rulebook: rulebook, in: inbox)
    }
    text += writer.bytes
    if format == .lines { text.append(UInt8(ascii: "\n")) }
  }

  private var opening: [UInt8] {
    switch format {
    case .lines: []
    case .array: Array("[".utf8)
    case .httpArchive: Record.harOpening
    case .table: Record.csvHeader
    }
  }

  private var end: [UInt8] {
    switch format {
    case .lines, .table: []
    case .array: Array("\n]\n".utf8)
    case .httpArchive: Record.harEnd
    }
  }
}
