import APNSRules
import Inbox
import NIOConcurrencyHelpers

/// The rate per device token that all connections count against, for the setting `device_rate`; off by default, and then
/// no push comes here.
final class SharedDeviceRate: Sendable {
  let rate: DeviceRate
  private let buckets: NIOLockedValueBox<DeviceRateBuckets>

  init(_ rate: DeviceRate) {
    self.rate = rate
    buckets = NIOLockedValueBox(DeviceRateBuckets(rate: rate))
  }

  /// Takes one push to this device token, unless it is over the rate.
  func admit(_ deviceToken: UnsafeRawBufferPointer) -> Bool {
    let now = MachineTime.nanoseconds
    return buckets.withLockedValue { $0.admit(deviceToken, now: now) }
  }
}
