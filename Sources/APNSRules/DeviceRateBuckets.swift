/// Counts pushes per device token against a rate, for row 19 of APNS.md section 8.2. Shared by all connections, so its
/// owner keeps it behind a lock; times are the machine's monotonic nanoseconds.
///
/// Each device token costs one number: the time at which its bucket will be full again (the generic cell rate
/// algorithm). Memory is bounded: after `capacity` tokens the ones not used lately are forgotten, as if they had
/// waited.
public struct DeviceRateBuckets: Sendable {
  /// The rate it counts against.
  public let rate: DeviceRate
  private let interval: Int64
  private let tolerance: Int64
  private let generation: Int
  private var recent: [Int: Int64] = [:]
  private var older: [Int: Int64] = [:]

  /// Empty buckets.
  ///
  /// - Parameters:
  ///   - rate: how many pushes within which time; a count below 1 is taken for 1.
  ///   - capacity: how many device tokens are remembered at most.
  public init(rate: DeviceRate, capacity: Int = 65_536) {
    self.rate = rate
    let count = Int64(max(rate.count, 1))
    interval = rate.per.nanoseconds / count
    tolerance = interval * (count - 1)
    generation = max(capacity / 2, 1)
  }

  /// Takes one push to `deviceToken`, its bytes in any case.
  ///
  /// - Returns: `false` if it is over the rate; such a push does not count.
  public mutating func admit(_ deviceToken: UnsafeRawBufferPointer, now: Int64) -> Bool {
    var hasher = Hasher()
    for byte in deviceToken { hasher.combine(byte | 0x20) }
    let key = hasher.finalize()
    let full = max(recent[key] ?? older[key] ?? now, now)
    guard full - now <= tolerance else { return false }
    if recent.count >= generation, recent[key] == nil {
      older = recent
      recent = [:]
    }
    let (next, isNever) = full.addingReportingOverflow(interval)
    recent[key] = isNever ? .max : next
    return true
  }
}
