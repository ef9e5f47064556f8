import APNSRules
import TestSupport
import Testing

@testable import Inbox

/// New records of a shared store, from their provisional numbers to their `seq`.
struct OutboxTests {
  private func pushes(_ count: Int, outcome: Record.Outcome = .accepted) -> [Record] {
    (0..<count).map { _ in PushFixture { $0.outcome = outcome }.record }
  }

  private static var result: Record.Result {
    Record.Result(outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200), finishedAt: 1)
  }

  private func seq(_ outbox: Outbox, _ number: Int) -> Int? {
    guard case .store(let seq) = outbox.place(of: number) else { return nil }
    return seq
  }

  @Test func numbersAscendOverBatches() {
    var outbox = Outbox()
    var records = pushes(3)
    let first = outbox.append(&records)
    #expect(records.isEmpty && outbox.count == 3)
    #expect(outbox.take(limit: 2).isPartial)
    records = pushes(1)
    #expect(outbox.append(&records) == first + 3)
    #expect(outbox.didWrite(from: 11).records.map(\.seq) == [11, 12])
    let (rest, _, isPartial) = outbox.take(limit: 2)
    #expect(rest.count == 2 && !isPartial)
    #expect(outbox.didWrite(from: 20).records.map(\.seq) == [20, 21])
    #expect(outbox.count == 0)
  }

  /// A batch has a few megabytes, so that a slow network transmits it in time.
  @Test func largePushesAreWrittenInSmallerBatches() {
    var outbox = Outbox()
    let record = PushFixture { $0.body = Array(repeating: 0x20, count: 4096) }.record
    var records = Array(repeating: record, count: 4096)
    _ = outbox.append(&records)
    let (first, _, isPartial) = outbox.take(limit: 4096)
    #expect(isPartial && first.reduce(0) { $0 + $1.storedSize } - 4 << 20 < record.storedSize)
    #expect(first.count > 500)
    var seq = 1 + outbox.didWrite(from: 1).records.count
    while outbox.count > 0 {
      _ = outbox.take(limit: 4096)
      seq += outbox.didWrite(from: seq).records.count
    }
    #expect(seq == 4097)
  }

  @Test func outdatedRecordsHaveNoSeq() {
    var outbox = Outbox()
    var records = pushes(4, outcome: .pending)
    let first = outbox.append(&records) { $0.seq != (1 << 52) + 1 }
    _ = outbox.take(limit: 10)
    // Positions are among the records that are kept: the second one is not.
    #expect(outbox.didWrite(from: 5, except: [0]).records.map(\.seq) == [5, 6])
    #expect((0..<4).map { seq(outbox, first + $0) } == [nil, nil, 5, 6])
    #expect(outbox.count == 0)
  }

  @Test func pendingRecordsKeepTheirNumber() throws {
    var outbox = Outbox()
    var records = pushes(1, outcome: .pending) + pushes(1)
    let first = outbox.append(&records)
    _ = outbox.take(limit: 10)
    _ = outbox.didWrite(from: 7)
    #expect(seq(outbox, first) == 7)
    #expect(seq(outbox, first + 1) == nil)
    #expect(seq(outbox, 7) == 7)
    #expect(outbox.numbers == [7: first])
    let ended = try #require(outbox.updatePending(7) { $0.finish(with: Self.result) })
    #expect(ended.outcome == .accepted)
    #expect(outbox.updatePending(7) { _ in } == nil)
  }

  @Test func aChangeDuringWritingIsReported() {
    var outbox = Outbox()
    var records = pushes(2, outcome: .pending)
    let first = outbox.append(&records)
    _ = outbox.take(limit: 1)
    for number in [first, first + 1] {
      #expect(outbox.update(number) { $0.finish(with: Self.result) } != nil)
    }
    #expect(outbox.update(first + 2) { _ in } == nil)
    let (written, changed) = outbox.didWrite(from: 3)
    #expect(written.map(\.outcome) == [.accepted] && changed.map(\.seq) == [3])
    #expect(outbox.take(limit: 10).records.map(\.outcome) == [.accepted])
    #expect(outbox.didWrite(from: 4).changed.isEmpty)
  }

  @Test func aLostBatchLeavesTheNextNumbersAsTheyAre() {
    var outbox = Outbox()
    var records = pushes(2)
    let first = outbox.append(&records)
    _ = outbox.take(limit: 10)
    records = pushes(1, outcome: .pending)
    #expect(outbox.append(&records) == first + 2)
    #expect(outbox.didLose(unkept: 0) == 2)
    #expect(outbox.take(limit: 10).unkept == 2)
    _ = outbox.didWrite(from: 1)
    #expect(seq(outbox, first + 2) == 1 && seq(outbox, first) == nil)
  }

  @Test func recordsThatAreNotKeptHaveNumbers() {
    var outbox = Outbox()
    var records = pushes(1) + pushes(2, outcome: .pending)
    var isFirst = true
    let first = outbox.append(&records) { _ in
      defer { isFirst = false }
      return !isFirst
    }
    #expect(outbox.update(first) { _ in } == nil && outbox.update(first + 1) { _ in } != nil)
    let (kept, unkept, _) = outbox.take(limit: 10)
    #expect((kept.count, unkept) == (2, 1))
    _ = outbox.didWrite(from: 5)
    #expect(seq(outbox, first + 1) == 5 && seq(outbox, first + 2) == 6)
  }
}
