internal import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockRules

/// What runs of a test suite did: failed tests with the nearest pushes, lost pushes, duplicates, findings, and what has changed
/// since a baseline. One walk over the records, which keeps some hundred bytes for each of at most `maxFollowed` pushes.
package struct RunReport: Sendable {
  /// A test that has failed, or was interrupted.
  struct Failure: Sendable {
    let run: String
    let test: RunTest
    var pushes = 0
    var nearest: [Line] = []
  }

  /// A push in a list of the report.
  struct Line: Sendable {
    let seq: Int
    let name: PushName
    let receivedAt: Int64
    let test: String?
    let topic: String?
    let token: String?
    let attempt: Int32
    let outcome: Record.Outcome
    /// The response, such as `503 ServiceUnavailable`, or how the attempt ended.
    let response: String
    let rule: String?
    /// Why APNs' rules rejected it, with the correction.
    let detail: String?

    init(_ record: Record, _ owner: RunAttribution.Owner?) {
      (seq, name, attempt) = (record.seq, record.name, record.attempt)
      (receivedAt, test) = (record.receivedAt, owner?.test)
      (topic, token, outcome) = (record.topic, record.deviceToken, record.outcome)
      response = record.responseOrEnding
      rule = record.wireDetails?.injections.first?.rule
      detail = record.rejectionDetail
    }
  }

  struct FindingItem: Sendable {
    let kind: Finding.Kind
    var count = 0
    /// The first ones, with the `seq` of their pushes.
    var examples: [(seq: Int, finding: Finding)] = []
  }

  /// A push, with all its attempts.
  private struct Push {
    let identity: UInt64
    let firstAt: Int64
    var isAccepted = false
    /// The index of the last response in `responses`.
    var response: Int32 = 0
  }

  /// A push in a test: the same content in another test is another push.
  private struct PushInTest: Hashable {
    let key: PushKey
    /// The index of the test, or of the run of a push outside of the tests.
    let owner: Int32
  }

  /// What is known about the pushes while the records are read.
  private struct PushTable {
    var pushes: [PushInTest: Push] = [:]
    /// The number of pushes of each test, device token and topic, by their hash.
    var ordinals: [UInt64: UInt64] = [:]
    var owners: [RunAttribution.Owner?: Int32] = [:]
    var responses: [String] = []
    private var indices: [String: Int32] = [:]

    mutating func key(_ record: Record, _ owner: RunAttribution.Owner?) -> PushInTest {
      let index = owners[owner] ?? Int32(truncatingIfNeeded: owners.count)
      if index == owners.count { owners[owner] = index }
      return PushInTest(key: record.pushKey, owner: index)
    }

    /// Returns the index of a response. Rules can invent any number of them: those beyond a limit share the last index.
    mutating func index(of response: String) -> Int32 {
      if let known = indices[response] { return known }
      guard responses.count < RunReport.maxResponses else { return Int32(RunReport.maxResponses - 1) }
      responses.append(response)
      indices[response] = Int32(responses.count - 1)
      return Int32(responses.count - 1)
    }
  }

  /// The maximum number of failed tests, of lost pushes and of duplicates that are described.
  static let maxListed = 50
  static let maxNearest = 5
  /// The maximum number of tests whose names are complete, and the maximum length of others, in bytes: the size of a report is
  /// limited.
  static let maxLongNames = 1_000, maxShortName = 200
  /// The maximum number of pushes of which all attempts are compared, and of different responses.
  static let maxFollowed = 500_000
  static let maxResponses = 1_000
  /// The maximum number of pushes that a later run is compared with, of each kind.
  static let maxCompared = 20_000

  package let runs: [TestRun]
  package let program: String
  let hasManyTests: Bool
  package internal(set) var command: String?
  package private(set) var pushes = 0
  private(set) var outcomes: [Record.Outcome: Int] = [:]
  /// The number of attempts that APNs accepted.
  package private(set) var acceptedCount = 0
  private(set) var retries = 0
  /// The number of pushes of the runs that are not among the records; nil if it is unknown.
  package private(set) var missing: Int?
  /// The number of attempts of further pushes, which are only counted.
  private(set) var unfollowed = 0
  private(set) var failures: [Failure] = []
  private(set) var failureCount = 0
  private(set) var lost: [Line] = []
  private(set) var lostCount = 0
  private(set) var duplicates: [Line] = []
  private(set) var duplicateCount = 0
  private(set) var findings: [FindingItem] = []
  private(set) var reasons: [String: Int] = [:]
  /// The milliseconds from the first attempt of a push to its acceptance, ascending.
  private(set) var delays: [Int64] = []
  /// The pushes that were not accepted, by a hash that is the same in another run, with their last response.
  private(set) var unaccepted: [String: String] = [:]
  private(set) var lostIdentities: Set<String> = []
  /// The number of pushes of each test.
  private(set) var testPushes: [RunAttribution.Owner: Int] = [:]
  package internal(set) var baseline: RunComparison?

  /// Creates the report.
  ///
  /// - Parameters:
  ///   - ids: The runs; nil for all, and the pushes of none.
  ///   - program: The version of the program.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package init(_ records: RunRecords, of ids: Set<String>? = nil, program: String) throws(StoreUnavailable) {
    runs = records.runs.filter { ids?.contains($0.id) ?? true }
    self.program = program
    hasManyTests = runs.reduce(0) { $0 + $1.tests.count } > Self.maxLongNames
    command = runs.lazy.compactMap(\.command).first { !$0.isEmpty }
    missing = records.missing(of: ids)
    for run in runs {
      let failed = run.tests.filter { $0.outcome == .failed || $0.outcome == .interrupted }
      failureCount += failed.count
      failures += failed.prefix(Self.maxListed - failures.count).map { Failure(run: run.id, test: $0) }
    }
    var nearest = FailurePushes(failures)
    let lostSeqs = Set(records.lost)
    var kinds: [Finding.Kind: FindingItem] = [:]
    var table = PushTable()
    var iterator = records.makeIterator()
    while let group = try iterator.next() {
      for record in group {
        let owner = records.attribution.owner(of: record)
        if let ids, owner.map({ ids.contains($0.run) }) != true { continue }
        let push = add(record, owner, &table)
        for finding in records.findings[record.name] ?? [] {
          kinds[finding.kind, default: FindingItem(kind: finding.kind)].add(finding, on: record.seq)
        }
        if lostSeqs.contains(record.seq) {
          lostCount += 1
          if lost.count < Self.maxListed { lost.append(Line(record, owner)) }
          if let push { lostIdentities.insert(Hexadecimal.text(push.identity, digits: 16)) }
        }
        nearest.add(record, owner)
      }
    }
    failures = nearest.finished
    findings = kinds.values.sorted { $0.kind < $1.kind }
    let refused = table.pushes.values.filter { !$0.isAccepted }.sorted { $0.identity < $1.identity }
    for push in refused.prefix(Self.maxCompared) {
      unaccepted[Hexadecimal.text(push.identity, digits: 16)] = table.responses[Int(push.response)]
    }
    delays.sort()
  }

  /// Counts an attempt.
  ///
  /// - Returns: Its push with all attempts so far; nil if there are too many pushes.
  private mutating func add(_ record: Record, _ owner: RunAttribution.Owner?, _ table: inout PushTable) -> Push? {
    pushes += 1
    outcomes[record.outcome, default: 0] += 1
    if record.accepted { acceptedCount += 1 }
    if let owner, owner.test != nil { testPushes[owner, default: 0] += 1 }
    let response = record.responseOrEnding
    if record.outcome != .accepted, reasons.count < Self.maxResponses || reasons[response] != nil {
      reasons[response, default: 0] += 1
    }
    let key = table.key(record, owner)
    let known = table.pushes[key]
    guard known != nil || table.pushes.count < Self.maxFollowed else {
      unfollowed += 1
      return nil
    }
    if record.accepted, known?.isAccepted == true {
      duplicateCount += 1
      if duplicates.count < Self.maxListed { duplicates.append(Line(record, owner)) }
    }
    var push: Push
    if record.attempt > 1, let known {
      retries += 1
      push = known
    } else {
      var hash = StableHash()
      hash.add(owner?.test ?? "")
      hash.add(record.deviceToken ?? "")
      hash.add(record.topic ?? "")
      let ordinal = table.ordinals[hash.value, default: 0]
      table.ordinals[hash.value] = ordinal + 1
      push = Push(identity: hash.value &+ ordinal &* 0x9E37_79B9_7F4A_7C15, firstAt: record.receivedAt)
    }
    push.response = table.index(of: response)
    if record.accepted, !push.isAccepted {
      push.isAccepted = true
      delays.append(max(0, (record.finishedAt ?? record.receivedAt) - push.firstAt))
    }
    table.pushes[key] = push
    return push
  }
}

