/// Adds up the metrics of several servers, in the text format of Prometheus or OpenMetrics that `/metrics` returns.
///
/// Counters, histograms and most gauges are added. `apns_mock_ready` and `apns_mock_store_working` are the minimum, so they
/// are 1 only if all servers and stores are; `apns_mock_faults_halted`, `apns_mock_store_lag_seconds` and metrics that end in
/// `_info` are the maximum; the start time and the expiry of certificates are the earliest.
struct MetricsMerge {
  /// An error in the text of a server.
  struct Problem: Error, Equatable {
    /// The line, from 1.
    let line: Int
    let reason: String
  }

  /// A metric family: its comments, and the values by name and labels.
  private struct Family {
    var comments: [Substring] = []
    var names: [Substring] = []
    var values: [Substring: Double] = [:]
  }

  private var families: [Family] = []
  /// The indices of the families by name.
  private var indices: [Substring: Int] = [:]
  private var hasEndMark = false

  /// Adds the metrics of a server.
  ///
  /// - Throws: `Problem` for a line that is neither a comment nor a sample. The merge must then not be used.
  mutating func add(_ text: String) throws(Problem) {
    var commented: Set<Substring> = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if line == "# EOF" { hasEndMark = true }
      if line.isEmpty || line == "# EOF" { continue }
      guard !line.hasPrefix("#") else {
        let words = line.split(separator: " ", maxSplits: 3)
        guard words.count >= 3, words[1] == "HELP" || words[1] == "TYPE" else { continue }
        let family = family(words[2])
        // Those of the first server that has the family.
        if families[family].names.isEmpty, families[family].comments.isEmpty || commented.contains(words[2]) {
          families[family].comments.append(line)
          commented.insert(words[2])
        }
        continue
      }
      guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
        throw Problem(line: index + 1, reason: "expected a metric: a name, labels, a space and a number")
      }
      add(value, named: line[..<space])
    }
  }

  private mutating func add(_ value: Double, named name: Substring) {
    let metric = name.prefix { $0 != "{" }
    let family = family(metric)
    guard let former = families[family].values[name] else {
      families[family].names.append(name)
      families[family].values[name] = value
      return
    }
    families[family].values[name] =
      switch metric {
      case "apns_mock_ready", "apns_mock_store_working", "process_start_time_seconds",
        "apns_mock_certificate_expiry_seconds":
        min(former, value)
      case "apns_mock_faults_halted", "apns_mock_store_lag_seconds": max(former, value)
      default: metric.hasSuffix("_info") ? max(former, value) : former + value
      }
  }

  /// Returns the index of the family with this name, or of the one that a sample of this name belongs to.
  private mutating func family(_ name: Substring) -> Int {
    for suffix in ["", "_total", "_bucket", "_sum", "_count"] where name.hasSuffix(suffix) {
      if let index = indices[name.dropLast(suffix.count)] { return index }
    }
    indices[name] = families.count
    families.append(Family())
    return families.count - 1
  }

  /// The metrics of all servers.
  var text: String {
    var lines: [Substring] = []
    for family in families {
      lines += family.comments
      lines += family.names.map { "\($0) \(Self.text(family.values[$0] ?? 0))" }
    }
    if hasEndMark { lines.append("# EOF") }
    return lines.map { $0 + "\n" }.joined()
  }

  private static func text(_ value: Double) -> String {
    Int(exactly: value).map(String.init) ?? "\(value)"
  }
}
