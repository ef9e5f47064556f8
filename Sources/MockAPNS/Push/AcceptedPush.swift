import APNSRules
import Devices
import FaultModel
import HTTPMessage
import Inbox
internal import Notation

extension AcceptedPush {
  /// Creates a description of an accepted push to a registered device.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields that the facts refer to.
  ///   - body: The payload.
  init(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer, to device: DeviceRegistry.Match,
    _ settings: APNSSettings
  ) {
    let collapseKey = facts.collapseID.map { id in
      PushKey(apnsID: UnsafeRawBufferPointer(rebasing: headers[id.indices])).number
    }
    let startsActivity =
      facts.pushType == .liveactivity && (settings.pushToStartBudget ?? settings.liveActivityBudget) != nil
      && Self.event?.value(in: body) == .text("start")
    self.init(
      target: device.reference, expiration: facts.expiration, priority: facts.priority, pushType: facts.pushType,
      collapseKey: collapseKey, startsActivity: startsActivity)
  }

  private static let event = JSONPointer("/aps/event")
}
