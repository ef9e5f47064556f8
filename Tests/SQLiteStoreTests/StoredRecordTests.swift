import APNSMockRules
import APNSMockFaultModel
import APNSMockInbox
import APNSMockTestSupport
import Testing

/// Records from the file equal those that were written.
@Suite struct StoredRecordTests {
  static let certified = ConnectionFacts(
    id: "c18", listener: 1, environment: .production, client: "[::1]:5", sni: nil, tls: "TLSv1.2", http: .http1,
    certificate: ProviderCertificate(
      subjectUID: "org.certified", topics: ["org.certified"], development: true, production: true, commonName: "Apple",
      fingerprint: "ab:cd"))

  static let records: [(name: String, record: Record)] = [
    ("accepted", Push.record(1)),
    ("delivered", Push.record(2, delivery: .deliveredFromStorage)),
    (
      "rejected",
      Push.record(3, fields: [("apns-priority", "7")], outcome: .rejected, status: 400, reason: .badPriority)
    ),
    ("by a certificate", Push.record(4, connection: certified, fields: [("x-n", "Grüße")])),
    ("not UTF-8", Push.record(5, fields: [("apns-collapse-id", "Öl"), ("x-empty", "")], body: [0xFF, 0x00, 0x22])),
    ("empty body", Push.record(6, body: [], outcome: .rejected, status: 400, reason: .payloadEmpty)),
    ("pending", Push.record(7, outcome: .pending, status: nil)),
    ("incomplete", Push.record(8, outcome: .incomplete, status: nil, isComplete: false)),
    (
      "one fault",
      Push.record(
        9, outcome: .rejected, status: 503, reason: .serviceUnavailable,
        wireDetails: WireDetails(injections: [
          Injection(
            profile: "flaky", rule: "r", action: .hang(for: nil, endWith: .nothing), continues: false, draw: 0.25,
            probability: 0.5)
        ]))
    ),
    (
      "everything",
      Push.record(
        10, outcome: .responseLost, status: nil,
        wireDetails: WireDetails(
          injections: [
            Injection(rule: "a", action: .delay(.fixed(.seconds(1))), continues: true),
            Injection(rule: "b", action: .close, continues: false),
          ], unusualReason: "TeaPot", reset: "REFUSED_STREAM",
          goAway: WireDetails.GoAway(code: "NO_ERROR", lastStream: 5, debugData: "bye"), closed: .reset,
          violation: .afterGoAway(lastStream: 7, nanoseconds: 9), endedAt: 4,
          upstream: WireDetails.UpstreamAnswer(status: 200, apnsID: "A", latency: 7, connection: 1)))
    ),
    (
      "too many streams",
      Push.record(11, outcome: .unprocessed, status: nil, wireDetails: WireDetails(violation: .excessStreams(limit: 3)))
    ),
  ]

  /// More connections than the writer remembers, and one that is used all the time.
  @Test func recordsKeepTheirConnectionWhenOlderOnesAreRemoved() async throws {
    let stored = try StoredInbox(recent: 1, maxRecords: 50)
    func connection(_ number: Int) -> ConnectionFacts {
      guard number % 10 != 0 else { return Push.connection }
      return ConnectionFacts(id: "c\(1000 + number)", listener: 0, client: "[::1]:5", sni: nil, tls: nil)
    }
    for first in stride(from: 1, through: 10_000, by: 100) {
      stored.append((first..<first + 100).map { Push.record($0, connection: connection($0)) })
      stored.writer.flush()
    }
    try stored.reopen()
    let records = try await stored.inbox.records()
    #expect(records.map(\.connection.id) == (9951...10_000).map { $0 % 10 == 0 ? "c17" : "c\(1000 + $0)" })
  }

  /// What is removed on request makes room, so that no older record has to go.
  @Test func removedRecordsDoNotCountForTheLimit() throws {
    let stored = try StoredInbox()
    stored.append((1...60).map { Push.record($0) })
    stored.writer.flush()
    var batch = StoreBatch()
    (batch.contents.lastSeq, batch.contents.count) = (60, 60)
    (batch.deleted, batch.maxRecords) = (Array(41...50), 55)
    let result = try stored.writer.store.write(batch) {}
    #expect(result.deleted.count == 10 && result.evicted.count == 0)
  }

  /// Pushes that arrived while the clock was ahead are removed with older ones behind them, however many they are.
  @Test func recordsFromAClockThatWasAheadKeepNoOlderOnes() throws {
    let stored = try StoredInbox()
    // The time of a record is its number of seconds after noon.
    stored.append((100_001...110_000).map { Push.record($0) })
    stored.append((1...5).map { Push.record($0) })
    // It waits two seconds, in which a busy machine writes fewer.
    #expect((0..<60).contains { _ in stored.writer.flush() })
    var batch = StoreBatch()
    (batch.contents.lastSeq, batch.contents.count) = (10_005, 10_005)
    batch.keptTimes = Push.noon + 3000...Push.noon + 10_000
    var removed = 0
    while true {
      let result = try stored.writer.store.write(batch) {}
      removed += result.evicted.count
      batch.contents.count -= result.evicted.count
      if result.evicted.count == 0 { break }
    }
    #expect(removed == 10_002)
  }

