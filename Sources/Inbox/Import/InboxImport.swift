internal import Notation

/// Recreates an inbox from its export, read in chunks: JSON lines or an array of records.
///
/// Memory use is the records plus the text of one record, whatever the size of the file.
package struct InboxImport {
  /// An error in an export.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    /// The line on which the invalid record begins, from 1.
    package let line: Int
    /// The description of the error.
    package let reason: String

    /// The line and the reason, such as `12: seq is missing`.
    package var description: String { "\(line): \(reason)" }
  }

  /// The maximum length of a record's JSON in bytes; header fields and bodies are limited on receipt.
  static let recordLimit = 1 << 20

  private let maxBytes: Int
  private var reader: RecordReader
  private var records = RecordStorage()
  private var lastSeq = 0

  private var line = 1
  /// The line on which the current record begins.
  private var recordLine = 1
  /// The number of open brackets in the current record; 0 between records.
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  private var list = List.none
  /// The bytes of the current record from earlier chunks.
  private var partial: [UInt8] = []

  private enum List { case none, open, ended }

  /// Creates an import without records.
  ///
  /// - Parameters:
  ///   - maxBytes: The maximum memory of the records, in bytes.
  ///   - now: The present in milliseconds since 1970, if the records will be added to an inbox that receives pushes:
  ///     the times between these and the imported ones are then correct.
  package init(maxBytes: Int, now: Int64? = nil) {
    self.maxBytes = maxBytes
    reader = RecordReader(arrivalOffset: now.map { MachineTime.nanoseconds &- $0 &* 1_000_000 } ?? 0)
  }

  /// Reads the next chunk of the file.
  ///
  /// - Throws: `Problem`; do not use the import afterwards.
  package mutating func read(_ piece: UnsafeRawBufferPointer) throws(Problem) {
    var start = 0
    for (index, byte) in piece.enumerated() {
      if byte == UInt8(ascii: "\n") { line += 1 }
      guard depth > 0 else {
        if try startsRecord(byte) { start = index }
        continue
      }
      try scan(byte)
      guard depth == 0 else { continue }
      let end = UnsafeRawBufferPointer(rebasing: piece[start...index])
      if partial.isEmpty {
        try addRecord(end)
      } else {
        partial.append(contentsOf: end)
        let whole = partial
        partial.removeAll(keepingCapacity: true)
        try whole.withUnsafeBytes { bytes in Result { () throws(Problem) in try addRecord(bytes) } }.get()
      }
    }
    guard depth > 0 else { return }
    partial.append(contentsOf: piece[start...])
    guard partial.count <= Self.recordLimit else {
      throw Problem(line: recordLine, reason: "the record that begins here is longer than 1 MiB")
    }
  }

  /// Ends the import.
  ///
  /// - Returns: An inbox without limits that has the records of the file with their `seq`.
  /// - Throws: `Problem` if the file is incomplete.
  package mutating func finish() throws(Problem) -> Inbox {
    guard depth == 0 else { throw Problem(line: recordLine, reason: "the record that begins here is incomplete") }
    guard list != .open else { throw Problem(line: line, reason: "the list of records has no end") }
    return Inbox(imported: records, lastSeq: lastSeq)
  }

  /// Returns whether a record starts with this byte, which is outside of a record.
  private mutating func startsRecord(_ byte: UInt8) throws(Problem) -> Bool {
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
      throw Problem(line: line, reason: "expected a record of a push; an export has one per line, or an array of them")
    }
    return false
  }

  /// Counts brackets and skips strings, to find the end of the current record.
  private mutating func scan(_ byte: UInt8) throws(Problem) {
    if isInString {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInString = false
      } else if byte == UInt8(ascii: "\n") {
        throw Problem(line: line - 1, reason: "the line ends within a string: the record is incomplete")
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

  private mutating func addRecord(_ text: UnsafeRawBufferPointer) throws(Problem) {
    let record: Record
    do throws(JSONText.Problem) {
      record = try reader.record(text)
    } catch {
      throw Problem(line: recordLine, reason: "\(error)")
    }
    guard record.seq > lastSeq else {
      throw Problem(
        line: recordLine,
        reason: "seq \(record.seq) follows seq \(lastSeq); the records of an export must be in order")
    }
    lastSeq = record.seq
    records.append(record)
    guard records.bytes <= maxBytes else {
      throw Problem(
        line: recordLine, reason: "the \(records.count) pushes up to here require more than \(maxBytes) bytes")
    }
  }
}
