package import APNSMockRules
package import APNSMockNotation

/// The result of a verification.
package struct VerificationReport: Sendable {
  /// A single requirement with the wanted and the found value.
  package struct Criterion: Sendable, Equatable {
    /// The name of the requirement: `count`, `retries.max`, `order`, or the field for a nearest push.
    package let name: String
    /// The wanted value as text.
    package let wanted: String
    /// The found value as text.
    package let found: String
    /// Whether the requirement is met.
    package let isMet: Bool
    /// A possible reason why it is not met; nil if none is known.
    package var hint: String?
  }

  /// The result of one expectation.
  package struct Expected: Sendable {
    /// The name of the expectation.
    package let name: String
    /// All requirements of the expectation.
    package let criteria: [Criterion]
    /// The number of pushes that count.
    package let matched: Int
    /// The `seq` of the first pushes that count.
    package let seqs: [PushName]
    /// The most similar pushes, if too few count.
    package let nearest: [Nearest]

    /// Whether all requirements are met.
    package var isMet: Bool { criteria.allSatisfy(\.isMet) }
  }

  /// A push that is similar to an expectation.
  package struct Nearest: Sendable {
    /// The `seq` of the push's record.
    package let seq: Int
    /// The push as users name it.
    let name: PushName
    /// The push's `apns-id`; nil if it has none.
    package let apnsID: String?
    /// The result of each condition.
    package let criteria: [Criterion]
    /// The correction that the failed check of APNs' rules names; nil if no check failed.
    package let advice: String?

    /// The number of conditions met.
    package var met: Int { criteria.count { $0.isMet } }
  }

  /// Disallowed pushes: those that no expectation matches, or those that were lost.
  package struct Others: Sendable {
    /// The criterion that there are none.
    package let criterion: Criterion
    /// The `seq` of the first disallowed pushes.
    package let seqs: [PushName]
    /// One line of text for each of the first disallowed pushes.
    let lines: [String]
  }

  /// Disallowed findings.
  package struct Findings: Sendable {
    /// The criterion that there are none.
    package let criterion: Criterion
    /// The first disallowed findings.
    package let findings: [Finding]
  }

  /// The maximum length of lists of records and findings.
  static let listLimit = 20

  /// The results of the expectations, in the order of the document.
  package let expectations: [Expected]
  /// The result of the expected order; nil if none was given.
  package let order: Criterion?
  /// The pushes that no expectation matches; nil if they are allowed.
  package let others: Others?
  /// The pushes whose last attempt was neither accepted nor permanently rejected; nil if they are allowed.
  package let lost: Others?
  /// The disallowed findings; nil if all are allowed.
  package let findings: Findings?
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  /// Whether no record of the window was evicted, and all were analyzed if that is necessary.
  package let isComplete: Bool
  /// Whether all records of the window were analyzed, or no requirement needs that. A server does not analyze those from
  /// before its start.
  package let isAnalyzed: Bool
  /// The server that was verified.
  package let context: VerificationContext

  /// Whether the result is unknown, because records of the window were evicted, or not analyzed.
  package var isInconclusive: Bool { !isComplete }

  /// Whether all criteria are met by the records that are available.
  private var isMet: Bool {
    expectations.allSatisfy(\.isMet) && order?.isMet != false && others?.criterion.isMet != false
      && lost?.criterion.isMet != false && findings?.criterion.isMet != false
  }

  /// Whether all criteria are met, and the result is known.
  package var isPassed: Bool { isMet && isComplete }
}

/// The context of a report: the rules for findings, and the state of the server.
package struct VerificationContext: Sendable {
  /// The rules that determine the findings.
  package var rulebook: Rulebook
  /// The seed of all fault draws; nil for an export, which does not contain it.
  package var seed: UInt64?
  /// The active fault profile with its parameters; nil for an export.
  package var profile: String?

  /// Creates the context of a report.
  package init(rulebook: Rulebook, seed: UInt64?, profile: String?) {
    self.rulebook = rulebook
    self.seed = seed
    self.profile = profile
  }
}

extension VerificationReport {
  /// Writes the report as members of an object.
  package func write(to writer: inout JSONWriter) {
    writer.member("passed", isPassed)
    writer.member("inconclusive", isInconclusive)
    writer.arrayMember("expectations") { writer in
      for expectation in expectations { writer.object(expectation.write) }
    }
    writer.name("order")
    if let order {
      writer.object { writer in
        order.write(to: &writer)
        writer.member("text", order.text)
      }
    } else {
      writer.null()
    }
    for (name, pushes) in [("no_others", others), ("nothing_lost", lost)] {
      writer.name(name)
      if let pushes {
        writer.object { writer in
          pushes.criterion.write(to: &writer)
          writer.member("seqs", pushes.seqs)
          writer.member("text", pushes.text)
        }
      } else {
        writer.null()
      }
    }
    writer.name("no_findings")
    if let findings {
      writer.object { writer in
        findings.criterion.write(to: &writer)
        writer.arrayMember("findings") { writer in
          for finding in findings.findings { writer.object(finding.writeMembers) }
        }
        writer.member("text", findings.text)
      }
    } else {
      writer.null()
    }
    writer.member("evicted", evicted)
    writer.member("complete", isComplete)
    writer.member("analyzed", isAnalyzed)
    writer.member("seed", context.seed)
    writer.member("profile", context.profile)
    writer.member("text", text)
  }
}

