import APNSMockRules
import Testing

/// The rate limit per device token (Protocol.md, section 8.2), on a clock that the tests set.
struct DeviceRateBucketsTests {
  private let second: Int64 = 1_000_000_000

  private func admit(_ buckets: inout DeviceRateLimiter, _ token: String, at time: Int64) -> Bool {
    token.withBytes { buckets.admit($0, now: time) }
  }

  @Test func burstThenRate() {
    var buckets = DeviceRateLimiter(rate: DeviceRate(count: 3, per: .seconds(3)))
    #expect((0..<5).map { _ in admit(&buckets, "ab", at: 0) } == [true, true, true, false, false])
    #expect(!admit(&buckets, "ab", at: second - 1))
    #expect(admit(&buckets, "ab", at: second))
    #expect(!admit(&buckets, "ab", at: second))
    // Rejected pushes do not count, and after a pause the whole burst is available again.
    #expect(
      (0..<4).map { _ in admit(&buckets, "ab", at: 10 * second) } == [true, true, true, false])
  }

  @Test func tokensAreLimitedSeparately() {
    var buckets = DeviceRateLimiter(rate: DeviceRate(count: 1, per: .seconds(60)))
    #expect(admit(&buckets, "ab", at: 0))
    #expect(admit(&buckets, "cd", at: 0))
    #expect(!admit(&buckets, "AB", at: 0))
  }

  /// Many tokens replace old entries, but never recent ones.
  @Test func tableIsBounded() {
    var buckets = DeviceRateLimiter(rate: DeviceRate(count: 1, per: .seconds(60)), capacity: 100)
    #expect(admit(&buckets, "first", at: 0))
    for number in 0..<49 { #expect(admit(&buckets, "token \(number)", at: 0)) }
    #expect(!admit(&buckets, "first", at: 0))
    for number in 0..<100 { _ = admit(&buckets, "other \(number)", at: 0) }
    #expect(!admit(&buckets, "other 99", at: 0))
    #expect(admit(&buckets, "first", at: 0))
  }

  @Test func extremeRates() {
    var none = DeviceRateLimiter(rate: DeviceRate(count: 0, per: .seconds(1)))
    #expect(admit(&none, "ab", at: 0))
    #expect(!admit(&none, "ab", at: 0))
    var endless = DeviceRateLimiter(rate: DeviceRate(count: 1, per: .seconds(Int64.max)))
    #expect(admit(&endless, "ab", at: second))
    #expect(!admit(&endless, "ab", at: 1000 * second))
    var free = DeviceRateLimiter(rate: DeviceRate(count: 1, per: .zero))
    #expect((0..<3).allSatisfy { _ in admit(&free, "ab", at: 0) })
  }
}