/// Finds the pushes to show for each failed test: its own, those that were not accepted first; without any, those around its
/// beginning.
private struct FailurePushes {
  private var failures: [RunReport.Failure]
  private var own: [RunAttribution.Owner: Int] = [:]
  /// The failed tests that begin later, the first one last, and those that have begun and lack pushes behind that.
  private var waiting: [Int]
  private var begun: [Int] = []
  private var around: [[RunReport.Line]]
  /// The last two pushes.
  private var recent: [(record: Record, owner: RunAttribution.Owner?)] = []

  init(_ failures: [RunReport.Failure]) {
    self.failures = failures
    around = failures.map { _ in [] }
    waiting = failures.indices.sorted { failures[$0].test.startedAt > failures[$1].test.startedAt }
    for (index, failure) in failures.enumerated() { own[failure.test.owner(in: failure.run)] = index }
  }

  mutating func add(_ record: Record, _ owner: RunAttribution.Owner?) {
    if let owner, let index = own[owner] { failures[index].add(record, owner) }
    while let next = waiting.last, failures[next].test.startedAt <= record.receivedAt { begin(next) }
    begun.removeAll { index in
      around[index].append(RunReport.Line(record, owner))
      return around[index].count >= RunReport.maxNearest
    }
    guard !waiting.isEmpty else { return }
    if recent.count >= 2 { recent.removeFirst() }
    recent.append((record, owner))
  }

