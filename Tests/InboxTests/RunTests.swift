import APNSMockNotation
import Testing

@testable import APNSMockInbox

@Suite("Runs")
struct RunTests {
  private func changes(_ name: String) -> RunList.RunChanges {
    var changes = RunList.RunChanges()
    changes.name = name
    return changes
  }

  @Test("A text is cut at a character, whatever its bytes")
  func cut() {
    for text in [
      "", "short", String(repeating: "é", count: 9), String(repeating: "🙂", count: 6),
      "a" + String(repeating: "é", count: 9),
    ] {
      for limit in 4...30 {
        let cut = TestRun.cut(text, limit)
        #expect(cut.utf8.count <= max(limit, text.utf8.count <= limit ? limit : 0))
        #expect(cut == text || cut.hasSuffix("…") && text.hasPrefix(cut.dropLast()))
      }
    }
  }

  @Test("At most 1,000 runs and 10,000 tests are kept, the open ones longest")
  func bounds() {
    let runs = RunList()
    let open = runs.start(changes("open"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    var ended = changes("ended")
    ended.isEnded = true
    for _ in 0..<RunList.maxRuns { _ = runs.start(ended, seed: nil, profile: nil, now: 0, lastSeq: 0) }
    #expect(runs.all.count == RunList.maxRuns && runs.run(open.id) != nil && runs.run("r2") == nil)
    for number in 0..<RunList.maxTests + 5 {
      let test = runs.startTest(in: open.id, name: "t\(number)", scope: nil, now: 0, lastSeq: 0)
      _ = runs.endTest(in: open.id, test?.number ?? 0, .passed, message: nil, now: 0, lastSeq: 0)
    }
    let tests = runs.run(open.id)?.tests ?? []
    #expect(tests.count == RunList.maxTests && tests.first?.name == "t5" && runs.run(open.id)?.droppedTests == 5)
  }

  @Test("Resets of several tests keep all their pushes, and a report has each once and in order")
  func interleavedResets() async throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    for topic in ["a", "b"] {
      _ = inbox.runs.startTest(in: run.id, name: topic, scope: "topic:\(topic)", now: 0, lastSeq: 0)
    }
    for topic in ["b", "a", "b", "a", "b", "a", "b"] { inbox.append(WaitingTests.record(topic)) }
    for topic in ["a", "b"] {
      let scope = try Selection(FilterTests.parameters("scope=topic:\(topic)"))
      // The first one has failed before it removed anything.
      for _ in 0..<2 {
        inbox.archiveForRuns(scope, by: PushFixture.rulebook)
        #expect(try Self.seqs(of: inbox) == Array(1...7))
      }
      #expect(try await inbox.resetInSlices(scope) == (topic == "a" ? 3 : 4))
      #expect(try Self.seqs(of: inbox) == Array(1...7))
    }
    let imported = try Self.imported(try Self.export(of: inbox, run.id))
    #expect(imported.runs.run(run.id)?.tests.map { $0.seqs?.text } == ["2,4,6", "1,3,5,7"])
  }

  @Test("The records of an import name their runs and tests; the numbers in the lines of these are of another inbox")
  func importedNumbers() async throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    inbox.append(WaitingTests.record())
    _ = inbox.runs.startTest(in: run.id, name: "t", scope: nil, now: 0, lastSeq: 1)
    inbox.append(WaitingTests.record())
    func export(_ inbox: Inbox) throws -> [UInt8] {
      try Self.export(of: inbox, "r1")
    }
    let other = Inbox()
    for _ in 0..<5 { other.append(WaitingTests.record()) }
    #expect(try await other.append(imported: try Self.imported(try export(inbox))) == 6...7)
    let imported = try #require(other.runs.run("r1"))
    #expect(imported.seqs?.text == "6" && imported.tests.map { $0.seqs?.text } == ["7"])
    // The lines of the second export have these numbers.
    let text = String(decoding: try export(other), as: UTF8.self)
    #expect(text.contains(#""seqs":"6""#) && text.contains(#""seqs":"7""#))
    let third = Inbox()
    for _ in 0..<2 {
      _ = try await third.append(imported: try Self.imported(Array(text.utf8)))
    }
    #expect(third.runs.all.map { $0.seqs?.text } == ["1", "3"])
    #expect(third.runs.all.map { $0.tests.map { $0.seqs?.text } } == [["2"], ["4"]])
    let lines = text.split(separator: "\n").prefix(2).joined(separator: "\n")
    let empty = try #require(try Self.imported(Array(lines.utf8)).runs.run("r1"))
    #expect(empty.seqs?.ranges.isEmpty == true && empty.tests.first?.seqs?.ranges.isEmpty == true)
  }

