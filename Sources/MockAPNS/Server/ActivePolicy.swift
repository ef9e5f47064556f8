package import APNSMockRules
package import APNSMockFaults
import APNSMockInbox
import NIOConcurrencyHelpers

/// The active APNs rules, with their settings, and the active faults. Replaced as a whole when the profile, one of
/// its parameters or a rule changes.
package struct ActivePolicy: Sendable {
  /// The APNs rules that requests are validated by.
  package let rulebooks: Rulebooks
  /// The active fault profile and rules.
  package let plan: FaultPlan
  /// The rate limit per device token; nil for none.
  let deviceRate: SharedDeviceRateLimiter?

  /// The settings of the APNs rules.
  var settings: APNSSettings { rulebooks.sandbox.settings }
}

/// The APNs rules of both environments. A reference, because each connection keeps one.
package final class Rulebooks: Sendable {
  fileprivate let sandbox: Rulebook
  private let production: Rulebook

  init(configuration: MockServer.Configuration, settings: APNSSettings) {
    func rules(of environment: PushEnvironment) -> Rulebook {
      var rulebook = Rulebook(
        mode: configuration.rules, environment: environment, settings: settings,
        requiresRegisteredDevices: configuration.requiresRegisteredDevices,
        requiresKnownTopics: configuration.requiresKnownTopics)
      rulebook.acceptsUnknownKeys = configuration.upstream != nil
      return rulebook
    }
    sandbox = rules(of: .sandbox)
    production = rules(of: .production)
  }

  /// The rules of one environment.
  package subscript(environment: PushEnvironment) -> Rulebook {
    switch environment {
    case .sandbox: sandbox
    case .production: production
    }
  }
}

/// The rate limiter per device token for the setting `device_rate`, shared by all connections. Not used by default,
/// because the setting is off.
final class SharedDeviceRateLimiter: Sendable {
  let rate: DeviceRate
  private let buckets: NIOLockedValueBox<DeviceRateLimiter>

  init(_ rate: DeviceRate) {
    self.rate = rate
    buckets = NIOLockedValueBox(DeviceRateLimiter(rate: rate))
  }

  /// Counts a push to this device token and returns whether it is within the rate.
  func admit(_ deviceToken: UnsafeRawBufferPointer) -> Bool {
    let now = MachineTime.nanoseconds
    return buckets.withLockedValue { $0.admit(deviceToken, now: now) }
  }
}