  /// COPY has no names of columns, so PostgreSQL relies on their order.
  @Test(arguments: records)
  func columnsAreWrittenInTheDocumentedOrder(name: String, record: Record) {
    struct Columns: RowWriter {
      var columns: [RecordColumn] = []
      mutating func setNull(_ column: RecordColumn) { columns.append(column) }
      mutating func set(_ column: RecordColumn, _ number: Int64) { columns.append(column) }
      mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer) { columns.append(column) }
      mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool) {
        columns.append(column)
      }
    }
    var row = Columns()
    record.write(to: &row, connection: 1, token: nil, checks: nil)
    #expect(row.columns == RecordColumn.inOrderOfWriting)
    #expect(Set(row.columns) == Set(RecordColumn.allCases) && row.columns.count == RecordColumn.allCases.count)
  }

  @Test func recordsAreTheSameAfterLeavingMemory() async throws {
    let stored = try StoredInbox(recent: 1)
    let memory = Inbox()
    stored.append(Self.records.map(\.record))
    stored.append(Self.records.map(\.record), to: memory)
    stored.writer.flush()
    let expected = try await memory.records()
    let found = try await stored.inbox.records()
    #expect(found.map(Push.json) == expected.map(Push.json))
    for (one, other) in zip(found, expected) {
      #expect(one.pushKey == other.pushKey && one.arrivedAt == other.arrivedAt)
      #expect(one.wireDetails?.violation == other.wireDetails?.violation)
      #expect(one.wireDetails?.endedAt == other.wireDetails?.endedAt)
      #expect(one.request == other.request && one.facts == other.facts)
    }
    try stored.reopen()
    let reopened = try await stored.inbox.records()
    #expect(reopened.count == expected.count)
    for (one, other) in zip(reopened, expected) where other.outcome != .pending {
      #expect(Push.json(one) == Push.json(other))
    }
    // Its response was never sent.
    #expect(reopened[6].outcome == .unknown && reopened[6].end.ending == .disconnected && reopened[6].finishedAt != nil)
  }

  @Test func changesOfRecordsThatLeftMemoryAreKept() async throws {
    let stored = try StoredInbox(recent: 1)
    stored.append((1...20).map { Push.record($0, outcome: .pending, status: nil) })
    stored.writer.flush()
    let result = Record.Result(
      outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200), finishedAt: Push.noon)
    for seq in 1...20 { stored.inbox.finish(seq, with: result) }
    stored.inbox.setDeliveries([(3, .delivered)])
    try await stored.inbox.settle()
    #expect(try stored.inbox.record(seq: 3)?.delivery == .delivered)
    #expect(try await stored.inbox.records([("outcome", "accepted")]).count == 20)
    try stored.reopen()
    #expect(try await stored.inbox.records([("outcome", "accepted")]).count == 20)
    #expect(try stored.inbox.record(seq: 3)?.delivery == .delivered)
    stored.inbox.finish(21, with: result)
    try await stored.inbox.settle()
    #expect(stored.inbox.snapshot().count == 20)
  }

  /// Records in memory and in the file, neighbors and single ones, changed ones and removed ones.
  @Test func deliveriesChangeTogether() async throws {
    let stored = try StoredInbox(recent: 4)
    stored.append((1...400).map { Push.record($0, delivery: .storedOffline) })
    stored.writer.flush()
    stored.inbox.setDeliveries([(5, .storedForPower)])
    let changed = Array(1...100) + [150, 170, 171] + Array(300...400)
    stored.inbox.setDeliveries(changed.reversed().map { ($0, .discardedExpired) } + [(401, .delivered)])
    try await stored.inbox.settle()
    #expect(try stored.inbox.record(seq: 5)?.delivery == .discardedExpired)
    let expired = [("delivery", "Discarded*")]
    #expect(try await stored.inbox.records(expired).map(\.seq) == changed)
    try stored.reopen()
    #expect(try await stored.inbox.records(expired).map(\.seq) == changed)
    #expect(try await stored.inbox.records([("delivery", "Stored*")]).count == 400 - changed.count)
  }

  @Test func seqsAreNotUsedAgain() throws {
    let stored = try StoredInbox()
    stored.append([Push.record(1), Push.record(2)])
    try stored.inbox.remove(.init())
    try stored.reopen()
    #expect(stored.inbox.append(Push.record(3)) == 3)
    #expect(stored.inbox.snapshot().count == 1)
  }
}
