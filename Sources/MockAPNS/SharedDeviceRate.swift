import APNSRules
import Inbox
import NIOConcurrencyHelpers

/// The rate limiter per device token for the setting `device_rate`, shared by all connections. Not used by default,
/// because the setting is off.
final class SharedDeviceRate: Sendable {
  let rate: DeviceRate
  private let buckets: NIOLockedValueBox<DeviceRateBuckets>

  init(_ rate: DeviceRate) {
    self.rate = rate
    buckets = NIOLockedValueBox(DeviceRateBuckets(rate: rate))
  }

  /// Counts a push to this device token and returns whether it is within the rate.
  func admit(_ deviceToken: UnsafeRawBufferPointer) -> Bool {
    let now = MachineTime.nanoseconds
    return buckets.withLockedValue { $0.admit(deviceToken, now: now) }
  }
}
