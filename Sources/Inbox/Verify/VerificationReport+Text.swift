extension VerificationReport {
  /// The report as text: a line for each expectation, and all criteria of those that are not met. The last line has
  /// the facts needed to reproduce the result, such as the seed.
  public var text: String {
    var parts = expectations.map(\.text) + [order?.text, others?.text, lost?.text, findings?.text].compactMap(\.self)
    if isInconclusive { parts.append("? \(inconclusiveness)") }
    let circumstances = [
      "window complete: \(isComplete ? "yes" : "no") (\(evicted) evicted)", scene.seed.map { "seed \($0)" },
      scene.profile.map { "profile \(ShownText.line($0))" },
    ]
    parts.append("  " + circumstances.compactMap(\.self).joined(separator: "   "))
    return parts.joined(separator: "\n")
  }

  private var inconclusiveness: String {
    "inconclusive: pushes were evicted before they were checked (raise --max-records or --max-bytes, "
      + "reset before each test, or specify after)"
  }
}

extension VerificationReport.Others {
  /// The result as text.
  var text: String { ([criterion.text] + lines.map { "    " + $0 }).joined(separator: "\n") }
}

extension VerificationReport.Findings {
  /// The result as text.
  var text: String {
    let lines = findings.prefix(5).map { finding in
      "    \(finding.kind.rawValue)  seq \(finding.seq)  \(ShownText.line(finding.explanation))"
    }
    return ([criterion.text] + lines).joined(separator: "\n")
  }
}

extension VerificationReport.Expected {
  /// The maximum number of criteria listed for one push.
  private static let rowLimit = 20

  /// The result as text.
  var text: String { lines.joined(separator: "\n") }

  private var lines: [String] {
    var lines = ["\(isMet ? "✓" : "✗") \(ShownText.shortened(name)): \(summary)"]
    // A single count is already part of the first line.
    if criteria.count > 1 || criteria.first?.name != "count" {
      lines += Self.rows(criteria.map { ($0, $0.bothValues) }, indent: "  ")
    }
    guard !isMet else { return lines }
    for push in nearest {
      let id = push.apnsID.map { ", apns-id \(ShownText.shortened($0))" } ?? ""
      lines.append("  nearest: seq \(push.seq), \(push.met) of \(push.criteria.count) criteria\(id)")
      lines += Self.rows(
        push.criteria.prefix(Self.rowLimit).map { ($0, $0.isMet ? $0.found : $0.bothValues) }, indent: "    ")
      if push.criteria.count > Self.rowLimit { lines.append("    and \(push.criteria.count - Self.rowLimit) more") }
    }
    if nearest.isEmpty, matched > 0 { lines.append("  found: \(ShownText.seqs(seqs, of: matched))") }
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
    let names = rows.map { ShownText.shortened($0.criterion.name) }
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
