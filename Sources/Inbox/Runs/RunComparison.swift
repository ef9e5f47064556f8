internal import APNSMockNotation

/// What a run is compared by with a later one.
package struct RunFacts: Sendable {
  package internal(set) var pushes = 0
  /// The number of further pushes, about which nothing is known; nil if even their number is unknown.
  var missing: Int? = 0
  /// The outcome of each test.
  package internal(set) var tests: [String: String] = [:]
  /// The number of pushes with each finding.
  var findings: [String: Int] = [:]
  /// The pushes that were not accepted, with their last response, and those of them that were lost. A push is named by its test and
  /// its order within a device token and a topic.
  var unaccepted: [String: String] = [:]
  var lost: Set<String> = []
  /// The number of attempts with each response but those of accepted pushes.
  var reasons: [String: Int] = [:]
  /// The milliseconds from the first attempt to the acceptance.
  var delays: [String: Int] = [:]

  init() {}

  /// Reads the member `facts` of a report in JSON.
  ///
  /// - Returns: nil if this is no report of a known format.
  package init?(report json: [UInt8]) {
    guard JSONText.problem(in: json) == nil, case .object(let report) = JSONValue(json[...])
    else { return nil }
    guard report.members["format"] == .number("1"), case .object(let facts)? = report.members["facts"] else {
      return nil
    }
    for (name, value) in facts.entries {
      switch (name, value) {
      case ("pushes", .number(let text)): pushes = Int(text) ?? 0
      case ("missing", .number(let text)): missing = Int(text) ?? 0
      case ("missing", .null): missing = nil
      case ("tests", .object(let members)): tests = Self.texts(members)
      case ("unaccepted", .object(let members)): unaccepted = Self.texts(members)
      case ("findings", .object(let members)): findings = Self.numbers(members)
      case ("reasons", .object(let members)): reasons = Self.numbers(members)
      case ("delays", .object(let members)): delays = Self.numbers(members)
      case ("lost", .list(let list)):
        lost = Set(list.elements.compactMap { if case .text(let text) = $0 { text } else { nil } })
      default: break
      }
    }
  }

  private static func texts(_ members: JSONStructure) -> [String: String] {
    members.members.compactMapValues { if case .text(let text) = $0 { text } else { nil } }
  }

  private static func numbers(_ members: JSONStructure) -> [String: Int] {
    members.members.compactMapValues { if case .number(let text) = $0 { Int(text) } else { nil } }
  }

  /// Writes the facts as members of an object.
  func write(to writer: inout JSONWriter) {
    writer.member("pushes", pushes)
    writer.member("missing", missing)
    for (name, texts) in [("tests", tests), ("unaccepted", unaccepted)] {
      writer.objectMember(name) { writer in
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) { writer.member(name, text) }
      }
    }
    for (name, numbers) in [("findings", findings), ("reasons", reasons), ("delays", delays)] {
      writer.objectMember(name) { writer in
        for (name, number) in numbers.sorted(by: { $0.key < $1.key }) { writer.member(name, number) }
      }
    }
    writer.member("lost", lost.sorted())
  }
}

