public import APNSRules

/// How many pushes came and how each ended, since the inbox was made. The counts only grow: neither emptying the inbox
/// nor its limits take anything back.
public struct PushCounts: Sendable {
  /// A way in which pushes end. There are few: reasons that APNs does not know are one.
  public struct Ending: Hashable, Sendable {
    /// How the story ended.
    public let outcome: Record.Outcome
    /// The HTTP status that went out; nil without an answer.
    public let status: Int16?
    /// The reason that went out; nil without one, or where a fault made one up.
    public let reason: Reason?
    /// Whether a fault made the reason up.
    public let hasUnusualReason: Bool
  }

  /// Those that APNs took and that were told so: nearly all, so they are not looked up.
  private var accepted = 0
  private var others: [Ending: Int] = [:]
  /// The last one of these, which mostly comes again, and how often it came without being looked up.
  private var last: (ending: Ending, count: Int)?
  /// How many are held now.
  public private(set) var pending = 0
  /// How many records the inbox's limits have pushed out.
  public private(set) var evicted = 0
  /// How long those that were answered took.
  public private(set) var latency = LatencyHistogram()

  /// How many ended in each way; that of an ordinary push comes first, also while there was none.
  public var endings: [(ending: Ending, count: Int)] {
    var others = others
    if let last { others[last.ending, default: 0] += last.count }
    return [(Self.ordinary, accepted)]
      + others.sorted { $0.key.order < $1.key.order }.map { (ending: $0.key, count: $0.value) }
  }

  private static let ordinary = Ending(outcome: .accepted, status: 200, reason: nil, hasUnusualReason: false)

  /// Counts records that came. What is pending is counted when it ends.
  mutating func add(_ records: [Record]) {
    for index in records.indices {
      if records[index].outcome == .pending {
        pending += 1
      } else {
        add(
          records[index].outcome, records[index].served,
          hasUnusualReason: records[index].hasUnusualReason)
      }
    }
  }

  /// Counts how one that was pending ended.
  mutating func add(_ end: Record.End) {
    pending -= 1
    add(end.outcome, end.served, hasUnusualReason: end.aftermath?.unusualReason != nil)
  }

  /// Counts a record that was pushed out.
  mutating func addEvicted() { evicted += 1 }

  private mutating func add(_ outcome: Record.Outcome, _ served: Record.Served, hasUnusualReason: Bool) {
    if let nanoseconds = served.latencyNanoseconds { latency.add(nanoseconds) }
    if outcome == .accepted, served.status == 200 {
      accepted += 1
    } else {
      let ending = Ending(
        outcome: outcome, status: served.status, reason: served.reason, hasUnusualReason: hasUnusualReason)
      if last?.ending == ending {
        last?.count += 1
      } else {
        if let last { others[last.ending, default: 0] += last.count }
        last = (ending, 1)
      }
    }
  }
}

extension PushCounts.Ending {
  /// Where it stands in a list.
  fileprivate var order: (String, Int16, String) { (outcome.rawValue, status ?? 0, reason?.text ?? "") }
}

/// How many durations were at most so long, for several lengths.
public struct LatencyHistogram: Sendable {
  /// The lengths, in nanoseconds, ascending: 50 µs to 30 s.
  public static let bounds: [Int64] = [
    50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
    250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
  ]

  /// How many were longer than the bound before and at most as long as this one; the last are longer than all.
  public private(set) var counts = [Int](repeating: 0, count: LatencyHistogram.bounds.count + 1)
  /// All of them together, in nanoseconds.
  public private(set) var sum: Int64 = 0

  /// Counts one.
  mutating func add(_ nanoseconds: Int64) {
    var index = 0
    while index < Self.bounds.count, nanoseconds > Self.bounds[index] { index += 1 }
    counts[index] += 1
    sum &+= nanoseconds
  }
}
