internal import HTTPMessage

/// Row 18 of Protocol.md, section 8.2: the registered device. Checked after the topic, because a device token
/// belongs to one.
extension Rulebook {
  func checkDevice(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer?,
    certificate: ProviderCertificate?, devices: DeviceTable, now: Int64
  ) throws(Rejection) {
    guard let range = facts.deviceToken, let entry = devices.entry(packed.part(range.indices)) else { return }
    let device = entry.device
    if let other = device.environment, other != environment {
      throw Rejection(.deviceEnvironment, .badDeviceToken) { [environment, shown = device.shown] _, _ in
        "\(shown) is of \(other.rawValue), this is \(environment.rawValue): push it through the other environment"
      }
    }
    if let expected = device.topic, let topic, !topic.equals(text: expected) {
      throw Rejection(.deviceTopic, .deviceTokenNotForTopic) { [shown = device.shown] facts, packed in
        "\(shown) belongs to \(Explanation.quoted(expected)), "
          + "apns-topic is \(Explanation.topic(facts.topic, certificate, packed))"
      }
    }
    guard let farewell = entry.farewell else { return }
    if device.state == .unregistered {
      let (start, isNever) = device.since.addingReportingOverflow(times.unregisteredAfter)
      guard !isNever, now >= start else { return }
    }
    throw farewell
  }
}

extension Device {
  /// The rejection of pushes to this device; nil while it is online.
  var farewell: Rejection? {
    switch state {
    case .online: nil
    case .expired:
      Rejection(.deviceExpired, .expiredToken, timestamp: since) { [shown, since] _, _ in
        "\(shown) expired at \(Explanation.moment(since)): forget it, unless the app registered it again since"
      }
    case .unregistered:
      Rejection(.deviceUnregistered, .unregistered, timestamp: since) { [shown, since] _, _ in
        "\(shown) is unregistered since \(Explanation.moment(since)): forget it, unless the app registered it again "
          + "since"
      }
    }
  }

  /// The device in explanations.
  fileprivate var shown: String { "device token \(DeviceToken.abbreviated(token))" }
}