/// What is new, fixed and unchanged in a run since an older one.
package struct RunComparison: Sendable {
  /// Names, or hashes of pushes, that are only in the newer run, only in the older one, or in both.
  struct Change: Sendable {
    var new: [String] = []
    var fixed: [String] = []
    /// Those that one of the runs says nothing about, because a test did not run, or pushes are missing.
    var unknown: [String] = []
    var unchanged: [String] = []

    /// - Parameters:
    ///   - isComplete: Whether the older run has all of its names.
    ///   - isFixed: Whether a name that only the older run has no longer occurs.
    init(
      _ old: some Sequence<String>, _ now: some Sequence<String>, isComplete: Bool = true, isFixed: (String) -> Bool
    ) {
      let (old, now) = (Set(old), Set(now))
      if isComplete { new = now.subtracting(old).sorted() } else { unknown = now.subtracting(old).sorted() }
      for name in old.subtracting(now).sorted() {
        if isFixed(name) { fixed.append(name) } else { unknown.append(name) }
      }
      unchanged = now.intersection(old).sorted()
    }
  }

  /// The name of the older run.
  package let name: String
  let findings, lost, unaccepted, tests: Change
  let old, now: RunFacts

  /// Compares two runs.
  package init(of now: RunFacts, with old: RunFacts, named name: String) {
    (self.name, self.old, self.now) = (name, old, now)
    func ran(_ test: String) -> Bool { now.tests[test].map { $0 != "skipped" } ?? false }
    // Nothing says which test had a push or a finding, so only a run of all tests shows that it no longer occurs.
    let allRan = now.missing == 0 && old.tests.keys.allSatisfy(ran)
    let isComplete = old.missing == 0
    findings = Change(old.findings.keys, now.findings.keys, isComplete: isComplete) { _ in allRan }
    lost = Change(old.lost, now.lost, isComplete: isComplete) { _ in allRan }
    unaccepted = Change(old.unaccepted.keys, now.unaccepted.keys, isComplete: isComplete) { _ in allRan }
    func failed(_ facts: RunFacts) -> some Sequence<String> {
      facts.tests.filter { $0.value == "failed" || $0.value == "interrupted" }.keys
    }
    tests = Change(failed(old), failed(now), isFixed: ran)
  }

  /// Why the comparison says little: the older run is of another suite, empty, or lacks pushes; nil if it does not.
  package var warning: String? {
    if old.tests.isEmpty, old.pushes == 0, old.missing == 0 {
      return "The baseline has neither a test nor a push: is it the right file?"
    }
    if !old.tests.isEmpty, Set(old.tests.keys).isDisjoint(with: now.tests.keys) {
      return "None of the tests is in the baseline: is it of another suite?"
    }
    return old.missing == 0
      ? nil : "The baseline lacks pushes of its run, so that what is not in it may be older than this run."
  }

  /// The failed tests, findings and lost pushes that are new, in a few words for the verdict.
  var summary: String {
    let kinds = [("failed tests", tests), ("findings", findings), ("lost pushes", lost)]
    let new = kinds.filter { !$0.1.new.isEmpty }.map { "\($0) (\($1.new.count))" }
    return new.isEmpty ? "nothing new since \(name)" : "new since \(name): \(new.joined(separator: ", "))"
  }

  /// The kinds of change with what they are called.
  var parts: [(title: String, change: Change, isNamed: Bool)] {
    [
      ("failed tests", tests, true), ("findings", findings, true), ("lost pushes", lost, false),
      ("pushes that were not accepted", unaccepted, false),
    ]
  }

  /// The responses whose number has changed, with both numbers.
  var reasons: [(name: String, old: Int, now: Int)] {
    Set(old.reasons.keys).union(now.reasons.keys).sorted().map { ($0, old.reasons[$0] ?? 0, now.reasons[$0] ?? 0) }
      .filter { $0.old != $0.now }
  }

  /// Writes the comparison as members of an object.
  func write(to writer: inout JSONWriter) {
    writer.member("name", name)
    writer.member("warning", warning)
    for (name, change) in [("tests", tests), ("findings", findings), ("lost", lost), ("unaccepted", unaccepted)] {
      writer.objectMember(name) { writer in
        writer.member("new", change.new)
        writer.member("fixed", change.fixed)
        writer.member("unknown", change.unknown)
        writer.member("unchanged", change.unchanged)
      }
    }
    writer.objectMember("reasons") { writer in
      for reason in reasons {
        writer.objectMember(reason.name) { writer in
          writer.member("old", reason.old)
          writer.member("new", reason.now)
        }
      }
    }
    for (name, facts) in [("old", old), ("now", now)] {
      writer.objectMember(name) { writer in
        writer.member("pushes", facts.pushes)
        writer.member("tests", facts.tests.count)
        writer.objectMember("delays") { writer in
          for (name, delay) in facts.delays.sorted(by: { $0.key < $1.key }) { writer.member(name, delay) }
        }
      }
    }
  }
}

// MARK: - Markdown

