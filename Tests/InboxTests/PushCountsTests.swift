import APNSMockRules
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Counters over all pushes, independent of whether their records are kept.
@Suite struct PushCountsTests {
  private static func end(
    _ outcome: Record.Outcome, _ status: Int? = nil, _ reason: Reason? = nil, latency: Int64? = nil,
    wireDetails: WireDetails? = nil
  ) -> Record.Result {
    Record.Result(
      outcome: outcome, accepted: outcome == .accepted,
      sentResponse: Record.SentResponse(status: status, reason: reason, latencyNanoseconds: latency),
      wireDetails: wireDetails,
      finishedAt: outcome == .pending ? nil : 1)
  }

  private static func record(_ end: Record.Result) -> Record {
    PushFixture {
      $0.outcome = end.outcome
      $0.sentResponse = end.sentResponse
      $0.wireDetails = end.wireDetails
    }.record
  }

  private static func count(_ inbox: Inbox, _ outcome: Record.Outcome, _ status: Int16?) -> Int {
    inbox.counts.results.filter { $0.key.outcome == outcome && $0.key.status == status }
      .reduce(0) { $0 + $1.count }
  }

  @Test func outcomesAreDistinguished() {
    let inbox = Inbox()
    for _ in 0..<3 { inbox.append(Self.record(Self.end(.accepted, 200, latency: 10))) }
    inbox.append(Self.record(Self.end(.rejected, 400, .badTopic)))
    inbox.append(Self.record(Self.end(.rejected, 400, .badTopic)))
    inbox.append(Self.record(Self.end(.rejected, 403, .forbidden)))
    inbox.append(Self.record(Self.end(.unanswered)))
    let odd = WireDetails(unusualReason: "Odd")
    inbox.append(Self.record(Self.end(.rejected, 503, wireDetails: odd)))
    let results = inbox.counts.results
    #expect(results.map(\.count) == [3, 2, 1, 1, 1])
    #expect(results.first?.key.outcome == .accepted)
    #expect(results.map(\.key.hasUnusualReason) == [false, false, false, true, false])
    #expect(inbox.counts.latency.counts.reduce(0, +) == 3)
    #expect(inbox.counts.latency.sum == 30)
  }

  @Test func acceptedStartsAtZero() {
    let results = Inbox().counts.results
    #expect(results.count == 1)
    #expect(results[0].count == 0)
    #expect(results[0].key.status == 200)
  }

  @Test func delayedPushIsCountedWhenItEnds() {
    let inbox = Inbox(maxRecords: 2)
    let first = inbox.append(Self.record(Self.end(.pending)))
    let second = inbox.append(Self.record(Self.end(.pending)))
    #expect(inbox.counts.pending == 2)
    #expect(Self.count(inbox, .accepted, 200) == 0)
    inbox.finish(second, with: Self.end(.accepted, 200))
    #expect(inbox.counts.pending == 1)
    #expect(Self.count(inbox, .accepted, 200) == 1)
    // A push whose record was evicted is still counted when it ends.
    inbox.append(Self.record(Self.end(.accepted, 200)))
    #expect(inbox.finish(first, with: Self.end(.rejected, 503)) == nil)
    #expect(inbox.counts.pending == 0)
    #expect(Self.count(inbox, .rejected, 503) == 1)
    #expect(inbox.counts.evicted == 1)
  }

  @Test func countersNeverDecrease() throws {
    let inbox = Inbox(maxRecords: 1)
    for _ in 0..<5 { inbox.append(Self.record(Self.end(.accepted, 200, latency: 1))) }
    inbox.removeAll()
    inbox.append(Self.record(Self.end(.accepted, 200, latency: 1)))
    try inbox.remove(Selection())
    #expect(Self.count(inbox, .accepted, 200) == 6)
    #expect(inbox.counts.evicted == 4)
    #expect(inbox.counts.latency.counts[0] == 6)
  }

  @Test(arguments: [
    (0, 0), (50_000, 0), (50_001, 1), (1_000_000, 4), (1_000_001, 5), (30_000_000_000, 17), (30_000_000_001, 18),
    (.max, 18),
  ])
  func bucketsIncludeTheirUpperBound(nanoseconds: Int64, index: Int) {
    var histogram = LatencyHistogram()
    histogram.add(nanoseconds)
    #expect(histogram.counts.firstIndex(of: 1) == index)
    #expect(histogram.counts.count == LatencyHistogram.bounds.count + 1)
  }
}