  @Test("Tests with the same name have their own pushes, also after an export")
  func equalNames() async throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    for seq in 1...2 {
      let test = inbox.runs.startTest(in: run.id, name: "test_same", scope: nil, now: 0, lastSeq: seq - 1)
      for _ in 0..<seq { inbox.append(WaitingTests.record()) }
      let outcome = seq == 1 ? RunOutcome.failed : .passed
      let lastSeq = seq == 1 ? 1 : 3
      _ = inbox.runs.endTest(in: run.id, test?.number ?? 0, outcome, message: nil, now: 0, lastSeq: lastSeq)
    }
    func numbers(_ inbox: Inbox) throws -> [Int?] {
      let attribution = inbox.runs.attribution
      var iterator = try inbox.recordsOfRuns(by: PushFixture.rulebook).makeIterator()
      var numbers: [Int?] = []
      while let group = try iterator.next() { numbers += group.map { attribution.owner(of: $0)?.number } }
      return numbers
    }
    func counts(_ inbox: Inbox) throws -> [String] {
      let report = try RunReport(inbox.recordsOfRuns(by: PushFixture.rulebook), program: "")
      var writer = JSONWriter()
      writer.object { report.writeMembers(to: &$0) }
      let text = String(decoding: writer.bytes, as: UTF8.self)
      return text.matches(of: /"test_same","outcome":"(\w+)","duration_ms":0,"pushes":(\d)/).map { "\($0.1) \($0.2)" }
    }
    // The second test begins with the second push.
    #expect(try numbers(inbox) == [1, 2, 2])
    #expect(try counts(inbox) == ["failed 1", "passed 2"])
    let other = Inbox()
    other.append(WaitingTests.record())
    _ = try await other.append(imported: try Self.imported(try Self.export(of: inbox, run.id)))
    #expect(try numbers(other) == [nil, 1, 2, 2])
    #expect(try counts(other) == ["failed 1", "passed 2"])
  }

  @Test(
    "A push belongs to the innermost open test",
    arguments: [
      // The open tests and the topics of their scopes; the owners of pushes with the topics `a` and `b`.
      ([("TestA", nil), ("TestA/b", nil)], ["TestA/b", "TestA/b"]),
      ([("a", nil), ("a > b", nil), ("a > b > c", nil)], ["a > b > c", "a > b > c"]),
      ([("TestA", nil), ("TestA/b", nil), ("TestA/c", nil)], [nil, nil]),
      ([("TestA", nil), ("TestAB", nil)], [nil, nil]),
      ([("TestA", nil), ("TestA/b", "a")], ["TestA/b", "TestA"]),
      ([("TestA", "a"), ("TestA/b", nil)], ["TestA/b", nil]),
      ([("TestA", "a"), ("TestA/b", nil), ("TestC", "b")], ["TestA/b", "TestC"]),
    ] as [([(String, String?)], [String?])])
  func nested(tests: [(String, String?)], owners: [String?]) throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    var numbers: [Int] = []
    for (name, topic) in tests {
      let scope = topic.map { "topic:\($0)" }
      let started = inbox.runs.startTest(in: run.id, name: name, scope: scope, now: 0, lastSeq: 0)
      numbers.append(try #require(started).number)
    }
    for topic in ["a", "b"] { inbox.append(WaitingTests.record(topic)) }
    for number in numbers.dropFirst() {
      _ = inbox.runs.endTest(in: run.id, number, .passed, message: nil, now: 0, lastSeq: 2)
    }
    inbox.append(WaitingTests.record())
    let found = Self.owners(in: inbox, inbox.runs.attribution)
    #expect(found == owners.enumerated().map { "\($0 + 1) \($1 ?? "-")" } + ["3 \(tests[0].0)"])
  }

  @Test("A run that has ended without an outcome continues with the next test", arguments: [nil, RunOutcome.passed])
  func reopened(outcome: RunOutcome?) throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    var end = RunList.RunChanges()
    (end.isEnded, end.outcome) = (true, outcome)
    for seq in 1...2 {
      let test = inbox.runs.startTest(in: run.id, name: "t\(seq)", scope: nil, now: 0, lastSeq: seq - 1)
      inbox.append(WaitingTests.record())
      if outcome == nil { #expect(Self.owners(in: inbox, inbox.runs.attribution).last == "\(seq) t\(seq)") }
      _ = inbox.runs.endTest(in: run.id, test?.number ?? 0, .passed, message: nil, now: 0, lastSeq: seq)
      _ = inbox.runs.update(run.id, end, now: 0, lastSeq: seq)
    }
    inbox.runs.interruptAll(now: 0, lastSeq: 2)
    #expect(inbox.runs.run(run.id)?.result == .passed)
    _ = inbox.runs.startTest(in: run.id, name: "t3", scope: nil, now: 0, lastSeq: 2)
    #expect((inbox.runs.run(run.id)?.endedAt == nil) == (outcome == nil))
    inbox.runs.interruptAll(now: 0, lastSeq: 2)
    #expect(inbox.runs.run(run.id)?.result == outcome ?? .interrupted)
  }

  @Test("Pushes that are removed and added again belong to their former runs and tests, also after a restart")
  func restored() async throws {
    let inbox = Inbox()
    let run = inbox.runs.start(changes("suite"), seed: nil, profile: nil, now: 0, lastSeq: 0)
    inbox.append(WaitingTests.record())
    let test = inbox.runs.startTest(in: run.id, name: "t", scope: nil, now: 0, lastSeq: 1)
    inbox.append(WaitingTests.record())
    _ = inbox.runs.endTest(in: run.id, test?.number ?? 0, .passed, message: nil, now: 0, lastSeq: 2)
    for seqs in ["1-2", "3-4"] {
      let export = try Self.export(of: inbox, run.id)
      try inbox.remove(Selection(FilterTests.parameters("seqs=\(seqs)")))
      _ = try await inbox.append(imported: try Self.imported(export), isOwn: true)
    }
    inbox.append(WaitingTests.record())
    #expect(inbox.runs.all.count == 1 && inbox.runs.run(run.id)?.tests.count == 1)
    #expect(Self.owners(in: inbox, inbox.runs.attribution) == ["5 -", "6 t", "7 -"])
    let rows = ["run/r1", "run/r1/1"].compactMap { inbox.runs.storedRow($0) }
    let other = RunList()
    other.restore(rows, now: 0, lastSeq: 7) { _ in }
    #expect(Self.owners(in: inbox, other.attribution) == ["5 -", "6 t", "7 -"])
    // Without its run, a push has no owner.
    let export = try Self.export(of: inbox, run.id)
    let empty = Inbox()
    _ = try await empty.append(imported: try Self.imported(export), isOwn: true)
    #expect(empty.runs.all.isEmpty && empty.snapshot().count == 3)
  }

  /// Returns each push that belongs to a run, and its test.
  private static func owners(in inbox: Inbox, _ attribution: RunAttribution) -> [String] {
    var owners: [String] = []
    inbox.snapshot().records.recent.forEach(in: .allKinds) { record in
      if let owner = attribution.owner(of: record) { owners.append("\(record.seq) \(owner.test ?? "-")") }
      return true
    }
    return owners
  }

  /// Returns the pushes of a report.
  private static func seqs(of inbox: Inbox) throws -> [Int] {
    var seqs: [Int] = []
    var iterator = try inbox.recordsOfRuns(by: PushFixture.rulebook).makeIterator()
    while let group = try iterator.next() { seqs += group.map(\.seq) }
    return seqs
  }

  /// Returns the export of a run.
  private static func export(of inbox: Inbox, _ run: String) throws -> [UInt8] {
    let records = try inbox.recordsOfRuns([run], by: PushFixture.rulebook)
    var export = RunExport(records, of: [run], by: PushFixture.rulebook)
    var text: [UInt8] = []
    while let piece = try export.next() { text += piece }
    return text
  }

  private static func imported(_ export: [UInt8]) throws -> Inbox {
    var reader = InboxImport(maxBytes: 1 << 20)
    try reader.read(export)
    return try reader.finish()
  }

  @Test("A line of a run or a test is read as it was written, and invalid ones are errors")
  func lines() throws {
    let runs = RunList()
    var labeled = changes("suite")
    labeled.labels = ["a": "b"]
    let run = runs.start(labeled, seed: 7, profile: "flaky", now: 1_000, lastSeq: 4)
    let test = runs.startTest(in: run.id, name: "t", scope: "topic:x", now: 1_000, lastSeq: 5)
    _ = runs.endTest(in: run.id, test?.number ?? 0, .failed, message: "why", now: 2_000, lastSeq: 9)
    var rows: [String] = []
    for name in ["run/\(run.id)", "run/\(run.id)/1"] { rows.append(try #require(runs.storedRow(name))) }
    let other = RunList()
    other.restore(rows, now: 3_000, lastSeq: 12) { _ in }
    let restored = try #require(other.run(run.id))
    #expect(
      (restored.name, restored.labels, restored.seed, restored.outcome, restored.after, restored.through).0 == "suite")
    #expect(restored.labels == ["a": "b"] && restored.seed == 7 && restored.outcome == .interrupted)
    #expect(restored.after == 4 && restored.through == 12 && restored.tests.first?.through == 9)
    #expect(restored.tests.first?.message == "why" && restored.tests.first?.scope == "topic:x")
    for text in [
      "{}", #"{"kind":"run"}"#, #"{"kind":"run","id":"r1"}"#,
      #"{"kind":"test","name":"x","started_at":"2026-01-01T00:00:00Z"}"#, #"{"kind":"run""#,
    ] {
      var text = text
      #expect(throws: JSONText.Problem.self) { try text.withUTF8 { try RunLine(UnsafeRawBufferPointer($0)) } }
    }
  }
}