extension RunReport {
  /// The report as Markdown, for the summary of a job in CI. Recorded texts are escaped.
  package var markdown: String {
    var lines = ["## apns-mock: \(Self.escaped(verdict))", ""]
    for run in runs {
      let labels = run.labels.sorted { $0.key < $1.key }.map { "\(Self.escaped($0.key)) \(Self.escaped($0.value))" }
      let seed = run.seed.map { "seed \($0)" }
      let parts = [Self.escaped(run.name), run.profile.map { "profile \(Self.escaped($0))" }, seed].compactMap(\.self)
      lines.append("- \(run.id): \((parts + labels).joined(separator: ", "))")
      lines += run.notes.map { "  - \(Self.escaped($0))" }
    }
    if let command { lines += ["", "To repeat it:", ""] + command.codeBlock("sh") }
    if let baseline { lines += baseline.markdown }
    if !failures.isEmpty { lines += ["", "### Failed tests", ""] }
    for failure in failures {
      lines.append("- **\(Self.escaped(failure.test.name))** (\(failure.test.outcome?.rawValue ?? "running"))")
      if let message = failure.test.message {
        lines += TestRun.cut(message, 600).codeBlock("text").map { "  \($0)" }
      }
      if failure.pushes == 0, !failure.nearest.isEmpty {
        lines.append("  - No push belongs to this test. The nearest in time:")
      }
      lines += failure.nearest.map { "  - \($0.markdown)" }
    }
    if failureCount > failures.count { lines.append("- and \(failureCount - failures.count) more") }
    for (title, count, items) in [("Lost pushes", lostCount, lost), ("Accepted twice", duplicateCount, duplicates)]
    where count > 0 {
      lines += ["", "### \(title): \(count)", ""] + items.prefix(20).map { "- \($0.markdown)" }
      if count > 20 { lines.append("- and \(count - 20) more") }
    }
    if !findings.isEmpty {
      lines += ["", "### Findings", "", "| finding | pushes | what to do |", "| --- | ---: | --- |"]
    }
    lines += findings.map { "| `\($0.kind.rawValue)` | \($0.count) | \(Self.escaped($0.kind.advice, 400)) |" }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Whether a character controls how others are displayed.
  fileprivate static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\u{0}"..<"\u{20}", "\u{7F}", "\u{2028}", "\u{2029}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}": true
    default: false
    }
  }

  /// Returns a text on one line, in which Markdown and HTML have no meaning.
  static func escaped(_ text: String, _ limit: Int = 200) -> String {
    TestRun.cut(text, limit).unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case _ where isInvisible(scalar): escaped += " "
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "&": escaped += "&amp;"
      // Otherwise a job summary would mention people.
      case "@": escaped += "&#64;"
      case "\\", "`", "*", "_", "[", "]", "|", "#", "~", "!": escaped += "\\\(scalar)"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
  }
}

extension RunReport.Line {
  fileprivate var markdown: String {
    let parts = [
      "push \(name)", topic.map { RunReport.escaped($0) }, "attempt \(attempt)", "**\(RunReport.escaped(response))**",
      rule.map { "rule \(RunReport.escaped($0))" }, test.map { "in \(RunReport.escaped($0))" },
      detail.map { RunReport.escaped($0, 400) },
    ]
    return parts.compactMap(\.self).joined(separator: ", ")
  }
}

extension RunComparison {
  fileprivate var markdown: [String] {
    var lines = ["", "### Since \(RunReport.escaped(name))", ""]
    if let warning { lines += [warning, ""] }
    for (title, change, isNamed) in parts {
      func list(_ names: [String]) -> String {
        let shown =
          isNamed && !names.isEmpty ? ": " + names.map { RunReport.escaped($0) }.listed(10) : ""
        return "\(names.count)\(shown)"
      }
      lines.append(
        "- \(title): new \(list(change.new)); fixed \(list(change.fixed)); unchanged \(change.unchanged.count)"
          + (change.unknown.isEmpty
            ? "" : "; unknown, because not all tests ran or pushes are missing, \(list(change.unknown))"))
    }
    lines += reasons.prefix(20).map { "- \(RunReport.escaped($0.name)): \($0.old) → \($0.now)" }
    if reasons.count > 20 { lines.append("- and \(reasons.count - 20) more") }
    lines.append("- pushes: \(old.pushes) → \(now.pushes)")
    for (name, delay) in now.delays.sorted(by: { $0.key < $1.key }) where old.delays[name] != delay {
      let former = old.delays[name].map { "\($0) ms" } ?? "unknown"
      lines.append("- time to acceptance, \(name.replacing("_ms", with: "")): \(former) → \(delay) ms")
    }
    return lines
  }
}

extension String {
  /// The lines of a block of code with this text, which cannot end the block.
  fileprivate func codeBlock(_ language: String) -> [String] {
    let shown = String(
      String.UnicodeScalarView(unicodeScalars.map { RunReport.isInvisible($0) && $0 != "\n" ? " " : $0 }))
    let ticks = split(whereSeparator: { $0 != "`" }).map(\.count).max() ?? 0
    let fence = String(repeating: "`", count: max(3, ticks + 1))
    return [fence + language] + shown.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) + [
      fence
    ]
  }
}
