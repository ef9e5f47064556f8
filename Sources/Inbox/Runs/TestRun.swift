package import APNSMockNotation

/// How a run or a test ended.
package enum RunOutcome: String, CaseIterable, Sendable {
  case passed, failed, skipped
  /// It was never ended: its process was killed, or ended without a report.
  case interrupted
}

/// What runs and tests have in common: when they were open, and which pushes belong to them.
protocol RunSpan {
  var name: String { get }
  var scope: String? { get set }
  var startedAt: Int64 { get }
  var endedAt: Int64? { get set }
  var outcome: RunOutcome? { get set }
  /// The outcome to show.
  var result: RunOutcome? { get }
  /// Only pushes with a larger `seq` arrived while it was open, up to `through`; nil while it is open.
  var after: Int { get set }
  var through: Int? { get set }
  /// The pushes of an imported one; nil for others.
  var seqs: SeqRanges? { get set }
  /// Its pushes that were removed and added again.
  var restored: SeqRanges { get set }
}

/// A test of a run: usually one test function.
package struct RunTest: RunSpan, Sendable {
  /// The position in its run, from 1. Several tests can have the same name.
  package internal(set) var number: Int
  /// The name as the test framework prints it.
  package let name: String
  /// The query that selects the pushes of the test; nil for all pushes while it is the only open test.
  package internal(set) var scope: String?
  /// Milliseconds since 1970 by the server's clock.
  package let startedAt: Int64
  package internal(set) var endedAt: Int64?
  /// The machine's time at its beginning; nil for an imported one.
  var began: MonotonicTime?
  /// Milliseconds until its end by the machine's clock, which a test cannot move; nil for one that is open or does not say it.
  var measured: Int64?
  package internal(set) var outcome: RunOutcome?
  /// Why it failed: what was expected and what was found.
  package internal(set) var message: String?
  var after = 0
  var through: Int?
  var seqs: SeqRanges?
  var restored = SeqRanges([])

  var result: RunOutcome? { outcome }

  /// How long it took, in milliseconds; nil while it is open.
  package var duration: Int64? { endedAt.map { measured ?? max(0, $0 - startedAt) } }

  /// Returns the test as the owner of pushes.
  ///
  /// - Parameter run: The `id` of its run.
  func owner(in run: String) -> RunAttribution.Owner {
    RunAttribution.Owner(run: run, test: name, number: number)
  }
}

/// A run of a test suite, with its tests.
package struct TestRun: RunSpan, Sendable {
  /// `r` and a number; in a view of several servers after the name of the server, such as `load_1:r3`.
  package internal(set) var id: String
  /// The server in a view of several, whose `seq` values the run has; nil for others.
  package internal(set) var server: String?
  package internal(set) var name: String
  package internal(set) var labels: [String: String] = [:]
  /// The query that selects the pushes of the run; nil for all pushes while it is the only open run.
  package internal(set) var scope: String?
  /// The seed and the reference of the fault profile at its beginning.
  package internal(set) var seed: UInt64?
  package internal(set) var profile: String?
  /// The command that repeats the run.
  package internal(set) var command: String?
  /// Whether runs without a command that are open at the same time are parts of it, as those that the program of `exec` starts.
  var containsOthers: Bool { command != nil }
  /// Whether it has only the pushes of no other run: that of a whole server, whose command is empty because only others repeat it.
  var hasOnlyTheRest: Bool { command?.isEmpty == true }
  package internal(set) var startedAt: Int64
  package internal(set) var endedAt: Int64?
  package internal(set) var outcome: RunOutcome?
  /// What has changed for all pushes of the run, such as the server's clock.
  package internal(set) var notes: [String] = []
  /// Why it has failed, beside its tests, such as `the program ended with 3`.
  package internal(set) var message: String?
  /// The number of its pushes that were removed without being kept for its report; nil if it is unknown how many are missing.
  package internal(set) var missing: Int? = 0
  /// The number of its pushes in an export, which the last line of the run has. An export without it was cut off.
  var exported: Int?
  /// The tests in the order of their beginning, without those that were dropped.
  package internal(set) var tests: [RunTest] = []
  /// The number of tests that were dropped because there were too many.
  package internal(set) var droppedTests = 0
  var nextTest = 1
  var after = 0
  var through: Int?
  var seqs: SeqRanges?
  var restored = SeqRanges([])

  /// The maximum length of names and labels, of a failure's message, and the maximum number of labels and notes. Longer texts are
  /// cut, so that no test suite fails because of its report.
  static let maxName = 1_000, maxMessage = 4_000, maxLabels = 50

  init(id: String, name: String, startedAt: Int64) {
    (self.id, self.name, self.startedAt) = (id, name, startedAt)
  }

  /// The outcome to show: a run without one has failed if a test has.
  package var result: RunOutcome? {
    endedAt == nil ? outcome : outcome ?? (tests.contains { $0.outcome == .failed } ? .failed : .passed)
  }

  /// The `seq` before the first push that can belong to the run, and that of the last one.
  var bounds: (after: Int, through: Int) {
    let parts: [any RunSpan] = [self] + tests
    let seqs = parts.flatMap { ($0.seqs?.ranges ?? []) + $0.restored.ranges }
    var after = seqs.map { $0.lowerBound - 1 }
    var through = seqs.map(\.upperBound)
    for part in parts where part.seqs == nil {
      after.append(part.after)
      through.append(part.through ?? self.through ?? .max)
    }
    return (after.min() ?? 0, through.max() ?? 0)
  }

  /// Returns a text of at most `limit` bytes, which ends in `…` if it was cut.
  static func cut(_ text: String, _ limit: Int) -> String {
    guard text.utf8.count > limit else { return text }
    var end = text.utf8.index(text.startIndex, offsetBy: limit - 3)
    while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return text[..<end] + "…"
  }
}

