package import APNSMockNotation

/// Token buckets by key.
///
/// Each bucket is stored as one number, the time at which it will be full again (generic cell rate algorithm). Times
/// are nanoseconds of the monotonic clock. Buckets not used recently are discarded, as if they were full.
@usableFromInline
package struct TokenBuckets: Sendable {
  @usableFromInline var fullAt: GenerationalCache<Int, Int64>

  /// Creates full buckets.
  ///
  /// - Parameter limit: The maximum number of buckets in each generation of the cache.
  @inlinable
  package init(limit: Int) { fullAt = GenerationalCache(limit: limit) }

  /// The number of stored buckets.
  @inlinable package var count: Int { fullAt.count }

  /// Removes a token from a bucket.
  ///
  /// - Parameters:
  ///   - key: The key of the bucket.
  ///   - interval: The time in which one token is added.
  ///   - tolerance: The time in which an empty bucket gets all tokens but one.
  /// - Returns: false if the bucket was empty.
  @inlinable
  package mutating func takeToken(_ key: Int, interval: Int64, tolerance: Int64, now: Int64) -> Bool {
    let full = max(fullAt[key] ?? now, now)
    guard full - now <= tolerance else { return false }
    fullAt[key] = full.addingClamped(interval)
    return true
  }
}

/// Limits the rate of pushes per device token, the check `device_rate` of Protocol.md, section 8.2. Shared by all connections, so
/// its owner protects it with a lock. Times are nanoseconds of the monotonic clock.
package struct DeviceRateLimiter: Sendable {
  /// The maximum rate.
  package let rate: DeviceRate
  private let interval: Int64
  private let tolerance: Int64
  private var buckets: TokenBuckets

  /// Creates a limiter that has counted no pushes.
  ///
  /// - Parameters:
  ///   - rate: The maximum rate; a count below 1 is treated as 1.
  ///   - capacity: The maximum number of device tokens that are stored. Beyond it, those used least recently are
  ///     discarded, as if they had waited.
  package init(rate: DeviceRate, capacity: Int = 65_536) {
    self.rate = rate
    let count = Int64(max(rate.count, 1))
    interval = rate.per.nanoseconds / count
    tolerance = interval * (count - 1)
    buckets = TokenBuckets(limit: max(capacity / 2, 1))
  }

  /// Counts a push to `deviceToken`, whose digits may have either case.
  ///
  /// - Returns: false if the push exceeds the rate; it is then not counted.
  package mutating func admit(_ deviceToken: UnsafeRawBufferPointer, now: MonotonicTime) -> Bool {
    var hasher = Hasher()
    for byte in deviceToken { hasher.combine(byte | 0x20) }
    return buckets.takeToken(hasher.finalize(), interval: interval, tolerance: tolerance, now: now)
  }
}
