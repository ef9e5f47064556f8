import APNSMockRules
import APNSMockInbox
import APNSMockSQLiteStore
import APNSMockTestSupport
import Testing

/// Queries over a file find the same records as over memory.
@Suite struct StoredQueryTests {
  /// More than a block, with gaps: some seqs have no record.
  static let count = 4500
  /// Records that are removed before the queries. Each query reads all others many times.
  static let gaps = (seqs: "301-1990,2010-3990,4096,4097,4200-4300", count: 3774)
  static let connections = (1...3).map {
    ConnectionFacts(id: "c\($0)", listener: $0, client: "127.0.0.1:\($0)", sni: nil, tls: nil)
  }

  static func records() -> [Record] {
    (1...count).map { number in
      var fields: [(String, String)] = []
      if number % 4 == 0 { fields.append(("apns-collapse-id", number % 8 == 0 ? "news" : "News")) }
      if number % 5 == 0 { fields.append(("apns-priority", "5")) }
      if number % 9 == 0 { fields.append(("x-n", "\(number)")) }
      let isFaulted = number % 100 == 0
      return Push.record(
        number % 2000, connection: connections[number % 3], fields: fields,
        outcome: isFaulted ? .rejected : .accepted, status: isFaulted ? 503 : 200,
        reason: isFaulted ? .serviceUnavailable : nil)
    }
  }

  static let queries: [[(name: String, value: String)]] = [
    [], [("status", "503")], [("status", "!200")], [("status", "5*")], [("status", ">=500")],
    [("reason", "ServiceUnavailable")], [("q", "!reason:ServiceUnavailable")], [("q", "!collapse_id:News")],
    [("collapse_id", "news")], [("collapse_id", "N*")], [("topic", "com.acme.app")], [("topic", "COM.acme.app")],
    [("device_token", String(repeating: "a", count: 61) + "7cf")],
    [
      ("device_token", String(repeating: "A", count: 61) + "7CE"),
      ("device_token", String(repeating: "a", count: 63) + "1"),
    ],
    [("device_token", "*7cf")], [("apns_id", "9d3220fe-444b-633e-d1f1-00000000005a")],
    [("q", "push_key:\(Push.record(5).pushKey.text)")], [("q", "!push_key:\(Push.record(5).pushKey.text)")],
    [("push_key", "none")], [("priority", "5"), ("connection", "c2")], [("outcome", "rejected")],
    [("decision", "rejected")], [("ending", "response")], [("is", "faulted")],
    [("accepted", "false")],
    [("since", "2026-01-31T12:30:00Z")], [("until", "2026-01-31T12:01:00Z")], [("attempt", "1")], [("size", ">30B")],
    [("header.x-n", "4500")], [("header.x-n", "45*")], [("q", "!header.x-n:9")], [("text", "push 19")],
    [("q", "payload./aps/alert:\"push 7\"")],
    [("seqs", "3,4090-4100,4499")], [("!seqs", "1-4089,4100-4498"), ("status", "200")], [("search", "503")],
    [("search", "!503 push")], [("search", "serviceunavailable")],
    [("after", "4095"), ("before", "4098")], [("is", "duplicate")], [("listener", "2"), ("text", "push 1999")],
  ]

  @Test func queriesFindTheSameRecords() async throws {
    let stored = try StoredInbox(recent: 100)
    let memory = Inbox()
    let records = Self.records()
    for start in stride(from: 0, to: records.count, by: 500) {
      let part = Array(records[start..<start + 500])
      stored.append(part)
      stored.append(part, to: memory)
    }
    let removed = try Selection([(name: "seqs", value: Self.gaps.seqs)])
    #expect(try stored.inbox.remove(removed) == Self.gaps.count)
    try memory.remove(removed)
    stored.writer.flush()
    for round in 1...2 {
      for query in Self.queries {
        let expected = try await memory.records(query).map(\.seq)
        if round == 1 {
          #expect(try await stored.inbox.records(query).map(\.seq) == expected, "\(query)")
          let grouped = try await memory.grouped(query)
          let found = try await stored.inbox.grouped(query)
          #expect(found.seqs == grouped.seqs && found.attempts == expected.count, "\(query)")
          continue
        }
        for (order, limit, count) in [
          ("desc", 7, "exact"), ("desc", 0, "exact"), ("asc", 5, "exact"), ("asc", 20, nil), ("desc", 1000, nil),
        ] {
          // With a limit of 2000 bytes, few records of the page are in memory.
          let snapshot = stored.inbox.snapshot()
          let page = try await snapshot.pageInSlices(
            PageQuery(
              query + [("order", order), ("limit", "\(limit)")]
                + (count.map { [("count", $0)] } ?? []),
              in: FilterContext(now: Push.noon, snapshot: snapshot)),
            maxBytes: limit < 20 ? .max : 2000)
          let first = (order == "asc" ? expected : expected.reversed()).prefix(limit)
          let seqs = page.items.map(\.seq) + page.unread
          #expect(seqs == Array(first) && page.matched == expected.count, "\(query) \(order) \(limit)")
          #expect(try snapshot.records(page.unread).map(\.seq) == page.unread)
          #expect(page.unread.isEmpty == (limit < 20 || page.items.count == first.count))
          #expect(limit == 0 || (page.next != nil) == (first.count < expected.count))
        }
      }
      #expect(stored.inbox.snapshot().count == Self.count - Self.gaps.count)
      try stored.reopen()
    }
    #expect(try await stored.inbox.snapshot().attempts(apnsID: "9d3220fe-444b-633e-d1f1-00000000005A").count == 2)
  }

