internal import APNSMockRules
internal import APNSMockFaultModel
package import APNSMockNotation

/// The distribution of records over statuses, reasons, topics and other fields. Its memory is bounded for any number of
/// records.
package struct InboxStatistics: Sendable {
  private var matched = 0
  private var accepted = 0
  private var retries = 0
  private var payloadBytes = 0
  private var deviceTokens = DistinctCount()
  private var connections = DistinctCount()
  /// The latencies of the records with a response.
  private var latencies = Latencies()
  /// The times from the arrival of the first attempt to the response that accepted the push, of pushes with several attempts.
  private var timesToAcceptance = Latencies()
  /// The times between the arrivals of an attempt and the one before it.
  private var retryDelays = Latencies()
  /// The arrivals of the first and the newest attempt of pushes that were not accepted so far.
  private var unaccepted: [PushKey: (first: Int64, newest: Int64)] = [:]
  private var outcomes = ValueCounts()
  private var statuses = ValueCounts()
  private var reasons = ValueCounts()
  private var topics = ValueCounts()
  private var pushTypes = ValueCounts()
  private var rules = ValueCounts()
  /// The records of each outcome over time; nil if it was not requested.
  private var timeline: Timeline?

  /// The maximum number of pushes without an accepted attempt that are remembered.
  private static let maxUnaccepted = 100_000

  /// Creates statistics without records.
  ///
  /// - Parameter buckets: The maximum number of parts of the time line; nil for no time line.
  package init(buckets: Int? = nil) { timeline = buckets.map { Timeline(maxBuckets: $0) } }

  /// Counts a record.
  package mutating func add(_ record: borrowing Record) {
    matched += 1
    if record.accepted { accepted += 1 }
    if record.attempt > 1 { retries += 1 }
    payloadBytes += record.bodySize
    connections.insert(hash: record.connection.id.hashValue)
    if let token = record.hashOfDeviceToken { deviceTokens.insert(hash: token) }
    if let latency = record.sentResponse.latencyNanoseconds { latencies.add(latency) }
    addAttempt(record)
    outcomes.add(record.outcome.rawValue)
    timeline?.add(record.receivedAt, to: record.outcome.rawValue)
    statuses.add(record.sentResponse.status.map { String($0) })
    reasons.add(record.sentReason)
    topics.add(record.withTopic { $0.map { String(decoding: $0, as: UTF8.self) } })
    pushTypes.add(record.text(record.facts.pushTypeText))
    let injections = record.wireDetails?.injections ?? []
    if injections.isEmpty { rules.add(nil) }
    for (index, injection) in injections.enumerated()
    where !injections[..<index].contains(where: { $0.rule == injection.rule }) {
      rules.add(injection.rule)
    }
  }

  /// Adds the time since the earlier attempts of a push. Unknown if these were not added.
  private mutating func addAttempt(_ record: borrowing Record) {
    let isAccepted = record.outcome == .accepted
    if isAccepted, record.attempt == 1 { return }
    // Imported times may be any.
    let (key, arrival) = (record.pushKey, record.arrivedAt)
    let earlier = record.attempt > 1 ? unaccepted[key] : nil
    if let earlier { retryDelays.add(arrival &- earlier.newest) }
    if isAccepted {
      if let earlier {
        timesToAcceptance.add(arrival &- earlier.first &+ (record.sentResponse.latencyNanoseconds ?? 0))
        unaccepted[key] = nil
      }
    } else if earlier != nil || record.attempt == 1 && unaccepted.count < Self.maxUnaccepted {
      unaccepted[key] = (earlier?.first ?? arrival, arrival)
    }
  }

  // MARK: - JSON

  /// Writes the counts as members of an object.
  ///
  /// - Parameter snapshot: The inbox that the records come from.
  package func write(to writer: inout JSONWriter, of snapshot: InboxSnapshot, after seq: Int) {
    writer.member("matched", matched)
    writer.member("total", snapshot.count)
    writer.member("evicted", snapshot.evicted)
    writer.member("complete", snapshot.isComplete(after: seq))
    writer.member("accepted", accepted)
    writer.member("retries", retries)
    writer.member("device_tokens", deviceTokens.count)
    writer.member("connections", connections.count)
    writer.member("payload_bytes", payloadBytes)
    writer.objectMember("latency") { latencies.write(to: &$0, count: "answered") }
    writer.objectMember("time_to_acceptance") { timesToAcceptance.write(to: &$0, count: "pushes") }
    writer.objectMember("retry_delay") { writer in
      retryDelays.write(to: &writer, count: "retries")
      retryDelays.writeBuckets(to: &writer)
    }
    writer.objectMember("outcome", outcomes.write)
    writer.objectMember("status", statuses.write)
    writer.objectMember("reason", reasons.write)
    writer.objectMember("topic", topics.write)
    writer.objectMember("push_type", pushTypes.write)
    writer.objectMember("rule", rules.write)
    if let timeline { writer.objectMember("timeline", timeline.write) }
  }
}