// MARK: - JSON

extension TestRun {
  /// The run and its tests without their pushes, which are named anew when they are imported.
  var lines: [RunLine] {
    var run = self
    (run.tests, run.seqs, run.restored) = ([], nil, SeqRanges([]))
    return [.run(run)]
      + tests.map { test in
        var test = test
        (test.seqs, test.restored) = (nil, SeqRanges([]))
        return .test(test, of: id)
      }
  }

  /// Writes the members of a run, without its tests.
  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("kind", "run")
    writer.member("id", id)
    if let server { writer.member("server", server) }
    writeSpan(to: &writer)
    writer.objectMember("labels") { writer in
      for (name, value) in labels.sorted(by: { $0.key < $1.key }) { writer.member(name, value) }
    }
    writer.member("state", endedAt == nil ? "running" : outcome == .interrupted ? "interrupted" : "ended")
    writer.member("seed", seed)
    writer.member("profile", profile)
    writer.member("command", command)
    writer.member("notes", notes)
    writer.member("message", message)
    writer.member("missing_pushes", missing)
    writer.member("dropped_tests", droppedTests)
  }

  /// Writes the number of tests by outcome.
  package func writeTestCounts(to writer: inout JSONWriter) {
    writer.objectMember("test_counts") { writer in
      writer.member("total", tests.count + droppedTests)
      for outcome in RunOutcome.allCases { writer.member(outcome.rawValue, tests.count { $0.outcome == outcome }) }
      writer.member("running", tests.count { $0.endedAt == nil })
    }
  }
}

extension RunTest {
  /// Writes the members of a test.
  ///
  /// - Parameter run: The `id` of its run.
  package func writeMembers(to writer: inout JSONWriter, of run: String) {
    writer.member("kind", "test")
    writer.member("run", run)
    writer.member("number", number)
    writeSpan(to: &writer)
    writer.member("duration_ms", duration)
    writer.member("message", message)
  }
}

extension RunSpan {
  /// Writes the members that runs and tests have.
  fileprivate func writeSpan(to writer: inout JSONWriter) {
    writer.member("name", name)
    writer.member("outcome", result?.rawValue)
    writer.member("started_at", TimestampFormat.text(startedAt))
    writer.member("ended_at", endedAt.flatMap(TimestampFormat.text))
    writer.member("scope", scope)
    writer.member("after_seq", after)
    writer.member("last_seq", through)
    if let seqs { writer.member("seqs", seqs.text) }
    if !restored.ranges.isEmpty { writer.member("restored", restored.text) }
  }
}

/// A line of an export, or a row of a store, that is a run or a test.
enum RunLine {
  case run(TestRun)
  case test(RunTest, of: String)

