internal import HTTPMessage

/// Row 18 of APNS.md section 8.2: what is known of the device, after the topic, because a device token belongs to one.
extension Rulebook {
  func checkDevice(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer?, devices: DeviceTable,
    now: Int64
  ) throws(Rejection) {
    guard let range = facts.deviceToken, let device = devices.device(packed.part(range.indices)) else { return }
    let shown = "device token \(DeviceToken.abbreviated(device.token))"
    if let other = device.environment, other != environment {
      throw Rejection(
        .deviceEnvironment, .badDeviceToken,
        "\(shown) is of \(other.rawValue), this is \(environment.rawValue): push it through the other environment")
    }
    if let expected = device.topic, let topic, !topic.equals(text: expected) {
      throw Rejection(
        .deviceTopic, .deviceTokenNotForTopic,
        "\(shown) belongs to \(Explanation.quoted(expected)), apns-topic is \(Explanation.quoted(topic))")
    }
    switch device.state {
    case .online: return
    case .expired:
      throw Rejection(
        .deviceExpired, .expiredToken,
        "\(shown) expired at \(Explanation.moment(device.since)): forget it, unless the app registered it again since",
        timestamp: device.since)
    case .unregistered:
      let (start, isNever) = device.since.addingReportingOverflow(times.unregisteredAfter)
      guard !isNever, now >= start else { return }
      throw Rejection(
        .deviceUnregistered, .unregistered,
        "\(shown) is unregistered since \(Explanation.moment(device.since)): forget it, unless the app registered it "
          + "again since", timestamp: device.since)
    }
  }
}
