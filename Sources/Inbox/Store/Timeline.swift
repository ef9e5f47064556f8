internal import APNSMockNotation

/// Counts of records over time, in at most a given number of buckets of equal width.
///
/// Times may come in any order. The width starts at a millisecond and grows with the range of times, so that memory is
/// bounded whatever the clock of the records was.
package struct Timeline: Sendable {
  /// The maximum number of buckets that can be requested.
  package static let maxBuckets = 500

  /// The widths of buckets in milliseconds. Each is a multiple of the previous one, so that buckets can be merged.
  private static let widths: [Int64] = [
    1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 21_600_000,
    43_200_000, 86_400_000, 604_800_000, 6_048_000_000, 60_480_000_000, 604_800_000_000, 6_048_000_000_000,
    60_480_000_000_000, 604_800_000_000_000,
  ]

  private let maxBuckets: Int
  private var width = 0
  /// The counts by series and by the number of the bucket, counted from 1970.
  private var counts: [String: [Int64: Int]] = [:]
  private var first = Int64.max
  private var last = Int64.min

  /// Creates an empty time line.
  package init(maxBuckets: Int) { self.maxBuckets = max(1, min(maxBuckets, Self.maxBuckets)) }

  /// Counts a record.
  ///
  /// - Parameter time: The time in milliseconds since 1970.
  mutating func add(_ time: Int64, to series: String) {
    // Times that RFC 3339 cannot represent.
    guard TimestampFormat.range.contains(time) else { return }
    if time < first || time > last {
      first = min(first, time)
      last = max(last, time)
      while bucket(of: last) - bucket(of: first) >= maxBuckets, width + 1 < Self.widths.count { widen() }
    }
    counts[series, default: [:]][bucket(of: time), default: 0] += 1
  }

  private func bucket(of time: Int64) -> Int64 {
    let (quotient, remainder) = time.quotientAndRemainder(dividingBy: Self.widths[width])
    return remainder < 0 ? quotient - 1 : quotient
  }

  private mutating func widen() {
    let previous = Self.widths[width]
    width += 1
    for (series, buckets) in counts {
      var merged: [Int64: Int] = [:]
      for (number, count) in buckets { merged[bucket(of: number * previous), default: 0] += count }
      counts[series] = merged
    }
  }

  /// Writes the time line as members of an object: the start of the first bucket, the width of each, and a list of
  /// counts for each series.
  func write(to writer: inout JSONWriter) {
    let isEmpty = counts.isEmpty
    let start = isEmpty ? 0 : bucket(of: first)
    let number = isEmpty ? 0 : bucket(of: last) - start + 1
    let first = max(start * Self.widths[width], TimestampFormat.range.lowerBound)
    writer.member("start", isEmpty ? nil : TimestampFormat.text(first))
    writer.member("bucket_ms", Self.widths[width])
    writer.objectMember("counts") { writer in
      for (series, buckets) in counts.sorted(by: { $0.key < $1.key }) {
        writer.arrayMember(series) { writer in
          for offset in 0..<number { writer.integer(buckets[start + offset] ?? 0) }
        }
      }
    }
  }
}