extension VerificationReport.Expected {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("name", name)
    writer.member("passed", isMet)
    writer.arrayMember("criteria") { writer in
      for criterion in criteria { writer.object(criterion.write) }
    }
    writer.member("matched", matched)
    writer.member("seqs", seqs)
    writer.arrayMember("nearest") { writer in
      for push in nearest { writer.object(push.write) }
    }
    writer.member("text", text)
  }
}

extension VerificationReport.Nearest {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("seq", name)
    writer.member("apns_id", apnsID)
    writer.member("met", met)
    writer.member("of", criteria.count)
    writer.arrayMember("criteria") { writer in
      for criterion in criteria { writer.object(criterion.write) }
    }
    writer.member("advice", advice)
  }
}

extension VerificationReport.Criterion {
  /// Writes the criterion as members of an object.
  package func write(to writer: inout JSONWriter) {
    writer.member("criterion", name)
    writer.member("wanted", wanted)
    writer.member("found", found)
    writer.member("passed", isMet)
    writer.member("hint", hint)
  }
}

extension Finding {
  fileprivate func writeMembers(to writer: inout JSONWriter) {
    writer.member("finding", kind.rawValue)
    writer.member("seq", name)
    writer.member("evidence", evidence.prefix(VerificationReport.listLimit).map(name(of:)))
    writer.member("explanation", explanation)
  }
}

extension VerificationReport {
  /// The report as text: a line for each expectation, and all criteria of those that are not met. The last line has
  /// the facts needed to reproduce the result, such as the seed.
  package var text: String {
    var parts = expectations.map(\.text) + [order?.text, others?.text, lost?.text, findings?.text].compactMap(\.self)
    if isInconclusive { parts.append("? \(inconclusiveness)") }
    let facts = [
      "window complete: \(isComplete ? "yes" : "no") (\(evicted) evicted)", context.seed.map { "seed \($0)" },
      context.profile.map { "profile \(ReportText.line($0))" },
    ]
    parts.append("  " + facts.compactMap(\.self).joined(separator: "   "))
    return parts.joined(separator: "\n")
  }

  private var inconclusiveness: String {
    guard isAnalyzed else {
      return "inconclusive: the server does not know which pushes from before its start, or recorded by an older "
        + "version, were lost or have findings (specify after, or reset before each test)"
    }
    return "inconclusive: pushes were evicted before they were checked (specify after, reset before each test, "
      + "raise --max-records, --max-bytes or --retain, or use --record all)"
  }
}

extension VerificationReport.Others {
  /// The result as text.
  var text: String { ([criterion.text] + lines.map { "    " + $0 }).joined(separator: "\n") }
}

extension VerificationReport.Findings {
  /// The result as text.
  var text: String {
    var lines = findings.prefix(5).map { finding in
      "    \(finding.kind.rawValue)  seq \(finding.name)  \(ReportText.line(finding.explanation))"
    }
    if findings.count > lines.count { lines.append("    and \(findings.count - lines.count) more") }
    return ([criterion.text] + lines).joined(separator: "\n")
  }
}

extension VerificationReport.Expected {
  /// The maximum number of criteria listed for one push.
  private static let rowLimit = 20

  /// The result as text.
  var text: String { lines.joined(separator: "\n") }

  private var lines: [String] {
    var lines = ["\(isMet ? "✓" : "✗") \(ReportText.shortened(name)): \(summary)"]
    // A single count is already part of the first line.
    if criteria.count > 1 || criteria.first?.name != "count" {
      lines += Self.rows(criteria.map { ($0, $0.bothValues) }, indent: "  ")
    }
    guard !isMet else { return lines }
    for push in nearest {
      let id = push.apnsID.map { ", apns-id \(ReportText.shortened($0))" } ?? ""
      lines.append("  nearest: seq \(push.name), \(push.met) of \(push.criteria.count) criteria\(id)")
      lines += Self.rows(
        push.criteria.prefix(Self.rowLimit).map { ($0, $0.isMet ? $0.found : $0.bothValues) }, indent: "    ")
      if push.criteria.count > Self.rowLimit { lines.append("    and \(push.criteria.count - Self.rowLimit) more") }
      if let advice = push.advice { lines.append("    advice: \(advice)") }
    }
    if nearest.isEmpty, matched > 0 { lines.append("  found: \(ReportText.seqs(seqs, of: matched))") }
    return lines
  }

  private var summary: String {
    if criteria.count == 1, let count = criteria.first, count.name == "count" {
      return "expected \(count.wanted), found \(count.found)"
    }
    return "\(criteria.count { $0.isMet }) of \(criteria.count) criteria"
  }

  private static func rows(_ rows: [(criterion: VerificationReport.Criterion, text: String)], indent: String)
    -> [String]
  {
    let names = rows.map { ReportText.shortened($0.criterion.name) }
    let width = names.map(\.count).max() ?? 0
    return zip(rows, names).map { row, name in
      let padding = String(repeating: " ", count: width - name.count)
      return "\(indent)\(name)\(padding)  \(row.criterion.isMet ? "✓" : "✗") \(row.text)\(row.criterion.arrow)"
    }
  }
}

extension VerificationReport.Criterion {
  fileprivate var bothValues: String { "wanted \(wanted), found \(found)" }

  fileprivate var arrow: String { hint.map { "   ← \($0)" } ?? "" }

  /// The criterion as a line of text.
  var text: String { "\(isMet ? "✓" : "✗") \(name): \(bothValues)\(arrow)" }
}
