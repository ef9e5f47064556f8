import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockInbox

@Suite struct ExportMergeTests {
  /// An export with a push at each of these times, in milliseconds after noon.
  static func export(at times: [Int64], as format: InboxExport.Format = .lines) -> [UInt8] {
    let inbox = Inbox()
    for time in times { inbox.append(PushFixture { $0.now = PushFixture.noon + time }.record) }
    return InboxImportTests.export(inbox, as: format)
  }

  /// Merges texts that are read in chunks of `size` bytes.
  static func merge(_ exports: [[UInt8]], inPiecesOf size: Int = .max) throws -> [[UInt8]] {
    var merge = ExportMerge(
      exports.map { text in
        var rest = text[...]
        return {
          defer { rest = rest.dropFirst(size) }
          return rest.isEmpty ? nil : rest.prefix(size)
        }
      })
    var records: [[UInt8]] = []
    while let record = try merge.next() { records.append(record) }
    #expect(merge.count == records.count)
    return records
  }

  static func inbox(_ records: [[UInt8]]) throws -> [Record] {
    let back = try InboxImportTests.read(Array(records.joined(separator: [UInt8(ascii: "\n")])))
    return try back.snapshot().page(try PageQuery([("limit", "1000")])).items
  }

  @Test(arguments: [1, 100, 1000, Int.max], [InboxExport.Format.lines, .array])
  func recordsAreInOrderOfArrival(size: Int, format: InboxExport.Format) throws {
    let merged = try Self.merge(
      [Self.export(at: [0, 30, 31], as: format), Self.export(at: [], as: format), Self.export(at: [10, 30, 99])],
      inPiecesOf: size)
    let records = try Self.inbox(merged)
    #expect(records.map(\.seq) == [1, 2, 3, 4, 5, 6])
    #expect(records.map { $0.receivedAt - PushFixture.noon } == [0, 10, 30, 30, 31, 99])
    #expect(records.map { $0.connection.id.prefix(2) } == ["1-", "3-", "1-", "3-", "1-", "3-"])
  }

  /// The clock of a server may be set back: the records of each export keep their order.
  @Test func recordsOfAnExportKeepTheirOrder() throws {
    let records = try Self.inbox(Self.merge([Self.export(at: [50, 10]), Self.export(at: [20])]))
    #expect(records.map { $0.receivedAt - PushFixture.noon } == [20, 50, 10])
  }

  @Test func aSingleExportIsUnchanged() throws {
    let inbox = Inbox()
    for (_, record) in InboxImportTests.records { inbox.append(record) }
    let text = InboxImportTests.export(inbox)
    #expect(try Array(Self.merge([text]).map { $0 + [UInt8(ascii: "\n")] }.joined()) == text)
  }

  @Test func otherMembersAreCopied() throws {
    let text = String(decoding: Self.export(at: [0]), as: UTF8.self)
    let newer = text.replacing(#""outcome":"#, with: #""novel":[1.50, {"a" : "\u0041"}],"outcome":"#)
    let merged = try Self.merge([Array(newer.utf8), []])
    let expected = newer.dropLast().replacing(#""id":"c17""#, with: #""id":"1-c17""#)
    #expect(String(decoding: try #require(merged.first), as: UTF8.self) == expected)
  }

  @Test(arguments: [
    ("{\"seq\":1", "1: the record that begins here is incomplete"), ("{}", "1: no record of a push: seq is missing"),
    ("{\"log\":{}}", "1: no record of a push: seq is missing"),
    ("\n{\"seq\":1}", "2: no record of a push: received_at is missing"), ("[", "1: the list of records has no end"),
    ("seq,accepted", "1: expected a record of a push"),
  ])
  func errorNamesFileAndLine(text: String, problem: String) {
    let error = #expect(throws: ExportMerge.Problem.self) { try Self.merge([Self.export(at: [0]), Array(text.utf8)]) }
    #expect(error?.input == 1)
    #expect(error?.problem.description.hasPrefix(problem) == true, "\(error?.problem.description ?? "")")
  }
}
