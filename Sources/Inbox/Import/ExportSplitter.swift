internal import APNSMockNotation

/// Finds the records in the text of an export, JSON lines or an array of records, which is read in chunks of any size.
struct ExportSplitter {
  /// The maximum length of a record's JSON in bytes; header fields and bodies are limited on receipt.
  static let recordLimit = 1 << 20

  private var line = 1
  /// The number of characters of the current line, with the current one.
  private var column = 0
  /// Where the current record begins.
  private var recordStart = TextPosition(line: 1, column: 1)
  /// The number of open brackets in the current record; 0 between records.
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  private var list = List.none
  private var hasRecords = false
  /// The bytes of the current record from earlier chunks.
  private var partial: [UInt8] = []

  private enum List { case none, open, ended }

  /// Reads the next chunk and calls `add` with the text and the start of each record that ends in it.
  ///
  /// - Throws: `Problem`; do not use the splitter afterwards.
  mutating func read(
    _ piece: [UInt8],
    _ add: (_ text: UnsafeRawBufferPointer, _ start: TextPosition) throws(InboxImport.Problem) -> Void
  ) throws(InboxImport.Problem) {
    var start = 0
    for (index, byte) in piece.enumerated() {
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 0
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
      guard depth > 0 else {
        if try startsRecord(byte) { start = index }
        continue
      }
      try scan(byte)
      guard depth == 0 else { continue }
      let whole = partial + piece[start...index]
      partial = []
      let position = recordStart
      try whole.withUnsafeBytes { text in Result { () throws(InboxImport.Problem) in try add(text, position) } }.get()
    }
    guard depth > 0 else { return }
    partial.append(contentsOf: piece[start...])
    guard partial.count <= Self.recordLimit else {
      throw InboxImport.Problem(line: recordStart.line, reason: "the record that begins here is longer than 1 MiB")
    }
  }

  /// Ends the text.
  ///
  /// - Throws: `Problem` if it is incomplete.
  func finish() throws(InboxImport.Problem) {
    guard depth == 0 else {
      throw InboxImport.Problem(line: recordStart.line, reason: "the record that begins here is incomplete")
    }
    guard list != .open else { throw InboxImport.Problem(line: line, reason: "the list of records has no end") }
  }

  /// Returns whether a record starts with this byte, which is outside of a record.
  private mutating func startsRecord(_ byte: UInt8) throws(InboxImport.Problem) -> Bool {
    switch (byte, list) {
    case (UInt8(ascii: "{"), .none), (UInt8(ascii: "{"), .open):
      recordStart = TextPosition(line: line, column: column)
      depth = 1
      hasRecords = true
      return true
    case (UInt8(ascii: "["), .none) where !hasRecords: list = .open
    case (UInt8(ascii: "]"), .open): list = .ended
    case (UInt8(ascii: " "), _), (UInt8(ascii: "\t"), _), (UInt8(ascii: "\r"), _), (UInt8(ascii: "\n"), _),
      (UInt8(ascii: ","), .open):
      break
    default:
      let isPage = byte == UInt8(ascii: "<")
      throw InboxImport.Problem(
        line: line,
        reason: isPage
          ? "expected an export, but this is a page: open a report in a browser, and specify the file of --export here"
          : "expected a record of a push; an export has one per line, or an array of them")
    }
    return false
  }

  /// Counts brackets and skips strings, to find the end of the current record.
  private mutating func scan(_ byte: UInt8) throws(InboxImport.Problem) {
    if isInString {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInString = false
      } else if byte == UInt8(ascii: "\n") {
        throw InboxImport.Problem(line: line - 1, reason: "the line ends within a string: the record is incomplete")
      }
      return
    }
    switch byte {
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
    case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
    default: break
    }
  }
}
