internal import HTTPMessage

/// Row 18 of APNS.md section 8.2: what is known of the device, after the topic, because a device token belongs to one.
extension Rulebook {
  func checkDevice(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer?,
    certificate: ProviderCertificate?, devices: DeviceTable, now: Int64
  ) throws(Rejection) {
    guard let range = facts.deviceToken, let device = devices.device(packed.part(range.indices)) else { return }
    if let other = device.environment, other != environment {
      throw Rejection(.deviceEnvironment, .badDeviceToken) { [environment] _ in
        "\(device.shown) is of \(other.rawValue), this is \(environment.rawValue): push it through the other environment"
      }
    }
    if let expected = device.topic, let topic, !topic.equals(text: expected) {
      throw Rejection(.deviceTopic, .deviceTokenNotForTopic) { [header = facts.topic] packed in
        "\(device.shown) belongs to \(Explanation.quoted(expected)), "
          + "apns-topic is \(Explanation.topic(header, certificate, packed))"
      }
    }
    switch device.state {
    case .online: return
    case .expired:
      throw Rejection(.deviceExpired, .expiredToken, timestamp: device.since) { _ in
        "\(device.shown) expired at \(Explanation.moment(device.since)): "
          + "forget it, unless the app registered it again since"
      }
    case .unregistered:
      let (start, isNever) = device.since.addingReportingOverflow(times.unregisteredAfter)
      guard !isNever, now >= start else { return }
      throw Rejection(.deviceUnregistered, .unregistered, timestamp: device.since) { _ in
        "\(device.shown) is unregistered since \(Explanation.moment(device.since)): forget it, unless the app "
          + "registered it again since"
      }
    }
  }
}

extension Device {
  /// How an explanation names it.
  fileprivate var shown: String { "device token \(DeviceToken.abbreviated(token))" }
}