  @Test(arguments: PageQuery.Order.allCases)
  func aSearchContinuesAfterItsTimeLimit(order: PageQuery.Order) async throws {
    let stored = try StoredInbox(recent: 100)
    for part in 0..<10 { stored.append((1...1000).map { Push.record(part * 1000 + $0) }) }
    stored.writer.flush()
    let snapshot = stored.inbox.snapshot()
    // Each page ends after the first part that is examined, because the time is over then.
    var query = try PageQuery(
      [("text", "push 7"), ("limit", "1000"), ("within", "1ms"), ("order", order.rawValue)],
      in: FilterContext(now: Push.noon, snapshot: snapshot))
    query.timeLimit = .nanoseconds(1)
    var found: [Int] = []
    var pages = 0
    while true {
      let page = try await snapshot.pageInSlices(query)
      pages += 1
      found += page.items.map(\.seq)
      #expect(page.firstSeq == 1 && page.lastSeq == 10_000 && (page.matched != nil || page.next != nil))
      guard let next = page.next else { break }
      if order == .ascending { query.selection.after = next } else { query.selection.before = next }
    }
    let expected = Array(700...799) + Array(7000...7999) + [7] + Array(70...79)
    #expect(order == .ascending ? found == expected.sorted() : found == expected.sorted().reversed())
    #expect(pages >= 2)
  }

  @Test func theOldestRecordsAreEvicted() async throws {
    let stored = try StoredInbox(recent: 10, maxRecords: 50)
    for number in 1...7 { stored.append((1...30).map { Push.record(number * 100 + $0) }) }
    try await stored.inbox.settle()
    let snapshot = stored.inbox.snapshot()
    #expect(snapshot.count == 50 && snapshot.evicted == 160 && snapshot.lastSeq == 210)
    #expect(try await stored.inbox.records().map(\.seq) == Array(161...210))
    try stored.reopen()
    #expect(stored.inbox.snapshot().evicted == 160)
  }

  @Test func emptyingHidesAllRecordsForGood() async throws {
    let stored = try StoredInbox(recent: 10)
    for _ in 1...5 { stored.append((1...1000).map { Push.record($0) }) }
    #expect(stored.inbox.removeAll() == 5000)
    #expect(stored.inbox.snapshot().count == 0)
    #expect(try stored.inbox.record(seq: 10) == nil)
    stored.append([Push.record(1)])
    #expect(try await stored.inbox.records().map(\.seq) == [5001])
    try stored.reopen()
    #expect(try await stored.inbox.records().map(\.seq) == [5001])
    #expect(stored.inbox.snapshot().count == 1)
  }

  @Test func manyRecordsAreRemovedInSteps() async throws {
    let stored = try StoredInbox(recent: 10)
    for _ in 1...4 { stored.append((1...1000).map { Push.record($0) }) }
    try await eventually("all records are written") { stored.inbox.waitingRecords == 0 }
    let batches = stored.writer.figures.batches
    #expect(try await stored.inbox.removeInSlices(Selection([(name: "status", value: "200")])) == 4000)
    #expect(stored.inbox.snapshot().count == 0)
    // Each step is a transaction, so that pushes are written between two of them.
    #expect(stored.writer.figures.batches - batches == 2)
  }

  @Test func overlappingRemovalsCountOnce() async throws {
    let stored = try StoredInbox(recent: 10)
    for _ in 1...4 { stored.append((1...500).map { Push.record($0) }) }
    let all = try Selection([(name: "status", value: "200")])
    let inbox = stored.inbox
    await withTaskGroup(of: Void.self) { group in
      for _ in 1...4 { group.addTask { _ = try? await inbox.removeInSlices(all) } }
    }
    let snapshot = inbox.snapshot()
    #expect(snapshot.count == 0 && snapshot.bytes == 0)
  }
}
