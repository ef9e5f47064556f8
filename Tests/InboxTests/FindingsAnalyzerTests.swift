import APNSMockRules
import Testing

@testable import APNSMockInbox

/// When records are examined for findings, and how long the results are kept.
@Suite struct FindingsAnalyzerTests {
  /// Returns pushes that are rejected repeatedly for the same reason, one second apart.
  private static func repetitions(_ count: Int64, from start: Int64 = 0) -> [Step] {
    (0..<count).map { Step(at: (start + $0) * 1000, answer: "400 BadTopic") }
  }

  @Test func analysisIsIncremental() {
    let scene = FindingsScenario()
    for (index, step) in Self.repetitions(5).enumerated() {
      scene.add(step)
      #expect(scene.earners(of: .retriedPermanent) == (index > 0 ? Array(2...index + 1) : []))
    }
    #expect(scene.earners(of: .retriedPermanent) == [2, 3, 4, 5])
  }

  @Test func manyRecordsAreAnalyzedInPieces() {
    let scene = FindingsScenario(maxRecords: 100_000)
    let first = scene.add(Step(at: 0, answer: "400 BadTopic"))
    var batch = [Record](repeating: PushFixture { $0.deviceToken = "cd34" }.record, count: 40_000)
    scene.inbox.append(&batch)
    let last = scene.add(Step(at: 1000))
    #expect(scene.findings(of: .retriedPermanent).map(\.evidence) == [[first, last]])
  }

  @Test func selectionIsAnalyzedWithEarlierRecords() throws {
    let scene = FindingsScenario(Self.repetitions(5))
    var selection = Selection()
    selection.after = 3
    let report = try scene.inbox.findings(by: PushFixture.rulebook, in: selection)
    #expect(report.findings.map(\.seq) == [4, 5])
    let summary = try scene.inbox.summary(of: selection, by: PushFixture.rulebook, limit: 1)
    #expect(summary.total == 2)
    #expect(summary.items.map(\.count) == [2])
    #expect(summary.items.first?.newest.map(\.seq) == [5])
  }

  @Test func evictedRecordsCauseNoFindings() throws {
    let scene = FindingsScenario(maxRecords: 3)
    for step in Self.repetitions(5) { scene.add(step) }
    // The first two were evicted before the findings were computed.
    #expect(scene.earners(of: .retriedPermanent) == [4, 5])
    for step in Self.repetitions(1, from: 5) { scene.add(step) }
    let report = try scene.inbox.findings(by: PushFixture.rulebook, in: Selection())
    #expect(report.findings.map(\.evidence) == [[3, 4], [4, 5], [5, 6]])
    #expect(report.evicted == 3)
    #expect(!report.isComplete)
  }

  @Test func evictedStateIsReleased() throws {
    let scene = FindingsScenario(maxRecords: 10)
    for start in stride(from: Int64(0), to: 12_000, by: 10) {
      for step in Self.repetitions(10, from: start) { scene.add(step) }
      try scene.inbox.updateFindings(by: PushFixture.rulebook)
    }
    #expect(scene.inbox.analyzer.seqs.count <= 4096)
    #expect(scene.earners(of: .retriedPermanent).count == 10)
  }

  @Test func deletedRecordsCauseNoFindings() throws {
    let scene = FindingsScenario(Self.repetitions(4))
    #expect(scene.earners(of: .retriedPermanent) == [2, 3, 4])
    var selection = Selection()
    selection.before = 4
    try scene.inbox.remove(selection)
    #expect(scene.earners(of: .retriedPermanent) == [4])
  }

  @Test func emptyingTheInboxRestartsTheAnalysis() {
    let scene = FindingsScenario(Self.repetitions(2) + [Step(at: 5000, answer: "pending", push: "b")])
    #expect(scene.earners(of: .retriedPermanent) == [2])
    scene.inbox.removeAll()
    #expect(scene.inbox.analyzer.seqs.isEmpty)
    for step in Self.repetitions(2, from: 10) { scene.add(step) }
    #expect(scene.earners(of: .retriedPermanent) == [5])
  }

  /// A filter and a record's findings agree; without an inbox, a record shows only the findings that need no other
  /// record.
  @Test func filtersAndRecordsAgreeOnFindings() throws {
    let scene = FindingsScenario(Self.repetitions(3))
    let context = FilterContext(rulebook: PushFixture.rulebook, inbox: scene.inbox)
    let query = try PageQuery([(name: "q", value: "finding:retried-*")], in: context)
    let page = try scene.inbox.snapshot().page(query)
    #expect(page.items.map(\.seq) == [2, 3])
    let kinds = page.items.map { $0.findingKinds(by: PushFixture.rulebook, in: scene.inbox) }
    #expect(kinds == [[.retriedPermanent], [.retriedPermanent]])
    #expect(page.items.map { $0.findingKinds(by: PushFixture.rulebook, in: nil) } == [[], []])
  }

  /// Pushes are added, examined and removed concurrently.
  @Test func concurrentAnalysis() async throws {
    let inbox = Inbox(maxRecords: 500)
    let records = Self.repetitions(20).map { step in
      PushFixture {
        $0.outcome = .rejected
        $0.sentResponse = Record.SentResponse(status: 400, reason: .badTopic, latencyNanoseconds: 1)
        $0.arrivedAt = step.at * 1_000_000
      }.record
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<3 {
        group.addTask {
          for _ in 0..<60 {
            var batch = records
            inbox.append(&batch)
            if number == 0 { inbox.removeAll() }
          }
        }
        group.addTask {
          for _ in 0..<60 { _ = try inbox.findings(by: PushFixture.rulebook, in: Selection()) }
        }
      }
      try await group.waitForAll()
    }
    inbox.removeAll()
    var batch = records
    inbox.append(&batch)
    let report = try inbox.findings(by: PushFixture.rulebook, in: Selection())
    #expect(report.findings.filter { $0.kind == .retriedPermanent }.count == records.count - 1)
  }
}
