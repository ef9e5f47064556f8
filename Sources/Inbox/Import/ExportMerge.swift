internal import APNSMockNotation

/// Merges the exports of several servers into one: all records in the order of their arrival, numbered anew.
///
/// Reads the exports at the same time, in chunks, so that memory use does not depend on their size. All members of a
/// record but `seq` and the connection's `id` are copied byte for byte, also those that this version does not know.
package struct ExportMerge {
  /// Reads the next chunk of an export; nil at its end.
  package typealias Input = () throws -> ArraySlice<UInt8>?

  /// An error in one of the exports.
  package struct Problem: Error, Equatable {
    /// The index of the export.
    package let input: Int
    /// The error.
    package let problem: InboxImport.Problem
  }

  /// An export and the records of its last chunk that are not written yet.
  fileprivate struct Export {
    let read: Input
    var splitter = ExportSplitter()
    /// In reverse order.
    var records: [Unwritten] = []
    var hasEnded = false
  }

  fileprivate struct Unwritten {
    /// Nil for a run or a test, which are written at once.
    let receivedAt: ServerTime?
    let text: [UInt8]
  }

  private var exports: [Export]
  /// The number of records written.
  package private(set) var count = 0

  /// Creates a merge of exports. Records with the same time are in the order of `inputs`.
  package init(_ inputs: [Input]) { exports = inputs.map { Export(read: $0) } }

  /// Returns the next record as JSON; nil after the last one.
  ///
  /// The record's `seq` is its number in the merge. If there are several exports, its connection's `id` begins with
  /// the number of its export, from 1, because each server counts its own connections; so do the `id`s of runs.
  ///
  /// - Throws: `Problem`, or what an input throws; do not use the merge afterwards.
  package mutating func next() throws -> [UInt8]? {
    for index in exports.indices {
      do {
        while exports[index].records.isEmpty, !exports[index].hasEnded { try exports[index].fill() }
      } catch let problem as InboxImport.Problem {
        throw Problem(input: index, problem: problem)
      }
    }
    let waiting = exports.indices.compactMap { index in
      exports[index].records.last.map { (receivedAt: $0.receivedAt ?? .min, index: index) }
    }
    guard let first = waiting.min(by: { $0 < $1 })?.index, let record = exports[first].records.popLast() else {
      return nil
    }
    if record.receivedAt != nil { count += 1 }
    let export = exports.count > 1 ? first + 1 : nil
    return Self.renumbered(record.text, count, export: export)
  }

  /// Returns a record, a run or a test with another number, and with the number of its export in the `id`s of its connection and
  /// its run.
  private static func renumbered(_ text: [UInt8], _ number: Int, export: Int?) -> [UInt8] {
    var writer = JSONWriter(capacity: text.count + 32)
    text.withUnsafeBytes { text in
      var json = JSONReader(text)
      // The text was read completely before, so it has no errors.
      writer.object { writer in
        try? json.object { name, json throws(JSONText.Problem) in
          writer.name(name)
          switch name {
          case "seq": writer.integer(number)
          case "run" where export != nil, "id" where export != nil:
            if let id = try json.text() { writer.string("\(export ?? 0)-\(id)") } else { writer.null() }
          case "connection" where export != nil: try Self.copyConnection(from: &json, to: &writer, export: export ?? 0)
          default: writer.verbatim(try json.verbatim())
          }
        }
      }
    }
    return writer.bytes
  }

  private static func copyConnection(
    from json: inout JSONReader, to writer: inout JSONWriter, export: Int
  ) throws(JSONText.Problem) {
    var failure: JSONText.Problem?
    writer.object { writer in
      do throws(JSONText.Problem) {
        try json.object { name, json throws(JSONText.Problem) in
          writer.name(name)
          if name == "id" {
            writer.string("\(export)-\(try json.string())")
          } else {
            writer.verbatim(try json.verbatim())
          }
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }
}

extension ExportMerge.Export {
  /// Reads the records of the next chunk.
  fileprivate mutating func fill() throws {
    guard let chunk = try read() else {
      hasEnded = true
      return try splitter.finish()
    }
    var found: [ExportMerge.Unwritten] = []
    try splitter.read(Array(chunk)) { text, start throws(InboxImport.Problem) in
      do throws(JSONText.Problem) {
        found.append(try ExportMerge.Unwritten(text))
      } catch {
        throw InboxImport.Problem(error, in: text, at: start)
      }
    }
    records = found.reversed()
  }
}

extension ExportMerge.Unwritten {
  /// Reads what the order depends on, and checks that the text can be imported.
  fileprivate init(_ text: UnsafeRawBufferPointer) throws(JSONText.Problem) {
    var json = JSONReader(text)
    if RunLine.isOne(text) {
      _ = try RunLine(text)
      (receivedAt, self.text) = (nil, Array(text))
      return
    }
    let record = try ImportedRecord(text, &json)
    guard record.seq != nil, let receivedAt = record.receivedAt else {
      throw json.problem("no record of a push: \(record.seq == nil ? "seq" : "received_at") is missing")
    }
    self.receivedAt = receivedAt
    self.text = Array(text)
  }
}
