internal import APNSMockFaultModel
package import APNSMockNotation
internal import APNSMockRules

/// What runs of a test suite did: failed tests with the nearest pushes, lost pushes, duplicates, findings, and what has changed
/// since a baseline. One walk over the records; its memory is some hundred bytes for each push.
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
      (seq, receivedAt, test, attempt) = (record.seq, record.receivedAt, owner?.test, record.attempt)
      (topic, token, outcome) = (record.topic, record.deviceToken, record.outcome)
      response = record.responseOrEnding
      rule = record.wireDetails?.injections.first?.rule
      detail = record.rejectionDetail
    }
  }

  struct FindingItem: Sendable {
    let kind: Finding.Kind
    var count = 0
    /// The first ones.
    var examples: [Finding] = []
  }

  /// A push, with all its attempts.
  private struct Push {
    var identity: UInt64
    var seq: Int
    let firstAt: Int64
    var isAccepted = false
    var response = ""
  }

  /// A push in a test: the same content in another test is another push.
  private struct PushInTest: Hashable {
    let key: PushKey
    let owner: RunAttribution.Owner?

    init(_ record: Record, _ owner: RunAttribution.Owner?) { (key, self.owner) = (record.pushKey, owner) }
  }

  /// The maximum number of failed tests, of lost pushes and of duplicates that are described.
  static let maxListed = 50
  static let maxNearest = 5

  package let runs: [TestRun]
  package let program: String
  package internal(set) var command: String?
  package private(set) var pushes = 0
  private(set) var outcomes: [Record.Outcome: Int] = [:]
  /// The number of attempts that APNs accepted.
  package private(set) var acceptedCount = 0
  private(set) var retries = 0
  private(set) var dropped = 0
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
    command = runs.lazy.compactMap(\.command).first
    dropped = records.dropped
    for run in runs {
      let failed = run.tests.filter { $0.outcome == .failed || $0.outcome == .interrupted }
      failureCount += failed.count
      failures += failed.prefix(Self.maxListed - failures.count).map { Failure(run: run.id, test: $0) }
    }
    var failed: [RunAttribution.Owner: Int] = [:]
    for (index, failure) in failures.enumerated() {
      failed[RunAttribution.Owner(run: failure.run, test: failure.test.name)] = index
    }
    var nearest = failures.map { _ in [Line]() }
    let lostSeqs = Set(records.lost)
    var kinds: [Finding.Kind: FindingItem] = [:]
    var known: [PushInTest: Push] = [:]
    var ordinals: [UInt64: UInt64] = [:]
    var iterator = records.makeIterator()
    while let group = try iterator.next() {
      for record in group {
        let owner = records.attribution.owner(of: record)
        if let ids, owner.map({ ids.contains($0.run) }) != true { continue }
        add(record, owner, &known, &ordinals)
        for finding in records.findings[record.seq] ?? [] {
          kinds[finding.kind, default: FindingItem(kind: finding.kind)].add(finding)
        }
        if lostSeqs.contains(record.seq) {
          lostCount += 1
          if lost.count < Self.maxListed { lost.append(Line(record, owner)) }
          if let push = known[PushInTest(record, owner)] {
            lostIdentities.insert(Hexadecimal.text(push.identity, digits: 16))
          }
        }
        for (index, failure) in failures.enumerated() {
          let isOwn = owner.map { failed[$0] == index } ?? false
          if isOwn { failures[index].pushes += 1 }
          Self.keep(record, owner, isOwn, of: failure.test, in: &nearest[index])
        }
      }
    }
    for index in failures.indices {
      failures[index].nearest =
        failures[index].pushes > 0
        ? nearest[index].filter { $0.test == failures[index].test.name } : nearest[index]
    }
    findings = kinds.values.sorted { $0.kind < $1.kind }
    let refused = known.values.filter { !$0.isAccepted }.sorted { $0.identity < $1.identity }
    for push in refused.prefix(20_000) {
      unaccepted[Hexadecimal.text(push.identity, digits: 16)] = push.response
    }
    delays.sort()
  }

  private mutating func add(
    _ record: Record, _ owner: RunAttribution.Owner?, _ pushesByKey: inout [PushInTest: Push],
    _ ordinals: inout [UInt64: UInt64]
  ) {
    pushes += 1
    outcomes[record.outcome, default: 0] += 1
    if record.accepted { acceptedCount += 1 }
    if let owner, owner.test != nil { testPushes[owner, default: 0] += 1 }
    if record.outcome != .accepted {
      let response = record.responseOrEnding
      if reasons.count < 1_000 || reasons[response] != nil { reasons[response, default: 0] += 1 }
    }
    var push: Push
    let key = PushInTest(record, owner)
    let known = pushesByKey[key]
    if record.accepted, known?.isAccepted == true {
      duplicateCount += 1
      if duplicates.count < Self.maxListed { duplicates.append(Line(record, owner)) }
    }
    if record.attempt > 1, let known {
      retries += 1
      push = known
    } else {
      var hash = StableHash()
      hash.add(owner?.test ?? "")
      hash.add(record.deviceToken ?? "")
      hash.add(record.topic ?? "")
      let ordinal = ordinals[hash.value, default: 0]
      ordinals[hash.value] = ordinal + 1
      push = Push(identity: hash.value &+ ordinal &* 0x9E37_79B9_7F4A_7C15, seq: record.seq, firstAt: record.receivedAt)
    }
    push.seq = record.seq
    push.response = record.responseOrEnding
    if record.accepted, !push.isAccepted {
      push.isAccepted = true
      delays.append(max(0, (record.finishedAt ?? record.receivedAt) - push.firstAt))
    }
    pushesByKey[key] = push
  }

  /// Keeps a push if it may be one of the nearest of a failed test: its own that were not accepted first, else those around its
  /// time.
  private static func keep(
    _ record: Record, _ owner: RunAttribution.Owner?, _ isOwn: Bool, of test: RunTest, in lines: inout [Line]
  ) {
    if isOwn {
      let isFull = lines.count(where: { $0.test == test.name }) >= maxNearest
      guard !isFull || record.outcome != .accepted else { return }
      lines.removeAll { $0.test != test.name }
      if isFull {
        lines.remove(at: lines.firstIndex { $0.outcome == .accepted } ?? 0)
      }
      return lines.append(Line(record, owner))
    }
    guard !lines.contains(where: { $0.test == test.name }) else { return }
    // Two before the test and three after its beginning.
    if record.receivedAt < test.startedAt, lines.count(where: { $0.receivedAt < test.startedAt }) >= 2 {
      lines.removeFirst()
    }
    if lines.count < maxNearest { lines.append(Line(record, owner)) }
  }
}

