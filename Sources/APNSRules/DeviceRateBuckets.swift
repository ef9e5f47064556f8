/// Limits the rate of pushes per device token, for row 19 of Protocol.md, section 8.2. Shared by all connections,
/// so its owner protects it with a lock. Times are nanoseconds of the monotonic clock.
///
/// Each device token needs one number: the time at which its bucket will be full again (generic cell rate
/// algorithm). Memory is bounded: beyond `capacity` tokens the least recently used ones are discarded, as if they
/// had waited.
public struct DeviceRateBuckets: Sendable {
  /// The maximum rate.
  public let rate: DeviceRate
  private let interval: Int64
  private let tolerance: Int64
  private let generation: Int
  private var recent: [Int: Int64] = [:]
  private var older: [Int: Int64] = [:]

  /// Creates empty buckets.
  ///
  /// - Parameters:
  ///   - rate: the maximum rate; a count below 1 is treated as 1.
  ///   - capacity: the maximum number of device tokens that are stored.
  public init(rate: DeviceRate, capacity: Int = 65_536) {
    self.rate = rate
    let count = Int64(max(rate.count, 1))
    interval = rate.per.nanoseconds / count
    tolerance = interval * (count - 1)
    generation = max(capacity / 2, 1)
  }

  /// Counts a push to `deviceToken`, whose digits may have either case.
  ///
  /// - Returns: false if the push exceeds the rate; it is then not counted.
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
