import Dispatch
import APNSMockInbox
import NIOConcurrencyHelpers
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// Writing to a store that fails, stalls or is slow.
@Suite struct RecordWriterTests {
  /// A store in memory that fails on request.
  final class FailingStore: RecordStore {
    struct Failure: Error, CustomStringConvertible { var description: String { "the disk is full" } }

    let place = "test"
    let initialContents = StoredContents()
    private let state = NIOLockedValueBox(
      (fails: false, knowsNames: true, written: [Int](), rows: [String: String]()))
    /// Taken by a test to make the store wait.
    let disk = DispatchSemaphore(value: 1)

    var fails: Bool {
      get { state.withLockedValue { $0.fails } }
      set { state.withLockedValue { $0.fails = newValue } }
    }
    /// Whether it can be asked for names, in contrast to records.
    var knowsNames: Bool {
      get { state.withLockedValue { $0.knowsNames } }
      set { state.withLockedValue { $0.knowsNames = newValue } }
    }
    var written: [Int] { state.withLockedValue { $0.written } }
    /// The rows with the state of the server.
    var rows: [String: String] { state.withLockedValue { $0.rows } }

    func write(_ batch: borrowing StoreBatch, progress: () -> Void) throws -> StoreBatch.Result {
      let (seqs, rows) = (batch.appended.map(\.seq), batch.serverState)
      disk.wait()
      disk.signal()
      try state.withLockedValue { state in
        if state.fails { throw Failure() }
        state.written += seqs
        for (name, value) in rows { state.rows[name] = value }
      }
      return StoreBatch.Result()
    }
    func forEach(_ query: StoreQuery, _ visit: (borrowing Record) -> Bool) throws { throw Failure() }
    func count(_ query: StoreQuery, limit: Int) throws -> Int { throw Failure() }
    func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] { throw Failure() }
    func contains(name: String) throws -> Bool {
      guard knowsNames else { throw Failure() }
      return false
    }
    func close() throws {}
  }

  static func inbox(
    _ store: FailingStore, _ change: (inout RecordWriter.Options) -> Void = { _ in }
  ) -> (inbox: Inbox, writer: RecordWriter, events: NIOLockedValueBox<[String]>) {
    var options = RecordWriter.Options()
    change(&options)
    let events = NIOLockedValueBox([String]())
    let writer = RecordWriter(store, options) { event in
      events.withLockedValue { $0.append(String(describing: event).prefix { $0 != "(" }.description) }
    }
    return (Inbox(maxRecords: .max, maxBytes: .max, writer: writer), writer, events)
  }

  private static func stop(_ disk: DispatchSemaphore) { disk.wait() }

  @Test func answersWaitForTheirBatch() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.durability = .answer }
    var prerequisite = AnswerGate.Prerequisite()
    for number in 1...2000 {
      let seq = inbox.append(Push.record(number))
      writer.answers.extend(&prerequisite)
      await withCheckedContinuation { continuation in writer.answers.whenMet(prerequisite) { continuation.resume() } }
      #expect(store.written.last ?? 0 >= seq)
    }
    try writer.stop()
  }

  /// A request fails because of what it reads itself, and names that, while another request at the same time succeeds.
  @Test func failedReadsFailOnlyTheirRequest() async throws {
    let (inbox, writer, _) = Self.inbox(FailingStore()) { $0.recentRecords = 1 }
    for number in 1...3 { inbox.append(Push.record(number)) }
    writer.flush()
    let newest = try await inbox.repeatingAfterReset {
      let error = await #expect(throws: StoreUnavailable.self) {
        try await inbox.repeatingAfterReset { try inbox.record(seq: 1) }
      }
      #expect(error?.problem == "the disk is full")
      return try inbox.record(seq: 3)
    }
    #expect(newest?.seq == 3)
    try writer.stop()
  }

  /// A filter that could not be prepared, because the store was not readable, is no valid one.
  @Test func conditionsThatCannotBeCheckedAreAnError() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.recentRecords = 1 }
    for number in 1...3 { inbox.append(Push.record(number)) }
    writer.flush()
    let context = FilterContext(snapshot: inbox.snapshot(), known: KnownNames(faults: []))
    #expect(throws: FilterError.self) { try Selection([(name: "reason", value: "Mistyped")], in: context) }
    store.knowsNames = false
    let unchecked = try Selection([(name: "reason", value: "Mistyped")], in: context)
    let duplicates = try Selection([(name: "is", value: "duplicate")], in: context)
    for selection in [unchecked, duplicates] {
      #expect(selection.filter.failure?.problem == "the disk is full")
      var iterator = InboxIterator(inbox.snapshot(), selection)
      #expect(throws: StoreUnavailable.self) { try iterator.next() }
    }
    let verification = try Verification(json: Array(#"{"scope":"reason:Mistyped","no_others":true}"#.utf8), in: context)
    await #expect(throws: StoreUnavailable.self) {
      try await inbox.verify(verification, in: VerificationContext(rulebook: Push.rulebook, seed: nil, profile: nil))
    }
    try writer.stop()
  }

  /// The state of the server is stored with the batch in which it changed, later if the store fails, and not of the future.
  @Test(arguments: RecordWriter.FailurePolicy.allCases)
  func storesTheStateOfTheServer(policy: RecordWriter.FailurePolicy) async throws {
    let store = FailingStore()
    let (_, writer, _) = Self.inbox(store) { $0.failurePolicy = policy }
    let values = NIOLockedValueBox(["clock": "1", "device/a": "1", "device/b": "1"])
    writer.serverState.start(with: ["device/old"]) { changed in
      values.withLockedValue { values in
        StoredServerState.Rows(uniqueKeysWithValues: changed.map { ($0, values[$0]) })
      }
    }
    #expect(!writer.serverState.hasChanges)
    writer.serverState.didChange("clock", "device/a", "device/b")
    #expect(writer.serverState.hasChanges)
    #expect(writer.flush())
    #expect(store.rows == ["clock": "1", "device/a": "1", "device/b": "1"] && !writer.serverState.hasChanges)
    store.fails = true
    values.withLockedValue { ($0["clock"], $0["device/b"]) = ("2", nil) }
    writer.serverState.didChange("clock", "device/b")
    try await eventually("the store fails") { writer.figures.problem != nil }
    values.withLockedValue { $0["device/a"] = "3" }
    writer.serverState.didChange("device/a")
    store.fails = false
    try await eventually("the state is stored") { store.rows == ["clock": "2", "device/a": "3"] }
    writer.serverState.didChange("device/a")
    writer.serverState.remove { $0.hasPrefix("device/") }
    writer.serverState.didChange("device/c")
    values.withLockedValue { $0["device/c"] = "4" }
    #expect(writer.flush())
    #expect(store.rows == ["clock": "2", "device/c": "4"])
    try writer.stop()
  }

  @Test func refusesWhileTheStoreFails() async throws {
    let store = FailingStore()
    let (inbox, writer, events) = Self.inbox(store)
    inbox.append(Push.record(1))
    try await eventually("push 1 is written") { store.written == [1] }
    store.fails = true
    inbox.append(Push.record(2))
    try await eventually("the writer refuses pushes") { writer.answers.refusesPushes }
    #expect(writer.figures.problem == "the disk is full")
    #expect(!writer.flush())
    inbox.append(Push.record(3))
    store.fails = false
    try await eventually("the writer recovers") { !writer.answers.refusesPushes && store.written == [1, 2, 3] }
    #expect(events.withLockedValue { $0 } == ["failed", "recovered"])
    #expect(inbox.snapshot().count == 3 && writer.figures.lost == 0)
    try writer.stop()
  }

  @Test func dropsWhileTheStoreFails() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.failurePolicy = .drop }
    inbox.append(Push.record(1))
    try await eventually("push 1 is written") { store.written == [1] }
    store.fails = true
    inbox.append(Push.record(2))
    inbox.append(Push.record(3))
    try await eventually("two pushes are lost") { writer.figures.lost == 2 }
    #expect(!writer.answers.refusesPushes)
    let snapshot = inbox.snapshot()
    #expect(snapshot.count == 1 && snapshot.evicted == 2 && !snapshot.isComplete(after: 0))
    // What was not lost is still in memory; this store cannot be read.
    #expect(try inbox.record(seq: 1) != nil)
    store.fails = false
    inbox.append(Push.record(4))
    try await eventually("the writer recovers") { store.written == [1, 4] && writer.figures.problem == nil }
    try writer.stop()
  }

  /// A push that is removed while it is being written, and that is then lost, is not counted.
  @Test func countsNoPushThatWasRemovedAndLost() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.failurePolicy = .drop }
    inbox.append(Push.record(1))
    try await eventually("push 1 is written") { store.written == [1] }
    Self.stop(store.disk)
    store.fails = true
    for number in 2...4 { inbox.append(Push.record(number)) }
    // It counts as failing when it has not answered for some time, so the batch was taken.
    try await eventually("the store counts as failing") { writer.figures.problem != nil }
    var third = Selection.allKinds
    (third.after, third.before) = (2, 4)
    // It cannot be confirmed while the store fails.
    _ = try? inbox.remove(third)
    store.disk.signal()
    try await eventually("two pushes are lost") { writer.figures.lost == 2 }
    #expect(inbox.snapshot().count == 1)
    store.fails = false
    try await eventually("the writer recovers") { writer.figures.problem == nil }
    #expect(inbox.snapshot().count == 1)
    try writer.stop()
  }

  /// While the database does not answer, the memory of pushes that will be dropped is limited.
  @Test func dropsAtOnceWhatIsTooMuch() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.failurePolicy = .drop }
    inbox.append(Push.record(1))
    try await eventually("push 1 is written") { store.written == [1] }
    Self.stop(store.disk)
    inbox.append(Push.record(2))
    try await eventually("the store counts as failing") { writer.figures.problem != nil }
    let record = Push.record(3)
    for _ in 1...12_000 { inbox.append(record) }
    #expect(writer.figures.lost == 2_001 && inbox.snapshot().count == 10_001)
    store.disk.signal()
    try await eventually("all pushes are written") { inbox.waitingRecords == 0 }
    let snapshot = inbox.snapshot()
    #expect(snapshot.count == 10_001 && snapshot.evicted == 2_001 && snapshot.lastSeq == 12_002)
    #expect(store.written.count == 10_001)
    inbox.append(Push.record(1))
    try await eventually("the last push is written") { store.written.last == 12_003 }
    try writer.stop()
  }

  /// A query over a store that cannot be read is an error, not a shorter list.
  @Test func unreadableRecordsAreAnError() async throws {
    let (inbox, writer, events) = Self.inbox(FailingStore()) { $0.recentRecords = 1 }
    for number in 1...5 { inbox.append(Push.record(number)) }
    writer.flush()
    let snapshot = inbox.snapshot()
    await #expect(throws: StoreUnavailable.self) { try await snapshot.pageInSlices(PageQuery()) }
    var iterator = InboxIterator(inbox.snapshot(), .allKinds)
    #expect(throws: StoreUnavailable.self) { while try iterator.next() != nil {} }
    let result = try await inbox.wait(for: WaitQuery([(name: "count", value: "=1"), (name: "timeout", value: "50ms")]))
    #expect(!result.isComplete)
    #expect(events.withLockedValue { $0.first } == "readFailed")
    try writer.stop()
  }

  /// A wait that was satisfied by pushes that cannot be read any more does not respond with some of them.
  @Test func awaitedRecordsThatCannotBeReadAreAnError() async throws {
    let store = FailingStore()
    let (inbox, writer, _) = Self.inbox(store) { $0.recentRecords = 1 }
    func wait(settle: String) async throws -> Task<WaitResult, any Error> {
      let query = try WaitQuery([
        (name: "count", value: "5"), (name: "settle", value: settle), (name: "timeout", value: "1m"),
      ])
      let (wait, before) = (Task { try await inbox.wait(for: query) }, inbox.waiterCount)
      try await eventually("the wait is registered") { inbox.waiterCount > before }
      return wait
    }
    let (satisfied, settling) = (try await wait(settle: "0s"), try await wait(settle: "2s"))
    // They stay in memory until they are written.
    Self.stop(store.disk)
    for number in 1...5 { inbox.append(Push.record(number)) }
    #expect(try await satisfied.value.items.count == 5)
    store.disk.signal()
    try await eventually("all pushes are written") { inbox.waitingRecords == 0 }
    await #expect(throws: StoreUnavailable.self) { try await settling.value }
    try writer.stop()
  }
}