extension RunReport.FindingItem {
  fileprivate mutating func add(_ finding: Finding) {
    count += 1
    if examples.count < RunReport.maxNearest { examples.append(finding) }
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
        failed > 0 ? "\(failed) of \(Self.count(total, "test")) failed" : "\(Self.count(total, "test")), none failed")
    }
    if interrupted > 0 { parts.append("\(interrupted) did not end") }
    if pushes == 0 { parts.append("no push arrived") }
    if lostCount > 0 { parts.append("\(Self.count(lostCount, "push")) lost") }
    if duplicateCount > 0 { parts.append("\(Self.count(duplicateCount, "push")) accepted twice") }
    if !findings.isEmpty {
      parts.append("findings: " + findings.map { "\($0.kind.rawValue) (\($0.count))" }.joined(separator: ", "))
    }
    if pushes > 0, lostCount == 0 { parts.append("no push lost of \(pushes)") }
    let state = outcome == .interrupted ? "The run was interrupted: " : outcome == nil ? "The run is open: " : ""
    return state + parts.joined(separator: "; ") + "."
  }

  /// Adds what has changed since an older run.
  package mutating func compare(with facts: RunFacts, named name: String) {
    baseline = RunComparison(of: self.facts, with: facts, named: name)
  }

  /// The most frequent finding with its advice; nil without findings.
  package var worstFinding: String? {
    findings.max { $0.count < $1.count }.map {
      "\($0.kind.rawValue) (\(Self.count($0.count, "push"))): \($0.kind.advice)"
    }
  }

  static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : noun.hasSuffix("sh") ? "es" : "s")"
  }

  /// Returns the delay that `share` percent of the pushes did not exceed, in milliseconds; nil without pushes.
  func delay(_ share: Int) -> Int64? {
    delays.isEmpty ? nil : delays[min(delays.count - 1, (delays.count * share + 99) / 100 - 1)]
  }
}

