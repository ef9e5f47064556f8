import APNSMockRules
import Foundation
import APNSMockFaultModel
import APNSMockHTTPMessage
import APNSMockInbox
import APNSMockNotation
import APNSMockSQLiteStore
import APNSMockTestSupport

/// An inbox in an SQLite file of a temporary folder.
final class StoredInbox {
  let folder: TemporaryFolder
  private(set) var inbox: Inbox
  private(set) var writer: RecordWriter

  var path: String { folder.path + "/inbox.db" }

  /// - Parameter recent: The number of records that are in memory too.
  init(recent: Int = 4, maxRecords: Int = .max, _ change: (inout RecordWriter.Options) -> Void = { _ in }) throws {
    folder = try TemporaryFolder()
    var options = RecordWriter.Options()
    options.recentRecords = recent
    change(&options)
    writer = RecordWriter(try SQLiteStore(path: folder.path + "/inbox.db", isDurable: false, seed: 1) { _ in }, options)
    { _ in }
    inbox = Inbox(maxRecords: maxRecords, maxBytes: .max, writer: writer)
  }

  deinit { try? writer.stop() }

  /// Closes the file and opens it again, with no record in memory.
  func reopen() throws {
    try writer.stop()
    writer = RecordWriter(try SQLiteStore(path: path, isDurable: false, seed: 1) { _ in }, writer.options) { _ in }
    inbox = Inbox(maxRecords: inbox.maxRecords, maxBytes: .max, writer: writer)
  }

  func append(_ records: [Record], to inbox: Inbox? = nil) {
    var records = records
    (inbox ?? self.inbox).append(&records)
  }
}

/// Requests and their records.
enum Push {
  static let rulebook = Rulebook()
  static let noon: Int64 = 1_769_860_800_000
  private static let authorization =
    "bearer \(TestToken(kid: "MOCKKEY001", iss: "MOCKTEAM01", iat: "\(noon / 1000)").message).c2ln"
  private static let keys = TrustedKeySet(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])

  /// Returns a record of a push.
  ///
  /// - Parameters:
  ///   - number: Determines device token, `apns-id`, payload and time.
  ///   - fields: Further header fields.
  static func record(
    _ number: Int, connection: ConnectionFacts = connection, fields: [(String, String)] = [], body: [UInt8]? = nil,
    outcome: Record.Outcome = .accepted, status: Int? = 200, reason: Reason? = nil, wireDetails: WireDetails? = nil,
    delivery: DeliveryState? = nil, isComplete: Bool = true
  ) -> Record {
    let token = String(number, radix: 16)
    var request = HTTPRequest(
      stream: Int32(number * 2 + 1),
      headers: HeaderList(
        [
          (":method", "POST"), (":scheme", "https"),
          (":path", "/3/device/" + String(repeating: "A", count: 64 - token.count) + token),
          ("authorization", authorization), ("apns-topic", "com.acme.app"), ("apns-push-type", "alert"),
        ] + fields), body: body ?? Array(#"{"aps":{"alert":"push \#(number)"}}"#.utf8))
    request.bodySize = request.body.count
    var authentication = ConnectionAuthentication(certificate: connection.certificate)
    let verdict = rulebook.validate(request, authentication: &authentication, keys: keys, now: noon)
    return Record(
      request: request, verdict: verdict, hasVerdict: isComplete, isRequestComplete: isComplete,
      generatedID: ArraySlice(String(format: "9D3220FE-444B-633E-D1F1-%012X", number).utf8), connection: connection,
      receivedAt: noon + Int64(number) * 1000, arrivedAt: Int64(number) * 1_000_000,
      result: Record.Result(
        outcome: outcome, accepted: outcome == .accepted,
        sentResponse: Record.SentResponse(
          status: status, reason: reason, latencyNanoseconds: status.map { _ in 1_800_000 }),
        wireDetails: wireDetails, finishedAt: outcome == .pending ? nil : noon + Int64(number) * 1000 + 2,
        delivery: delivery))
  }

  static let connection = ConnectionFacts(
    id: "c17", listener: 0, client: "127.0.0.1:52114", sni: "localhost", tls: "TLSv1.3")

  /// Returns a record as JSON text.
  static func json(_ record: Record) -> String {
    var writer = JSONWriter()
    record.write(to: &writer, rulebook: rulebook)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension Inbox {
  /// Returns the selected records.
  func records(_ parameters: [(name: String, value: String)] = []) async throws -> [Record] {
    var query = try PageQuery(parameters + [("limit", "1000")], in: FilterContext(now: Push.noon, snapshot: snapshot()))
    var found: [Record] = []
    while true {
      let page = try await snapshot().pageInSlices(query)
      found += page.items
      guard let next = page.next else { return found }
      query.selection.after = next
    }
  }

  /// Returns the newest attempt of each push that matches, the newest first, and the number of all that match.
  func grouped(_ parameters: [(name: String, value: String)]) async throws -> (seqs: [Int], attempts: Int) {
    let context = FilterContext(now: Push.noon, snapshot: snapshot())
    return try await snapshot().sortedSeqs(
      of: try await Selection(searching: parameters, in: context), by: .seq, .descending, groupsAttempts: true)
  }
}
