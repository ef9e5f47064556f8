/// Metrics in the text format of Prometheus (exposition 0.0.4) or OpenMetrics 1.0.
struct MetricsText {
  /// The supported formats.
  enum Format {
    case prometheus, openMetrics

    var contentType: String {
      switch self {
      case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
      case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      }
    }
  }

  /// The type of a metric.
  enum Kind: String {
    case counter, gauge, histogram
  }

  /// The value for one combination of labels.
  struct Sample {
    var labels: [(name: String, value: String)] = []
    var value: String
  }

  private let format: Format
  private var lines = ""

  init(_ format: Format) { self.format = format }

  /// The complete text.
  var text: String { format == .openMetrics ? lines + "# EOF\n" : lines }

  /// Writes a metric family.
  ///
  /// - Parameter name: The name; for a counter, without `_total`.
  mutating func family(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
    let full = kind == .counter ? name + "_total" : name
    describe(format == .openMetrics ? name : full, kind, help)
    for sample in samples { write(full, sample) }
  }

  /// Writes a metric family with a single value.
  mutating func family(_ name: String, _ kind: Kind, _ help: String, _ value: Int) {
    family(name, kind, help, [Sample(value: String(value))])
  }

  /// Writes a histogram.
  ///
  /// - Parameters:
  ///   - counts: The number of values in each bucket, not cumulative; the last bucket has no upper bound.
  ///   - sum: The sum of all values.
  mutating func histogram(_ name: String, _ help: String, bounds: [Double], counts: [Int], sum: Double) {
    describe(name, .histogram, help)
    var total = 0
    for (bound, count) in zip(bounds.map { "\($0)" } + ["+Inf"], counts) {
      total += count
      write("\(name)_bucket", Sample(labels: [("le", bound)], value: String(total)))
    }
    write("\(name)_sum", Sample(value: "\(sum)"))
    write("\(name)_count", Sample(value: String(total)))
  }

  private mutating func describe(_ name: String, _ kind: Kind, _ help: String) {
    lines += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
  }

  private mutating func write(_ name: String, _ sample: Sample) {
    let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
    lines += "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(sample.value)\n"
  }

  private static func escaped(_ value: String) -> String {
    value.reduce(into: "") { text, character in
      switch character {
      case "\\": text += #"\\"#
      case "\"": text += #"\""#
      case "\n", "\r\n": text += #"\n"#
      default: text.append(character)
      }
    }
  }
}