  private mutating func begin(_ index: Int) {
    waiting.removeLast()
    around[index] = recent.map { RunReport.Line($0.record, $0.owner) }
    begun.append(index)
  }

  /// The failed tests with their pushes.
  var finished: [RunReport.Failure] {
    var copy = self
    while let next = copy.waiting.last { copy.begin(next) }
    return copy.failures.enumerated().map { index, failure in
      var failure = failure
      if failure.pushes == 0 { failure.nearest = copy.around[index] }
      return failure
    }
  }
}

extension RunReport.Failure {
  /// Adds a push of the test. Of too many, accepted ones are left out first, then the oldest.
  fileprivate mutating func add(_ record: Record, _ owner: RunAttribution.Owner) {
    pushes += 1
    if nearest.count >= RunReport.maxNearest {
      guard record.outcome != .accepted else { return }
      nearest.remove(at: nearest.firstIndex { $0.outcome == .accepted } ?? 0)
    }
    nearest.append(RunReport.Line(record, owner))
  }
}

extension RunReport.FindingItem {
  fileprivate mutating func add(_ finding: Finding, on seq: Int) {
    count += 1
    if examples.count < RunReport.maxNearest { examples.append((seq, finding)) }
  }
}

extension Record {
  /// The response, such as `503 ServiceUnavailable`, or how the attempt ended without one.
  fileprivate var responseOrEnding: String {
    guard let status = sentResponse.status else { return end.ending.rawValue }
    return "\(status)\(sentReason.map { " \($0)" } ?? "")"
  }
}

/// A hash of texts that is the same in every process (FNV-1a, 64 bits).
private struct StableHash {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ text: String) {
    for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
    value = (value ^ 0xFF) &* 0x100_0000_01B3
  }
}

// MARK: - Texts

extension RunReport {
  /// `passed`, `failed` or `interrupted`; nil while a run is open.
  package var outcome: RunOutcome? {
    let results = runs.map(\.result)
    for wanted in [RunOutcome.interrupted, .failed] where results.contains(wanted) { return wanted }
    return runs.contains { $0.endedAt == nil } ? nil : .passed
  }

  /// The result in one sentence.
  package var verdict: String {
    let total = runs.reduce(0) { $0 + $1.tests.count + $1.droppedTests }
    let failed = runs.reduce(0) { $0 + $1.tests.count { $0.outcome == .failed } }
    let interrupted = runs.reduce(0) { $0 + $1.tests.count { $0.outcome == .interrupted } }
    var parts: [String] = []
    if total > 0 {
      parts.append(
        failed > 0 ? "\(failed) of \(total.counted("test")) failed" : "\(total.counted("test")), none failed")
    }
    if interrupted > 0 { parts.append("\(interrupted) did not end") }
    if failed == 0 { parts += runs.compactMap(\.message) }
    if pushes == 0, missing == 0 { parts.append("no push arrived") }
    if lostCount > 0 { parts.append("\(lostCount.counted("push")) lost") }
    if duplicateCount > 0 { parts.append("\(duplicateCount.counted("push")) accepted twice") }
    if !findings.isEmpty {
      parts.append("findings: " + findings.map { "\($0.kind.rawValue) (\($0.count))" }.joined(separator: ", "))
    }
    if let missingText { parts.append(missingText) }
    if pushes > 0, lostCount == 0, missing == 0 { parts.append("no push lost of \(pushes)") }
    if let baseline, baseline.warning == nil { parts.append(baseline.summary) }
    let state = outcome == .interrupted ? "The run was interrupted: " : outcome == nil ? "The run is open: " : ""
    return state + parts.joined(separator: "; ") + "."
  }

  /// Which pushes of the runs the report does not have, and why; nil if it has all.
  private var missingText: String? {
    switch missing {
    case 0: nil
    case let missing?:
      "\(missing.counted("push", "of this run is", "of this run are")) not in this report: removed by a reset, a deletion or the "
        + "limit of the inbox, or left out by --record"
    case nil:
      "this report lacks pushes of the run: an export was cut off or has only the pushes of a query, or a server was killed"
    }
  }

  /// Adds what has changed since an older run.
  package mutating func compare(with facts: RunFacts, named name: String) {
    baseline = RunComparison(of: self.facts, with: facts, named: name)
  }

  /// The most frequent finding with its advice; nil without findings.
  package var worstFinding: String? {
    findings.max { $0.count < $1.count }.map {
      "\($0.kind.rawValue) (\($0.count.counted("push"))): \($0.kind.advice)"
    }
  }

  /// Returns the delay that `share` percent of the pushes did not exceed, in milliseconds; nil without pushes.
  func delay(_ share: Int) -> Int64? {
    delays.isEmpty ? nil : delays[min(delays.count - 1, (delays.count * share + 99) / 100 - 1)]
  }
}
