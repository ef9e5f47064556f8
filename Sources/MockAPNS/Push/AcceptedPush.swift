import APNSMockRules
import APNSMockDevices
import APNSMockHTTPMessage
internal import APNSMockNotation

extension AcceptedPush {
  /// Creates a description of an accepted push to a registered device.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields that the facts refer to.
  ///   - body: The payload.
  ///   - now: When it was received, in milliseconds since 1970 by the server's clock.
  init(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer, to device: DeviceRegistry.Match,
    at now: ServerTime
  ) {
    let collapseKey = facts.collapseID.map { id in
      PushKey(apnsID: headers[id]).number
    }
    let activity = facts.pushType == .liveactivity ? ActivityContent(payload: body, at: now) : nil
    self.init(
      target: device.reference, expiration: facts.expiration, priority: facts.priority, pushType: facts.pushType,
      collapseKey: collapseKey, activity: activity)
  }
}
