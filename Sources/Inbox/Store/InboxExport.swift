package import APNSRules
internal import Notation

/// An export of an inbox as text, produced in chunks.
package struct InboxExport: Sendable {
  /// The format of an export; the raw values are the names.
  package enum Format: String, CaseIterable, Sendable {
    /// One record per line.
    case lines = "ndjson"
    /// One array of all records.
    case array = "json"
  }

  private let format: Format
  private let rulebook: Rulebook
  private let inbox: Inbox?
  private var iterator: InboxIterator
  private var hasBegun = false
  private var hasRecord = false
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
    inbox?.updateFindings(by: rulebook)
    self.rulebook = rulebook
    iterator = InboxIterator(snapshot, selection)
  }

  /// Returns the next chunk, possibly empty; nil at the end.
  package mutating func next() -> [UInt8]? {
    guard !hasEnded else { return nil }
    var text: [UInt8] = []
    if format == .array, !hasBegun { text.append(UInt8(ascii: "[")) }
    hasBegun = true
    guard let records = iterator.next() else {
      hasEnded = true
      if format == .array { text.append(contentsOf: "\n]\n".utf8) }
      return text
    }
    for record in records {
      if format == .array { text.append(contentsOf: (hasRecord ? ",\n" : "\n").utf8) }
      hasRecord = true
      var writer = JSONWriter(capacity: 2048)
      record.write(to: &writer, rulebook: rulebook, in: inbox)
      text += writer.bytes
      if format == .lines { text.append(UInt8(ascii: "\n")) }
    }
    return text
  }
}