// MARK: - JSON

extension RunReport {
  /// Writes the report as members of an object.
  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("format", 1)
    writer.member("program", program)
    writer.member("outcome", outcome?.rawValue)
    writer.member("verdict", verdict)
    writer.member("command", command)
    writer.arrayMember("runs") { writer in
      for run in runs {
        writer.object { writer in
          run.writeMembers(to: &writer)
          run.writeTestCounts(to: &writer)
        }
      }
    }
    writer.arrayMember("tests") { writer in
      for run in runs {
        for test in run.tests {
          writer.object { writer in
            writer.member("run", run.id)
            writer.member("number", test.number)
            writer.member("name", test.name)
            writer.member("outcome", test.outcome?.rawValue)
            writer.member("duration_ms", test.endedAt.map { $0 - test.startedAt })
            writer.member("pushes", testPushes[RunAttribution.Owner(run: run.id, test: test.name)] ?? 0)
          }
        }
      }
    }
    writer.member("pushes", pushes)
    writer.member("retries", retries)
    writer.member("dropped", dropped)
    writer.objectMember("outcomes") { writer in
      for outcome in Record.Outcome.allCases { writer.member(outcome.rawValue, outcomes[outcome] ?? 0) }
    }
    writer.objectMember("reasons") { writer in
      for (reason, count) in reasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }).prefix(50) {
        writer.member(reason, count)
      }
    }
    writer.objectMember("delays") { writer in
      writer.member("median_ms", delay(50))
      writer.member("p90_ms", delay(90))
      writer.member("max_ms", delays.last)
    }
    writer.member("failed_tests", failureCount)
    writer.arrayMember("failures") { writer in
      for failure in failures {
        writer.object { writer in
          failure.test.writeMembers(to: &writer, of: failure.run)
          writer.member("pushes", failure.pushes)
          writer.arrayMember("nearest") { writer in for line in failure.nearest { line.write(to: &writer) } }
        }
      }
    }
    for (name, count, lines) in [("lost", lostCount, lost), ("duplicates", duplicateCount, duplicates)] {
      writer.objectMember(name) { writer in
        writer.member("count", count)
        writer.arrayMember("items") { writer in for line in lines { line.write(to: &writer) } }
      }
    }
    writer.arrayMember("findings") { writer in
      for item in findings {
        writer.object { writer in
          writer.member("finding", item.kind.rawValue)
          writer.member("count", item.count)
          writer.member("summary", item.kind.summary)
          writer.member("advice", item.kind.advice)
          writer.arrayMember("records") { writer in
            for finding in item.examples {
              writer.object { writer in
                writer.member("seq", finding.seq)
                writer.member("explanation", finding.explanation)
              }
            }
          }
        }
      }
    }
    writer.objectMember("facts", facts.write)
    if let baseline { writer.objectMember("baseline", baseline.write) } else { writer.nullMember("baseline") }
  }

  /// What a later run is compared with.
  package var facts: RunFacts {
    var facts = RunFacts()
    facts.pushes = pushes
    for test in runs.flatMap(\.tests) { facts.tests[test.name] = test.outcome?.rawValue ?? "running" }
    for item in findings { facts.findings[item.kind.rawValue] = item.count }
    (facts.unaccepted, facts.lost, facts.reasons) = (unaccepted, lostIdentities, reasons)
    if let median = delay(50), let p90 = delay(90) { facts.delays = ["median_ms": Int(median), "p90_ms": Int(p90)] }
    return facts
  }
}

extension RunReport.Line {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("seq", seq)
      writer.member("received_at", TimestampFormat.text(receivedAt))
      writer.member("test", test)
      writer.member("topic", topic)
      writer.member("device_token", token)
      writer.member("attempt", attempt)
      writer.member("outcome", outcome.rawValue)
      writer.member("response", response)
      writer.member("rule", rule)
      writer.member("detail", detail)
    }
  }
}