/// Latencies, of which percentiles are exact to 0.05 %.
private struct Latencies: Sendable {
  /// The number of latencies for each latency in nanoseconds, rounded down to twelve binary digits: some thousands.
  private var counts: [Int64: Int] = [:]
  private var count = 0
  private var maximum: Int64 = 0

  mutating func add(_ nanoseconds: Int64) {
    // A latency that was imported may be negative.
    let nanoseconds = max(0, nanoseconds)
    let shift = max(0, Int64.bitWidth - nanoseconds.leadingZeroBitCount - 12)
    counts[(nanoseconds >> shift) << shift, default: 0] += 1
    count += 1
    maximum = max(maximum, nanoseconds)
  }

  /// The milliseconds at which the parts of a chart begin.
  private static let bounds: [Int64] = [
    0, 10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000,
  ]

  /// Writes the number of latencies in each part of a chart.
  func writeBuckets(to writer: inout JSONWriter) {
    var buckets = [Int](repeating: 0, count: Self.bounds.count)
    for (latency, count) in counts {
      buckets[Self.bounds.partitioningIndex { $0 * 1_000_000 > latency } - 1] += count
    }
    writer.arrayMember("buckets") { writer in
      for (bound, count) in zip(Self.bounds, buckets) {
        writer.object { writer in
          writer.member("from_ms", bound)
          writer.member("count", count)
        }
      }
    }
  }

  /// - Parameter name: The name of the member with the number of latencies.
  func write(to writer: inout JSONWriter, count name: String) {
    let sorted = counts.sorted { $0.key < $1.key }
    /// Returns the smallest latency that at least `share` percent of the latencies do not exceed.
    func percentile(_ share: Int) -> Double? {
      var rest = max(1, (count * share + 99) / 100)
      let found = sorted.first { latency in
        rest -= latency.value
        return rest <= 0
      }
      return found.map { Double($0.key) / 1e6 }
    }
    writer.member(name, count)
    writer.member("median_ms", percentile(50))
    writer.member("p90_ms", percentile(90))
    writer.member("p99_ms", percentile(99))
    writer.member("max_ms", count == 0 ? nil : Double(maximum) / 1e6)
  }
}

/// The number of distinct values: exact up to a million of them, and then estimated from a sample of their hashes, with
/// an error of some tenths of a percent.
struct DistinctCount: Sendable {
  private let limit: Int
  private var sample: Set<Int> = []
  /// Only hashes in which these bits are zero are in the sample.
  private var mask = 0

  init(limit: Int = 1_000_000) { self.limit = limit }

  mutating func insert(hash: Int) {
    guard hash & mask == 0 else { return }
    sample.insert(hash)
    while sample.count > limit {
      mask = mask << 1 | 1
      sample = sample.filter { [mask] in $0 & mask == 0 }
    }
  }

  var count: Int { sample.count * (mask + 1) }
}

/// The number of records for each value of one field.
private struct ValueCounts: Sendable {
  /// The maximum number of distinct values that are counted.
  private static let limit = 1000
  /// The number of values that are written, the most common first.
  private static let shown = 50

  private var counts: [String: Int] = [:]
  private var none = 0
  private var other = 0

  /// Counts a record.
  ///
  /// - Parameter value: The record's value; nil for a record without one.
  mutating func add(_ value: String?) {
    guard let value else {
      none += 1
      return
    }
    if let index = counts.index(forKey: value) {
      counts.values[index] += 1
    } else if counts.count < Self.limit {
      counts[value] = 1
    } else {
      other += 1
    }
  }

  func write(to writer: inout JSONWriter) {
    let common = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    writer.objectMember("counts") { writer in
      for (value, count) in common.prefix(Self.shown) { writer.member(value, count) }
    }
    writer.member("none", none)
    writer.member("other", common.dropFirst(Self.shown).reduce(other) { $0 + $1.value })
  }
}

extension Record {
  /// A hash of the device token, compared without case; nil if the path has none.
  fileprivate var hashOfDeviceToken: Int? {
    withHeader(facts.deviceToken) { bytes in
      guard let bytes else { return nil }
      var hasher = Hasher()
      // Setting this bit maps letters to lower case and does not change digits.
      for byte in bytes { hasher.combine(byte | 0x20) }
      return hasher.finalize()
    }
  }
}
