internal import Notation

/// Makes an inbox again from its export, from pieces of the file as they come: a record a line, or an array of records.
///
/// What it takes in memory are the records and one of them as text, whatever the file.
public struct InboxImport {
  /// What is wrong with an export.
  public struct Problem: Error, Equatable, CustomStringConvertible {
    /// The line where the record begins that is meant, from 1.
    public let line: Int
    /// What is wrong there.
    public let reason: String

    /// Line and reason, as `12: seq is missing`.
    public var description: String { "\(line): \(reason)" }
  }

  /// No record is longer than this: header fields and body are bounded where they come in.
  static let recordLimit = 1 << 20

  private let maxBytes: Int
  private var reader = RecordReader()
  private var records = RecordStorage()
  private var lastSeq = 0

  private var line = 1
  /// The line on which the record began that is being read.
  private var recordLine = 1
  /// Brackets that are open in it; 0 between records.
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  private var list = List.none
  /// What came of a record in earlier pieces.
  private var partial: [UInt8] = []

  private enum List { case none, open, ended }

  /// Begins with nothing.
  ///
  /// - Parameter maxBytes: what the records may take in memory.
  public init(maxBytes: Int) { self.maxBytes = maxBytes }

  /// Takes the next piece of the file.
  ///
  /// - Throws: `Problem`; it is of no use then.
  public mutating func read(_ piece: UnsafeRawBufferPointer) throws(Problem) {
    var start = 0
    for (index, byte) in piece.enumerated() {
      if byte == UInt8(ascii: "\n") { line += 1 }
      guard depth > 0 else {
        if try begins(byte) { start = index }
        continue
      }
      try follow(byte)
      guard depth == 0 else { continue }
      let end = UnsafeRawBufferPointer(rebasing: piece[start...index])
      if partial.isEmpty {
        try take(end)
      } else {
        partial.append(contentsOf: end)
        let whole = partial
        partial.removeAll(keepingCapacity: true)
        try whole.withUnsafeBytes { bytes in Result { () throws(Problem) in try take(bytes) } }.get()
      }
    }
    guard depth > 0 else { return }
    partial.append(contentsOf: piece[start...])
    guard partial.count <= Self.recordLimit else {
      throw Problem(line: recordLine, reason: "the record that begins here has no end within 1 MiB")
    }
  }

  /// Ends.
  ///
  /// - Returns: an inbox with the records of the file and their numbers. It has no limits.
  /// - Throws: `Problem` if the file ends too early.
  public mutating func finish() throws(Problem) -> Inbox {
    guard depth == 0 else { throw Problem(line: recordLine, reason: "the record that begins here has no end") }
    guard list != .open else { throw Problem(line: line, reason: "the list of records has no end") }
    return Inbox(imported: records, lastSeq: lastSeq)
  }

  /// Whether a record begins with this byte, which is in none.
  private mutating func begins(_ byte: UInt8) throws(Problem) -> Bool {
    switch (byte, list) {
    case (UInt8(ascii: "{"), .none), (UInt8(ascii: "{"), .open):
      recordLine = line
      depth = 1
      return true
    case (UInt8(ascii: "["), .none) where lastSeq == 0: list = .open
    case (UInt8(ascii: "]"), .open): list = .ended
    case (UInt8(ascii: " "), _), (UInt8(ascii: "\t"), _), (UInt8(ascii: "\r"), _), (UInt8(ascii: "\n"), _),
      (UInt8(ascii: ","), .open):
      break
    default:
      throw Problem(line: line, reason: "no record of a push begins here; an export has one a line, or a list of them")
    }
    return false
  }

  private mutating func follow(_ byte: UInt8) throws(Problem) {
    if isInString {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInString = false
      } else if byte == UInt8(ascii: "\n") {
        throw Problem(line: line - 1, reason: "the line ends within a string: the record on it is not whole")
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

  private mutating func take(_ text: UnsafeRawBufferPointer) throws(Problem) {
    let record: Record
    do throws(JSONText.Problem) {
      record = try reader.record(text)
    } catch {
      throw Problem(line: recordLine, reason: "\(error)")
    }
    guard record.seq > lastSeq else {
      throw Problem(
        line: recordLine,
        reason: "seq \(record.seq) comes after seq \(lastSeq); an export has its records in their order")
    }
    lastSeq = record.seq
    records.append(record)
    guard records.bytes <= maxBytes else {
      throw Problem(line: recordLine, reason: "the \(records.count) pushes up to here take more than \(maxBytes) bytes")
    }
  }
}
