public import APNSRules
internal import Notation

/// A snapshot of an inbox as text, made piece by piece.
public struct InboxExport: Sendable {
  /// How records are written down; the raw values are the names.
  public enum Format: String, CaseIterable, Sendable {
    /// One a line.
    case lines = "ndjson"
    /// All in one array.
    case array = "json"
  }

  private let format: Format
  private let rulebook: Rulebook
  private let inbox: Inbox?
  private var walk: InboxWalk
  private var hasBegun = false
  private var hasRecord = false
  private var hasEnded = false

  /// Begins before the first selected record.
  ///
  /// - Parameters:
  ///   - rulebook: judges what the provider could do better.
  ///   - inbox: where the snapshot is of, for the findings that several records prove.
  public init(
    _ snapshot: InboxSnapshot, _ selection: Selection, as format: Format, rulebook: Rulebook, in inbox: Inbox? = nil
  ) {
    self.format = format
    self.inbox = inbox
    inbox?.judge(by: rulebook)
    self.rulebook = rulebook
    walk = InboxWalk(snapshot, selection)
  }

  /// The next piece, possibly an empty one; nil at the end.
  public mutating func next() -> [UInt8]? {
    guard !hasEnded else { return nil }
    var text: [UInt8] = []
    if format == .array, !hasBegun { text.append(UInt8(ascii: "[")) }
    hasBegun = true
    guard let records = walk.next() else {
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
