import APNSMockRules
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

@Suite struct RecordingTests {
  @Test(arguments: [
    ("all", Recording.all), ("counters", .counters), ("sample=1/1", .sample(of: 1)),
    ("sample=1/1000", .sample(of: 1000)),
  ])
  func text(_ text: String, _ recording: Recording) {
    #expect(Recording(text) == recording)
    #expect(recording.text == text)
  }

  @Test(arguments: ["", "All", "sample", "sample=1/0", "sample=1/-2", "sample=2/3", "sample=1/", "sample=1/x", "none"])
  func invalidText(_ text: String) { #expect(Recording(text) == nil) }

  /// The records of `count` pushes to different devices.
  private static func records(_ count: Int) -> [Record] {
    (0..<count).map { number in PushFixture { $0.body = Array("{\"aps\":{\"badge\":\(number)}}".utf8) }.record }
  }

  @Test func sampleKeepsAllAttemptsOfAPush() throws {
    let inbox = Inbox(recording: .sample(of: 4))
    for _ in 0..<2 {
      var batch = Self.records(400)
      #expect(inbox.append(&batch) % 400 == 1, "each push has a seq")
    }
    let snapshot = inbox.snapshot()
    #expect((60...140).contains(snapshot.count / 2), "about a quarter")
    #expect(snapshot.count + snapshot.evicted == 800)
    #expect(snapshot.lastSeq == 800)
    #expect(!snapshot.isComplete(after: 0))
    let kept = try snapshot.page(try PageQuery([("limit", "1000")])).items
    let seqs = kept.map(\.seq)
    #expect(seqs == seqs.filter { $0 <= 400 } + seqs.filter { $0 <= 400 }.map { $0 + 400 })
    #expect(inbox.counts.results.map(\.count) == [800])
    #expect(inbox.counts.evicted == snapshot.evicted)
  }

  @Test func countersKeepNothingButCountEverything() throws {
    let inbox = Inbox(recording: .counters)
    let seq = inbox.append(PushFixture { $0.outcome = .pending }.record)
    #expect(inbox.counts.pending == 1)
    let result = Record.Result(
      outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200), finishedAt: 0)
    #expect(inbox.finish(seq, with: result) == nil)
    #expect(inbox.counts.pending == 0)
    #expect(inbox.counts.results.map(\.count) == [1])
    #expect(inbox.snapshot().count == 0)
  }

  @Test func importedRecordsAreKept() async throws {
    let inbox = Inbox(recording: .counters)
    let other = Inbox()
    for record in Self.records(3) { other.append(record) }
    #expect(try await inbox.append(imported: other) == 1...3)
    #expect(inbox.snapshot().count == 3)
  }
}
