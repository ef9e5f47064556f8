internal import APNSMockNotation

/// Recreates an inbox from its export, read in chunks: JSON lines or an array of records.
///
/// Memory use is the records plus the text of one record, whatever the size of the file.
package struct InboxImport {
  /// An error in an export.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    /// The line of the error, from 1.
    package let line: Int
    /// The description of the error.
    package let reason: String

    /// The line and the reason, such as `12: seq is missing`.
    package var description: String { "\(line): \(reason)" }

    init(line: Int, reason: String) {
      self.line = line
      self.reason = reason
    }

    /// Creates the error for one in a record's JSON.
    ///
    /// - Parameters:
    ///   - text: The JSON.
    ///   - start: Where it begins in the export.
    init(_ problem: JSONText.Problem, in text: UnsafeRawBufferPointer, at start: TextPosition) {
      let before = text.prefix(problem.offset)
      let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
      // Characters, as `ExportSplitter` counts them.
      let characters = before[(lineStart ?? 0)...].count { $0 & 0xC0 != 0x80 }
      let column = lineStart == nil ? start.column + characters : characters + 1
      self.init(
        line: start.line + before.count { $0 == UInt8(ascii: "\n") }, reason: "\(problem.reason) at column \(column)")
    }
  }

  private var splitter = ExportSplitter()
  private var content: Content

  /// The records read so far.
  fileprivate struct Content {
    let maxBytes: Int
    var reader: RecordReader
    var records = RecordStorage()
    var lastSeq = 0
    var runs = RunCollector()
  }

  /// Creates an import without records.
  ///
  /// - Parameters:
  ///   - maxBytes: The maximum memory of the records, in bytes.
  ///   - now: The present in milliseconds since 1970, if the records will be added to an inbox that receives pushes:
  ///     the times between these and the imported ones are then correct.
  ///   - connectionPrefix: Precedes the `id` of each connection, so that the connections of the inbox are not mistaken for
  ///     those of the server that made the export.
  package init(maxBytes: Int, now: Int64? = nil, connectionPrefix: String = "") {
    content = Content(
      maxBytes: maxBytes,
      reader: RecordReader(
        arrivalOffset: now.map { MachineTime.nanoseconds &- $0 &* 1_000_000 } ?? 0, connectionPrefix: connectionPrefix))
  }

  /// Reads the next chunk of the file.
  ///
  /// - Throws: `Problem`; do not use the import afterwards.
  package mutating func read(_ piece: [UInt8]) throws(Problem) {
    try splitter.read(piece) { text, start throws(Problem) in try content.add(text, at: start) }
  }

  /// Ends the import.
  ///
  /// - Returns: An inbox without limits that has the records of the file with their `seq`.
  /// - Throws: `Problem` if the file is incomplete.
  package mutating func finish() throws(Problem) -> Inbox {
    try splitter.finish()
    return Inbox(imported: content.records, lastSeq: content.lastSeq, runs: content.runs.imported)
  }
}

extension InboxImport.Content {
  fileprivate mutating func add(_ text: UnsafeRawBufferPointer, at start: TextPosition) throws(InboxImport.Problem) {
    let record: Record
    do throws(JSONText.Problem) {
      if RunLine.isOne(text) { return runs.add(try RunLine(text)) }
      record = try reader.read(text)
    } catch {
      throw InboxImport.Problem(error, in: text, at: start)
    }
    guard record.seq > lastSeq else {
      throw InboxImport.Problem(
        line: start.line, reason: "seq \(record.seq) follows seq \(lastSeq); the records of an export must be in order")
    }
    lastSeq = record.seq
    if let owner = reader.owner { runs.assign(record.seq, to: owner, at: record.receivedAt) }
    records.append(record)
    guard records.bytes <= maxBytes else {
      throw InboxImport.Problem(
        line: start.line, reason: "the \(records.count) pushes up to here require more than \(maxBytes) bytes")
    }
  }
}