  /// Whether a JSON object is such a line: its first member is `kind`, which records of pushes have further behind.
  static func isOne(_ text: UnsafeRawBufferPointer) -> Bool {
    text.prefix(16).filter { $0 > 0x20 }.starts(with: "{\"kind\":".utf8)
  }

  /// Whether the run has an id such as this server gives, with a number that can be incremented.
  var hasOwnID: Bool {
    let id =
      switch self {
      case .run(let run): run.id
      case .test(_, of: let run): run
      }
    return id.utf8.first == UInt8(ascii: "r") && id.utf8.count <= 16 && Int(id.dropFirst()) ?? 0 > 0
  }

  init(_ text: UnsafeRawBufferPointer) throws(JSONText.Problem) {
    if let problem = JSONText.problem(in: text) { throw problem }
    var json = JSONReader(text)
    var (texts, numbers, labels, notes) = ([String: String](), [String: Int](), [String: String](), [String]())
    var (seed, missing) = (UInt64?.none, Int?.some(0))
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "labels":
        try json.object { name, json throws(JSONText.Problem) in
          let value = try json.string()
          if labels.count < TestRun.maxLabels {
            labels[TestRun.cut(name, TestRun.maxName)] = TestRun.cut(value, TestRun.maxName)
          }
        }
      case "notes": notes = try json.strings()
      case "seed": seed = try json.wholeOrNull()
      case "number", "dropped_tests", "after_seq", "last_seq", "pushes", "missing_pushes", "duration_ms":
        let number: Int? = try json.wholeOrNull()
        guard (0...RecordReader.maxSeq).contains(number ?? 0) else { throw json.problem("\(name) is out of range") }
        if name == "missing_pushes" { missing = number }
        numbers[name] = number
      case "kind", "id", "run", "name", "outcome", "started_at", "ended_at", "scope", "message", "profile", "command",
        "seqs", "restored":
        texts[name] = try json.text()
      default: break
      }
    }
    func time(_ name: String) -> Int64? { texts[name].flatMap { TimestampFormat.milliseconds($0) } }
    guard let name = texts["name"], let startedAt = time("started_at") else {
      throw json.problem("no run and no test: name or started_at is missing")
    }
    func seqs(_ name: String) -> SeqRanges? { texts[name].flatMap { SeqRanges($0, maxCount: .max) } }
    func setSpan(of span: inout some RunSpan) {
      span.endedAt = time("ended_at")
      span.outcome = texts["outcome"].flatMap(RunOutcome.init)
      span.scope = texts["scope"]
      (span.after, span.through) = (numbers["after_seq"] ?? 0, numbers["last_seq"])
      (span.seqs, span.restored) = (seqs("seqs"), seqs("restored") ?? SeqRanges([]))
    }
    switch (texts["kind"], texts["id"], texts["run"]) {
    case ("run", let id?, _):
      var run = TestRun(
        id: TestRun.cut(id, TestRun.maxName), name: TestRun.cut(name, TestRun.maxName), startedAt: startedAt)
      setSpan(of: &run)
      (run.labels, run.seed) = (labels, seed)
      run.profile = texts["profile"].map { TestRun.cut($0, TestRun.maxName) }
      run.command = texts["command"].map { TestRun.cut($0, TestRun.maxMessage) }
      run.notes = notes.prefix(TestRun.maxLabels).map { TestRun.cut($0, TestRun.maxName) }
      run.message = texts["message"].map { TestRun.cut($0, TestRun.maxMessage) }
      (run.missing, run.exported) = (missing, numbers["pushes"])
      run.droppedTests = max(0, min(numbers["dropped_tests"] ?? 0, 1 << 40))
      self = .run(run)
    case ("test", _, let run?):
      var test = RunTest(
        number: numbers["number"] ?? 0, name: TestRun.cut(name, TestRun.maxName), startedAt: startedAt)
      setSpan(of: &test)
      test.measured = numbers["duration_ms"].map(Int64.init)
      test.message = texts["message"].map { TestRun.cut($0, TestRun.maxMessage) }
      self = .test(test, of: TestRun.cut(run, TestRun.maxName))
    default: throw json.problem("kind must be run, with an id, or test, with a run")
    }
  }
}
