package import APNSMockRules

/// Counts of all pushes since the inbox was created, by result. The counts only grow: emptying the inbox and
/// evicting records do not reduce them.
package struct PushCounts: Sendable {
  /// A combination of outcome, status and reason. All reasons that APNs does not define are one combination, so
  /// there are few.
  package struct ResultKey: Hashable, Sendable {
    /// The outcome.
    package let outcome: Record.Outcome
    /// The HTTP status of the response; nil without a response.
    package let status: Int16?
    /// The reason in the response; nil without one, or if APNs does not define it.
    package let reason: Reason?
    /// Whether the response has a reason that APNs does not define.
    package let hasUnusualReason: Bool
  }

  /// The number of pushes with outcome `accepted` and status 200. Nearly all, so they are counted without a lookup.
  private var accepted = 0
  private var others: [ResultKey: Int] = [:]
  /// The most recent of the other results, which mostly repeats, and its count that is not yet in `others`.
  private var last: (key: ResultKey, count: Int)?
  /// The number of pending pushes.
  package private(set) var pending = 0
  /// The number of records evicted by the inbox's limits.
  package private(set) var evicted = 0
  /// The latencies of the responses.
  package private(set) var latency = LatencyHistogram()

  /// The number of pushes with each result. That of an accepted push comes first, even if its count is 0.
  package var results: [(key: ResultKey, count: Int)] {
    var others = others
    if let last { others[last.key, default: 0] += last.count }
    return [(Self.ordinary, accepted)]
      + others.sorted { $0.key.order < $1.key.order }.map { (key: $0.key, count: $0.value) }
  }

  private static let ordinary = ResultKey(outcome: .accepted, status: 200, reason: nil, hasUnusualReason: false)

  /// Counts new records. A pending record is counted when it ends.
  mutating func add(_ records: [Record]) {
    // The elements of the buffer are read in place, those of the array were copied. Measured: 80 instructions less per push.
    records.withUnsafeBufferPointer { records in
      for index in records.indices {
        let outcome = records[index].outcome
        if outcome == .pending {
          pending += 1
        } else {
          add(outcome, records[index].sentResponse, hasUnusualReason: records[index].hasUnusualReason)
        }
      }
    }
  }

  /// Counts the end of a pending record.
  mutating func add(_ result: Record.Result) {
    pending -= 1
    add(result.outcome, result.sentResponse, hasUnusualReason: result.wireDetails?.unusualReason != nil)
  }

  /// Counts evicted records.
  mutating func addEvicted(_ count: Int = 1) { evicted += count }

  private mutating func add(_ outcome: Record.Outcome, _ sentResponse: Record.SentResponse, hasUnusualReason: Bool) {
    if let nanoseconds = sentResponse.latencyNanoseconds { latency.add(nanoseconds) }
    if outcome == .accepted, sentResponse.status == 200 {
      accepted += 1
    } else {
      let key = ResultKey(
        outcome: outcome, status: sentResponse.status, reason: sentResponse.reason, hasUnusualReason: hasUnusualReason)
      if last?.key == key {
        last?.count += 1
      } else {
        if let last { others[last.key, default: 0] += last.count }
        last = (key, 1)
      }
    }
  }
}

extension PushCounts.ResultKey {
  /// The sort key in lists.
  fileprivate var order: (String, Int16, String) { (outcome.rawValue, status ?? 0, reason?.text ?? "") }
}

/// A histogram of durations.
package struct LatencyHistogram: Sendable {
  /// The upper bounds of the buckets in nanoseconds, ascending: 50 µs to 30 s.
  package static let bounds: [Int64] = [
    50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
    250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
  ]

  /// The number of durations in each bucket: above the previous bound and at most this one; the last bucket has no
  /// upper bound.
  package private(set) var counts = [Int](repeating: 0, count: LatencyHistogram.bounds.count + 1)
  /// The sum of all durations, in nanoseconds.
  package private(set) var sum: Int64 = 0

  /// Adds a duration.
  mutating func add(_ nanoseconds: Int64) {
    var index = 0
    while index < Self.bounds.count, nanoseconds > Self.bounds[index] { index += 1 }
    counts[index] += 1
    sum &+= nanoseconds
  }
}
