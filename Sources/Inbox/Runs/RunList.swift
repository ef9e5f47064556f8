internal import NIOConcurrencyHelpers
internal import APNSMockNotation

/// The runs of test suites and their tests, at most 1,000 and 10,000.
package final class RunList: Sendable {
  /// The maximum number of runs and of tests, together and open at the same time. The oldest ones that have ended are dropped for
  /// new ones; of too many open ones the oldest counts as interrupted.
  package static let maxRuns = 1_000, maxTests = 10_000, maxOpen = 256

  struct State {
    var runs: [TestRun] = []
    var nextNumber = 1
    /// The attribution of the runs as they are; nil after a change.
    var attribution: RunAttribution? = RunAttribution([])
    /// The version of the runs of a view.
    var version = 0
    /// The pushes of runs that resets removed.
    var archive = RunArchive()
  }

  let state = NIOLockedValueBox(State())
  /// Called after a change, with the names of the rows of a store.
  private let didChange = NIOLockedValueBox<(@Sendable ([String]) -> Void)?>(nil)

  /// Creates a list of imported runs.
  init(_ runs: [TestRun] = []) {
    guard !runs.isEmpty else { return }
    state.withLockedValue { ($0.runs, $0.attribution) = (runs, nil) }
  }

  /// All runs in the order of their beginning.
  package var all: [TestRun] { state.withLockedValue(\.runs) }

  /// The `id`s of the open runs, and of those among them whose rules apply: those with a scope, and one without if it is the only
  /// open run beside one that contains it, because of several the pushes of the others would meet them too.
  package var open: (all: Set<String>, owning: Set<String>) {
    let open = all.filter { $0.endedAt == nil && !$0.hasOnlyTheRest }
    let inner = open.filter { !$0.containsOthers }
    let alone = open.count == 1 ? open.first : inner.count == 1 ? inner.first : nil
    return (Set(open.map(\.id)), Set(open.filter { $0.scope != nil || $0.id == alone?.id }.map(\.id)))
  }

  /// Returns the run with this `id`.
  package func run(_ id: String) -> TestRun? { state.withLockedValue { $0.runs.first { $0.id == id } } }

  /// Which run and test each push belongs to.
  package var attribution: RunAttribution {
    state.withLockedValue { state in
      if let known = state.attribution { return known }
      let attribution = RunAttribution(state.runs)
      state.attribution = attribution
      return attribution
    }
  }

  // MARK: - Changes

  /// What a client says about a run; nil for what it leaves as it is.
  package struct RunChanges: Sendable {
    package var name: String?
    package var labels: [String: String]?
    package var scope: String?
    package var command: String?
    package var outcome: RunOutcome?
    package var isEnded = false
    /// Why the run has failed, beside its tests.
    package var message: String?
    /// Whether an unknown number of its pushes is missing.
    package var lacksPushes = false

    /// Creates changes of nothing.
    package init() {}
  }

  /// Changes the runs and reports the rows of a store that differ.
  @discardableResult
  private func change<Value>(_ change: (inout State, inout [String]) -> Value) -> Value {
    var rows: [String] = []
    let value = state.withLockedValue { state in
      state.attribution = nil
      return change(&state, &rows)
    }
    if !rows.isEmpty { didChange.withLockedValue { $0 }?(rows) }
    return value
  }

  /// Adds a run.
  ///
  /// - Parameter lastSeq: The `seq` of the newest push.
  package func start(
    _ changes: RunChanges, seed: UInt64?, profile: String?, now: Int64, lastSeq: Int
  ) -> TestRun {
    change { state, rows in
      while state.runs.count >= Self.maxRuns { Self.dropOldest(&state, &rows) }
      while let index = state.runs.firstIndex(where: { $0.endedAt == nil && !$0.containsOthers })
        ?? state.runs.firstIndex(where: { $0.endedAt == nil }),
        state.runs.count(where: { $0.endedAt == nil }) >= Self.maxOpen
      {
        state.runs[index].end(.interrupted, now: now, lastSeq: lastSeq, &rows)
      }
      var run = TestRun(id: "r\(state.nextNumber)", name: "", startedAt: now)
      state.nextNumber += 1
      (run.after, run.seed, run.profile) = (lastSeq, seed, profile)
      run.apply(changes, now: now, lastSeq: lastSeq, &rows)
      state.runs.append(run)
      return run
    }
  }

  /// Changes a run.
  ///
  /// - Returns: The changed run; nil if there is none with this `id`.
  package func update(_ id: String, _ changes: RunChanges, now: Int64, lastSeq: Int) -> TestRun? {
    change { state, rows in
      guard let index = state.runs.firstIndex(where: { $0.id == id }) else { return nil }
      state.runs[index].apply(changes, now: now, lastSeq: lastSeq, &rows)
      return state.runs[index]
    }
  }

  /// Adds a test to a run, which continues if it has ended without an outcome.
  ///
  /// - Returns: The test; nil if there is no run with this `id`.
  package func startTest(in id: String, name: String, scope: String?, now: Int64, lastSeq: Int) -> RunTest? {
    change { state, rows in
      guard state.runs.contains(where: { $0.id == id }) else { return nil }
      while state.runs.reduce(0, { $0 + $1.tests.count }) >= Self.maxTests {
        if state.runs[0].id == id { break }
        Self.dropOldest(&state, &rows)
      }
      guard let index = state.runs.firstIndex(where: { $0.id == id }) else { return nil }
      state.runs[index].reopen(&rows)
      if state.runs[index].tests.count >= Self.maxTests { state.runs[index].dropTest(&rows) }
      while state.runs[index].tests.count(where: { $0.endedAt == nil }) >= Self.maxOpen,
        let open = state.runs[index].tests.firstIndex(where: { $0.endedAt == nil })
      {
        state.runs[index].tests[open].end(.interrupted, now: now, lastSeq: lastSeq)
        rows.append(RunList.row(id, state.runs[index].tests[open].number))
      }
      let test = RunTest(
        number: state.runs[index].nextTest, name: TestRun.cut(name, TestRun.maxName), scope: scope, startedAt: now,
        began: MachineTime.nanoseconds, after: lastSeq)
      state.runs[index].nextTest += 1
      state.runs[index].tests.append(test)
      rows.append(RunList.row(id, test.number))
      return test
    }
  }

  /// Changes the outcome of a test, and ends it.
  ///
  /// - Returns: The test; nil if there is none.
  package func endTest(
    in id: String, _ number: Int, _ outcome: RunOutcome, message: String?, now: Int64, lastSeq: Int
  ) -> RunTest? {
    change { state, rows in
      guard let run = state.runs.firstIndex(where: { $0.id == id }),
        let test = state.runs[run].tests.firstIndex(where: { $0.number == number })
      else { return nil }
      state.runs[run].tests[test].end(outcome, now: now, lastSeq: lastSeq)
      if let message { state.runs[run].tests[test].message = TestRun.cut(message, TestRun.maxMessage) }
      rows.append(RunList.row(id, number))
      return state.runs[run].tests[test]
    }
  }

  /// Marks all open runs and tests as interrupted: nobody can end them any more.
  package func interruptAll(now: Int64, lastSeq: Int) {
    change { state, rows in
      for index in state.runs.indices where state.runs[index].endedAt == nil {
        state.runs[index].end(.interrupted, now: now, lastSeq: lastSeq, &rows)
      }
    }
  }

  /// Adds a note, such as a change of the server's clock, to all open runs.
  package func note(_ text: String) {
    change { state, rows in
      for index in state.runs.indices
      where state.runs[index].endedAt == nil && state.runs[index].notes.count < TestRun.maxLabels {
        state.runs[index].notes.append(text)
        rows.append(RunList.row(state.runs[index].id))
      }
    }
  }

  /// Adds imported runs with new ids, and new numbers of their tests.
  func add(imported runs: [TestRun]) {
    change { state, rows in
      for var run in runs.suffix(Self.maxRuns) {
        while !state.runs.isEmpty,
          state.runs.count >= Self.maxRuns
            || state.runs.reduce(run.tests.count, { $0 + $1.tests.count }) > Self.maxTests
        {
          Self.dropOldest(&state, &rows)
        }
        run.id = "r\(state.nextNumber)"
        state.nextNumber += 1
        for index in run.tests.indices { run.tests[index].number = index + 1 }
        run.nextTest = run.tests.count + 1
        state.runs.append(run)
        rows += [RunList.row(run.id)] + run.tests.map { RunList.row(run.id, $0.number) }
      }
    }
  }

  /// Notes that pushes which were removed and added again belong to the same runs and tests as before. Those of a run that was
  /// dropped belong to none, those of a test that was dropped to its run. The pushes must be ascending and newer than all others.
  func add(restored pushes: [(seq: Int, owner: RunAttribution.Owner)]) {
    guard !pushes.isEmpty else { return }
    change { state, rows in
      for (owner, pushes) in Dictionary(grouping: pushes, by: { $0.owner }) {
        guard let run = state.runs.firstIndex(where: { $0.id == owner.run }) else { continue }
        state.runs[run].missing = state.runs[run].missing.map { max(0, $0 - pushes.count) }
        if let test = state.runs[run].tests.firstIndex(where: { $0.number == owner.number }) {
          for push in pushes { state.runs[run].tests[test].restored.append(push.seq) }
          rows.append(RunList.row(owner.run, state.runs[run].tests[test].number))
        } else {
          for push in pushes { state.runs[run].restored.append(push.seq) }
          rows.append(RunList.row(owner.run))
        }
      }
    }
  }

  /// Notes that pushes of runs were removed, which are not kept for the reports.
  func add(missing counts: [String: Int]) {
    guard !counts.isEmpty else { return }
    change { state, rows in
      for index in state.runs.indices {
        guard let count = counts[state.runs[index].id], let known = state.runs[index].missing else { continue }
        state.runs[index].missing = known + count
        rows.append(Self.row(state.runs[index].id))
      }
    }
  }

  /// Drops the oldest run that has ended, or the oldest of all.
  private static func dropOldest(_ state: inout State, _ rows: inout [String]) {
    let index = state.runs.firstIndex { $0.endedAt != nil } ?? 0
    let run = state.runs.remove(at: index)
    rows += [row(run.id)] + run.tests.map { row(run.id, $0.number) }
  }

  // MARK: - Store

  /// The prefix of the names of the rows with runs and tests.
  package static let rowPrefix = "run/"
  /// The name of the row with another text after each change of the others.
  package static let versionRow = rowPrefix
  /// Returns a text for `versionRow`.
  package static func newVersion() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

  private static func row(_ id: String) -> String { rowPrefix + id }
  private static func row(_ id: String, _ test: Int) -> String { "\(rowPrefix)\(id)/\(test)" }

  /// Returns the row of a run or a test; nil if it was dropped.
  package func storedRow(_ name: String) -> String? {
    let parts = name.dropFirst(Self.rowPrefix.count).split(separator: "/")
    guard let id = parts.first, let run = run(String(id)) else { return nil }
    var writer = JSONWriter()
    if parts.count == 1 {
      writer.object { run.writeMembers(to: &$0) }
    } else {
      guard let test = run.tests.first(where: { String($0.number) == parts[1] }) else { return nil }
      writer.object { test.writeMembers(to: &$0, of: run.id) }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Continues with the runs of the former server, whose open ones count as interrupted, and reports changes from now on.
  package func restore(
    _ rows: some Sequence<String>, now: Int64, lastSeq: Int, _ report: @escaping @Sendable ([String]) -> Void
  ) {
    let runs = Self.runs(of: rows)
    change { state, _ in
      state.runs = runs
      state.nextNumber = (runs.compactMap { Int($0.id.dropFirst()) }.max() ?? 0) + 1
    }
    didChange.withLockedValue { $0 = report }
    interruptAll(now: now, lastSeq: lastSeq)
  }

  /// Returns the runs in rows of a store, in the order of their numbers. What is damaged is left out.
  ///
  /// - Parameter server: The name of the server in a view of several.
  package static func runs(of rows: some Sequence<String>, on server: String? = nil) -> [TestRun] {
    var collector = RunCollector(ofStore: true)
    for var row in rows {
      row.withUTF8 { text in
        if let line = try? RunLine(UnsafeRawBufferPointer(text)), line.hasOwnID { collector.add(line) }
      }
    }
    var runs = collector.finished.sorted { Int($0.id.dropFirst()) ?? 0 < Int($1.id.dropFirst()) ?? 0 }
    guard let server else { return runs }
    for index in runs.indices { (runs[index].id, runs[index].server) = ("\(server):\(runs[index].id)", server) }
    return runs
  }

  /// Replaces the runs by those of a view, unless these are older.
  func follow(_ runs: ViewedRuns) {
    state.withLockedValue { state in
      guard runs.version > state.version else { return }
      (state.version, state.attribution) = (runs.version, nil)
      state.runs = runs.all.sorted { $0.startedAt < $1.startedAt }
    }
  }
}

/// The runs in the stores of a view.
package struct ViewedRuns: Sendable {
  /// Another number, which is larger, after a change; 0 if none were read yet.
  package let version: Int
  /// The runs of all servers, those of each in the order of their beginning.
  package let all: [TestRun]

  /// Creates a list.
  package init(_ all: [TestRun] = [], version: Int = 0) { (self.all, self.version) = (all, version) }
}

extension TestRun {
  fileprivate mutating func apply(_ changes: RunList.RunChanges, now: Int64, lastSeq: Int, _ rows: inout [String]) {
    if let name = changes.name { self.name = Self.cut(name, Self.maxName) }
    for (name, value) in (changes.labels ?? [:]).sorted(by: { $0.key < $1.key })
    where labels.count < Self.maxLabels || labels[name] != nil {
      labels[Self.cut(name, Self.maxName)] = Self.cut(value, Self.maxName)
    }
    if let scope = changes.scope { self.scope = scope }
    if let command = changes.command { self.command = Self.cut(command, Self.maxMessage) }
    if let message = changes.message { self.message = Self.cut(message, Self.maxMessage) }
    if changes.lacksPushes { missing = nil }
    if let outcome = changes.outcome { self.outcome = outcome }
    if changes.isEnded { end(changes.outcome ?? outcome, now: now, lastSeq: lastSeq, &rows) }
    rows.append(RunList.rowPrefix + id)
  }

  fileprivate mutating func end(_ outcome: RunOutcome?, now: Int64, lastSeq: Int, _ rows: inout [String]) {
    // One that was interrupted and continues to report ends later.
    (endedAt, through, self.outcome) = (now, lastSeq, outcome)
    rows.append(RunList.rowPrefix + id)
    for index in tests.indices where tests[index].endedAt == nil {
      tests[index].end(.interrupted, now: now, lastSeq: lastSeq)
      rows.append("\(RunList.rowPrefix)\(id)/\(tests[index].number)")
    }
  }

  /// Continues a run that has ended without an outcome: a client that does not know which test is the last one ends it after each.
  fileprivate mutating func reopen(_ rows: inout [String]) {
    guard endedAt != nil, outcome == nil, seqs == nil else { return }
    (endedAt, through) = (nil, nil)
    rows.append(RunList.rowPrefix + id)
  }

  /// Drops the oldest test that has passed, or the oldest of all.
  fileprivate mutating func dropTest(_ rows: inout [String]) {
    let index = tests.firstIndex { $0.outcome == .passed } ?? 0
    rows.append("\(RunList.rowPrefix)\(id)/\(tests.remove(at: index).number)")
    droppedTests += 1
  }
}

extension RunTest {
  fileprivate mutating func end(_ outcome: RunOutcome, now: Int64, lastSeq: Int) {
    self.outcome = outcome
    // The first end says which pushes belong to it.
    guard endedAt == nil else { return }
    (endedAt, through) = (now, lastSeq)
    measured = began.map { (MachineTime.nanoseconds - $0) / 1_000_000 }
  }
}

/// Collects imported or stored runs with their tests, and the pushes of each.
struct RunCollector {
  private var runs: [TestRun] = []
  private var indices: [String: Int] = [:]
  /// The index of each test in its run, by its number, and of the first of each name, by the name alone.
  private var tests: [RunAttribution.Owner: Int] = [:]
  private var testCount = 0
  /// Whether the lines name their pushes. Those of an export have the numbers of another inbox; its records name their runs
  /// and tests.
  private let namesPushes: Bool

  init(ofStore namesPushes: Bool = false) { self.namesPushes = namesPushes }

  /// The runs in the order in which they were first named.
  var finished: [TestRun] {
    runs.map { run in
      var run = run
      run.tests.sort { $0.number < $1.number }
      run.nextTest = (run.tests.last?.number ?? 0) + 1
      return run
    }
  }

  /// The same runs with only the assigned pushes. Those that the export does not end count as interrupted.
  var imported: [TestRun] {
    finished.map { run in
      var run = run
      let found = ([run.seqs] + run.tests.map(\.seqs)).reduce(0) { count, seqs in
        (seqs?.ranges ?? []).reduce(count) { $0 + $1.count }
      }
      run.missing = run.exported.flatMap { exported in run.missing.map { $0 + max(0, exported - found) } }
      run.seqs = run.seqs ?? SeqRanges([])
      for index in run.tests.indices {
        run.tests[index].seqs = run.tests[index].seqs ?? SeqRanges([])
        guard run.tests[index].endedAt == nil else { continue }
        (run.tests[index].endedAt, run.tests[index].outcome) = (run.tests[index].startedAt, .interrupted)
      }
      guard run.endedAt == nil else { return run }
      run.endedAt = run.tests.compactMap(\.endedAt).max() ?? run.startedAt
      run.outcome = .interrupted
      return run
    }
  }

  mutating func add(_ lines: [RunLine]) { for line in lines { add(line) } }

  mutating func add(_ line: RunLine) {
    switch line {
    case .run(var run):
      guard let index = index(of: run.id) else { return }
      run.tests = runs[index].tests
      if !namesPushes { (run.seqs, run.restored) = (runs[index].seqs, SeqRanges([])) }
      runs[index] = run
    case .test(var test, of: let id):
      guard testCount < RunList.maxTests, let index = index(of: id) else { return }
      testCount += 1
      if !namesPushes { (test.seqs, test.restored) = (nil, SeqRanges([])) }
      for number in [test.number, nil] {
        let owner = RunAttribution.Owner(run: id, test: test.name, number: number)
        if tests[owner] == nil { tests[owner] = runs[index].tests.count }
      }
      runs[index].tests.append(test)
    }
  }

  /// Notes that a push belongs to a run and a test. Pushes must be noted in ascending order.
  mutating func assign(_ seq: Int, to owner: RunAttribution.Owner, at time: Int64) {
    guard let index = index(of: owner.run, at: time) else { return }
    guard let name = owner.test else {
      runs[index].seqs = runs[index].seqs ?? SeqRanges([])
      runs[index].seqs?.append(seq)
      return
    }
    if tests[owner] == nil {
      let number = owner.number ?? runs[index].tests.count + 1
      add(.test(RunTest(number: number, name: name, startedAt: time), of: owner.run))
    }
    guard let test = tests[owner] else { return }
    runs[index].tests[test].seqs = runs[index].tests[test].seqs ?? SeqRanges([])
    runs[index].tests[test].seqs?.append(seq)
  }

  private mutating func index(of id: String, at time: Int64 = 0) -> Int? {
    if let known = indices[id] { return known }
    guard runs.count < RunList.maxRuns else { return nil }
    indices[id] = runs.count
    runs.append(TestRun(id: id, name: id, startedAt: time))
    return runs.count - 1
  }
}
