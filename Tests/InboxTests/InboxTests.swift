import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

@Suite struct InboxTests {
  @Test func pendingRecordIsCompletedInPlace() throws {
    let inbox = Inbox()
    let seqs = (0..<3).map { _ in inbox.append(PushFixture { $0.outcome = .pending }.record) }
    let before = inbox.snapshot()
    let end = Record.Result(
      outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200),
      finishedAt: PushFixture.noon + 5)
    #expect(inbox.finish(seqs[1], with: end)?.outcome == .accepted)
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.outcome) == [.pending, .accepted, .pending])
    #expect(try inbox.record(seq: seqs[1])?.finishedAt == PushFixture.noon + 5)
    // An earlier snapshot does not change.
    #expect(try before.page(PageQuery()).items.map(\.outcome) == [.pending, .pending, .pending])
    #expect(inbox.finish(99, with: end) == nil)
    inbox.removeAll()
    #expect(inbox.finish(seqs[1], with: end) == nil)
  }

  @Test func numbersFromOneAndReadsBack() throws {
    let inbox = Inbox()
    var batch = (0..<3).map { number in PushFixture { $0.body = Array("\(number)".utf8) }.record }
    #expect(inbox.append(&batch) == 1)
    #expect(batch.isEmpty)
    #expect(batch.capacity >= 3)
    #expect(inbox.append(&batch) == 0)
    #expect(inbox.append(PushFixture().record) == 4)
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [1, 2, 3, 4])
    #expect(try inbox.record(seq: 2)?.body == Array("1".utf8))
    #expect(try inbox.record(seq: 5) == nil)
    #expect(try inbox.record(seq: 0) == nil)
    #expect(try inbox.record(seq: .min) == nil)
  }

  @Test func neverUsesANumberTwice() throws {
    let inbox = Inbox()
    for _ in 0..<3 { inbox.append(PushFixture().record) }
    #expect(inbox.removeAll() == 3)
    #expect(inbox.snapshot().count == 0)
    #expect(inbox.snapshot().bytes == 0)
    #expect(inbox.append(PushFixture().record) == 4)
    #expect(try inbox.record(seq: 1) == nil)
  }

  @Test(arguments: [1, 10, 511, 512, 513, 1500])
  func recordCountIsLimited(limit: Int) throws {
    let inbox = Inbox(maxRecords: limit)
    let record = PushFixture().record
    for _ in 0..<2000 { inbox.append(record) }
    var query = PageQuery()
    query.limit = .max
    let page = try inbox.snapshot().page(query)
    #expect(page.items.map(\.seq) == Array(2000 - limit + 1...2000))
    #expect(page.total == limit)
    #expect(page.evicted == 2000 - limit)
    #expect(page.items.allSatisfy { !$0.body.isEmpty })
    #expect(try inbox.record(seq: 2000 - limit) == nil)
    #expect(try inbox.record(seq: 2000 - limit + 1)?.seq == 2000 - limit + 1)
    #expect(inbox.snapshot().bytes == limit * RecordStorage.cost(record))
  }

  /// A quarter of a million pushes must need no more than their own bytes and 64 MB.
  @Test func recordOverheadIsAtMost250Bytes() {
    let record = PushFixture().record
    let size = record.withHeaders { $0.count } + record.body.count + PushFixture().generatedID.utf8.count
    #expect(RecordStorage.cost(record) == size + RecordStorage.overhead)
    #expect(MemoryLayout<Record>.stride == 64, "a line of the cache")
    #expect(RecordStorage.overhead <= 242)
  }

  @Test func byteCountIsLimited() throws {
    let small = PushFixture().record
    let large = PushFixture { $0.body = Array(repeating: 0x20, count: 4096) }.record
    let inbox = Inbox(maxBytes: 3 * RecordStorage.cost(small) + RecordStorage.cost(large))
    for record in [small, small, small, large, small] { inbox.append(record) }
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [2, 3, 4, 5])
    inbox.append(large)
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [5, 6])
    #expect(inbox.snapshot().evicted == 4)
    #expect(inbox.snapshot().bytes <= inbox.maxBytes)
  }

  /// The objects of records are released together with those of their chunk, not one by one.
  @Test func evictedChunkFreesItsRecords() {
    let inbox = Inbox(maxRecords: 2)
    weak var kept: ConnectionFacts?
    do {
      let connection = ConnectionFacts(id: "c1", listener: 0, client: "127.0.0.1:1", sni: nil, tls: "TLSv1.3")
      kept = connection
      inbox.append(PushFixture { $0.connection = connection }.record)
    }
    for _ in 0..<RecordStorage.chunkSize { inbox.append(PushFixture().record) }
    #expect(kept != nil)
    inbox.append(PushFixture().record)
    #expect(kept == nil)
  }

  @Test func keepsTheNewestRecordWhateverItsSize() throws {
    let inbox = Inbox(maxRecords: 0, maxBytes: 10)
    for _ in 0..<3 { inbox.append(PushFixture().record) }
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [3])
  }

  @Test func batchLargerThanTheLimitKeepsItsNewest() throws {
    let inbox = Inbox(maxRecords: 2)
    var batch = Array(repeating: PushFixture().record, count: 5)
    #expect(inbox.append(&batch) == 1)
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [4, 5])
  }

  @Test func batchesOfAnySize() throws {
    let inbox = Inbox()
    var expected = 0
    for size in [1, 511, 1, 512, 513, 1300, 3] {
      var batch = Array(repeating: PushFixture().record, count: size)
      #expect(inbox.append(&batch) == expected + 1)
      expected += size
    }
    var query = PageQuery()
    query.limit = .max
    #expect(try inbox.snapshot().page(query).items.map(\.seq) == Array(1...expected))
  }

  @Test func emptyingResetsTheEvictionCount() throws {
    let inbox = Inbox(maxRecords: 2)
    for _ in 0..<5 { inbox.append(PushFixture().record) }
    #expect(try !inbox.snapshot().page(PageQuery()).isComplete)
    inbox.removeAll()
    inbox.append(PushFixture().record)
    let page = try inbox.snapshot().page(PageQuery())
    #expect(page.evicted == 0)
    #expect(page.isComplete)
  }

  @Test func isCompleteWhenOnlyOlderRecordsWereEvicted() {
    let inbox = Inbox(maxRecords: 2)
    for _ in 0..<5 { inbox.append(PushFixture().record) }
    #expect(!inbox.snapshot().isComplete(after: 2))
    #expect(inbox.snapshot().isComplete(after: 3))
  }

  @Test func snapshotIsImmutable() throws {
    let inbox = Inbox(maxRecords: 3)
    for _ in 0..<3 { inbox.append(PushFixture().record) }
    let snapshot = inbox.snapshot()
    for _ in 0..<3 { inbox.append(PushFixture().record) }
    inbox.removeAll()
    let items = try snapshot.page(PageQuery()).items
    #expect(items.map(\.seq) == [1, 2, 3])
    #expect(items.allSatisfy { !$0.body.isEmpty })
  }

  @Test func matchingRecordsAreRemoved() throws {
    let inbox = Inbox()
    for number in 0..<1300 {
      inbox.append(PushFixture { $0.headers[0].1 = number % 3 == 0 ? "com.acme.gone" : "com.acme.app" }.record)
    }
    let gone = try Selection([(name: "topic", value: "*.gone")])
    #expect(try inbox.remove(try Selection(FilterTests.parameters("topic=*.gone&after=600&before=900"))) == 100)
    #expect(try inbox.remove(gone) == 334)
    #expect(try inbox.remove(gone) == 0)
    var query = PageQuery()
    query.limit = .max
    #expect(try inbox.snapshot().page(query).items.map(\.seq) == (1...1300).filter { $0 % 3 != 1 })
    #expect(try inbox.record(seq: 4) == nil)
    #expect(try inbox.record(seq: 1299)?.seq == 1299)
    #expect(inbox.append(PushFixture().record) == 1301)
    #expect(try inbox.record(seq: 1301)?.seq == 1301)
    #expect(inbox.snapshot().count == 867)
  }

  /// A query for a device's pushes finds the same records as a scan of all, after evictions and removals too.
  @Test(arguments: [
    "device_token=00a1", "device_token=00A1", "device_token=00a2&device_token=00b7", "device_token=00ff",
    "device_token=00a*", "!device_token=00a1", "!device_token=*",
  ])
  func recordsOfADeviceAreFound(condition: String) throws {
    let inbox = Inbox(maxRecords: 1500)
    let tokens = ["00a1", "00A1", "00a2", "00b7", "0123456789abcdef0123456789ABCDEF01"]
    let records = tokens.map { token in PushFixture { $0.deviceToken = token }.record }
    for number in 0..<4000 { inbox.append(records[number * 7 % tokens.count]) }
    var removed = Selection()
    removed = try Selection(FilterTests.parameters("device_token=00b7&before=3400"))
    #expect(try inbox.remove(removed) > 0)

    var query = PageQuery()
    query.selection = try Selection(FilterTests.parameters(condition))
    query.limit = .max
    for order in [PageQuery.Order.ascending, .descending] {
      query.order = order
      var all = PageQuery()
      all.limit = .max
      all.order = order
      let wanted = try inbox.snapshot().page(all).items.filter { query.selection.filter.matches($0) }.map(\.seq)
      #expect(try inbox.snapshot().page(query).items.map(\.seq) == wanted)
    }
  }

  @Test func allAttemptsOfAnIDAreFound() async throws {
    let inbox = Inbox()
    let id = "27cfdc15-e305-27e0-e290-8fc98e115899"
    for name in ["a", "b"] {
      inbox.append(
        PushFixture {
          $0.headers.append(("apns-id", id))
          $0.generatedID = ""
          $0.body = Array(name.utf8)
        }.record)
      inbox.append(PushFixture().record)
    }
    #expect(try await inbox.snapshot().attempts(apnsID: id.uppercased()).map(\.seq) == [1, 3])
    #expect(try await inbox.snapshot().attempts(apnsID: "9d3220fe-444b-633e-d1f1-5d0dcb4f537a").map(\.seq) == [2, 4])
    #expect(try await inbox.snapshot().attempts(apnsID: "27*").isEmpty)
  }

  /// Several connections append while others read and delete: numbers ascend, and no record is lost or duplicated.
  @Test func concurrentAppends() async throws {
    let inbox = Inbox(maxRecords: 100_000)
    let record = PushFixture().record
    let (writers, batches, batchSize) = (4, 300, 7)
    try await withThrowingTaskGroup { group in
      for writer in 0..<writers {
        group.addTask {
          let mine = PushFixture { $0.deviceToken = "0\(writer)" }.record
          for number in 0..<batches {
            var batch = Array(repeating: number % 2 == 0 ? mine : record, count: batchSize)
            let first = inbox.append(&batch)
            // A record is stored before it is confirmed: what this writer appended is present when `append` returns.
            let last = try inbox.record(seq: first + batchSize - 1)
            #expect(last?.seq == first + batchSize - 1)
          }
        }
      }
      group.addTask {
        let total = writers * batches * batchSize
        var seen = 0
        while seen < total {
          var query = PageQuery()
          query.selection.after = seen
          query.limit = 100
          let items = try inbox.snapshot().page(query).items
          #expect(items.map(\.seq) == Array(seen + 1..<seen + 1 + items.count))
          seen += items.count
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
    let snapshot = inbox.snapshot()
    #expect(snapshot.count == writers * batches * batchSize)
    #expect(snapshot.lastSeq == writers * batches * batchSize)
    for writer in 0..<writers {
      var query = PageQuery()
      query.selection.filter = try Filter([(name: "device_token", value: "0\(writer)")])
      #expect(try snapshot.page(query).matched == batches / 2 * batchSize)
    }
  }

  /// Records change in place while there is no snapshot, and in a copy while there is one: a snapshot never changes.
  @Test func recordsAreCompletedDuringReads() async throws {
    let inbox = Inbox(maxRecords: 100)
    let pending = PushFixture { $0.outcome = .pending }.record
    let end = Record.Result(
      outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200), finishedAt: PushFixture.noon)
    try await withThrowingTaskGroup { group in
      group.addTask {
        for _ in 0..<1000 {
          let seq = inbox.append(pending)
          #expect(inbox.finish(seq, with: end)?.finishedAt == PushFixture.noon)
        }
      }
      for _ in 0..<2 {
        group.addTask {
          while inbox.snapshot().lastSeq < 1000 {
            let snapshot = inbox.snapshot()
            var outcomes: [Record.Outcome] = []
            try snapshot.records.forEach(in: Selection()) { record in
              outcomes.append(record.outcome)
              return true
            }
            // Only the last record can still be pending.
            #expect(outcomes.dropLast().allSatisfy { $0 == .accepted })
            await Task.yield()
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(inbox.snapshot().count == 100)
  }

  @Test func recordsAreDeletedAndEvictedDuringAppends() async throws {
    let inbox = Inbox(maxRecords: 1000)
    let all = Selection()
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 {
        group.addTask {
          let record = PushFixture().record
          for _ in 0..<2000 { inbox.append(record) }
        }
      }
      group.addTask {
        for _ in 0..<50 {
          try inbox.remove(all)
          var query = PageQuery()
          query.limit = .max
          let seqs = try inbox.snapshot().page(query).items.map(\.seq)
          #expect(zip(seqs, seqs.dropFirst()).allSatisfy { $0 < $1 })
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
    let snapshot = inbox.snapshot()
    #expect(snapshot.lastSeq == 6000)
    #expect(snapshot.count <= 1000)
    #expect(snapshot.bytes == snapshot.count * RecordStorage.cost(PushFixture().record))
  }
}
