import APNSMockRules
import APNSMockDevices
import APNSMockInbox
internal import NIOConcurrencyHelpers

/// Compares device tokens and topics of recorded pushes with those that the server knows. Called when findings are read, from
/// any thread.
final class NearTargets: Sendable {
  private let devices: DeviceRegistry
  private let keys: PublishedValue<TrustedKeySet>
  private let apps: PublishedValue<AppTable>
  private let topics = NIOLockedValueBox(Topics())

  /// The maximum number of topics whose result is kept.
  private static let cacheLimit = 256

  /// What changes with the known topics. `keys` is one more than the version, so that the initial value is no version.
  private struct Version: Equatable {
    var keys: UInt64 = 0
    var apps: UInt64 = 0
    var devices = 0
  }

  /// The known topics as of a version, and the results for unknown ones.
  private struct Topics {
    var version = Version()
    var known: [String] = []
    var meant: [String: String?] = [:]
  }

  init(devices: DeviceRegistry, keys: PublishedValue<TrustedKeySet>, apps: PublishedValue<AppTable>) {
    self.devices = devices
    self.keys = keys
    self.apps = apps
  }

  /// The comparisons for an inbox.
  var known: KnownTargets {
    KnownTargets(deviceTokenProblem: deviceTokenProblem, topicProblem: topicProblem)
  }

  @Sendable private func deviceTokenProblem(_ received: UnsafeRawBufferPointer) -> String? {
    devices.nearToken(received).map { near in
      "the device token is not registered, and is probably \(DeviceToken.abbreviated(near.token)), which is: the token "
        + near.distortion
    }
  }

  @Sendable private func topicProblem(_ received: UnsafeRawBufferPointer) -> String? {
    guard let meant = meantTopic(received) else { return nil }
    return
      "the topic is unknown to the server, and differs by a letter or by case from \(Explanation.quoted(meant)), which it "
      + "knows"
  }

  private func meantTopic(_ received: UnsafeRawBufferPointer) -> String? {
    topics.withLockedValue { topics in
      let version = Version(
        keys: keys.version &+ 1, apps: apps.version, devices: devices.isEmpty ? -1 : devices.version)
      if topics.version != version { topics = Topics(version: version, known: knownTopics) }
      if topics.known.isEmpty { return nil }
      let topic = String(decoding: received, as: UTF8.self)
      if let cached = topics.meant[topic] { return cached }
      let meant = NearTopic.meant(by: topic, among: topics.known)
      if topics.meant.count >= Self.cacheLimit { topics.meant.removeAll() }
      topics.meant[topic] = .some(meant)
      return meant
    }
  }

  private var knownTopics: [String] {
    let limit = NearTopic.limit
    let names = Set(
      keys.load().knownTopics(of: nil, limit: limit) + apps.load().apps.prefix(limit).map(\.bundleID)
        + devices.names(limit: limit))
    return names.sorted()
  }
}
