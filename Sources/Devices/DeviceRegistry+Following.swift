package import APNSRules
internal import NIOConcurrencyHelpers
package import Notation

/// What other servers that share the inbox have delivered: their devices are the same, and so is what these show.
///
/// The server that has accepted a push updates its record. The others repeat the effects on the device, and find the same
/// about the delivery, such as that a stored push was replaced.
extension DeviceRegistry {
  /// Delivers a push that another server has accepted.
  ///
  /// - Parameters:
  ///   - deliveryState: The state of the delivery in the record.
  ///   - now: When the push was accepted, in milliseconds since 1970 by the servers' clock.
  package func follow(
    _ push: AcceptedPush, in deliveryState: DeliveryState, seq: Int, now: ServerTime, settings: APNSSettings
  ) -> [DeliveryEvent] {
    state.withLockedValue { state in
      var events: [DeliveryEvent] = []
      var push = push
      push.state = deliveryState
      state.deliver(push, seq: seq, isOwn: false, now: now, settings, &events)
      return events
    }
  }

  /// Ends the waiting of a push that another server has delivered or discarded, unless this server has done the same.
  ///
  /// - Parameters:
  ///   - deliveryState: The state of the delivery in the changed record.
  ///   - target: The push's device token and app.
  package func follow(
    changeOf seq: Int, to deliveryState: DeliveryState, of target: TokenReference, now: ServerTime
  ) -> [DeliveryEvent] {
    guard deliveryState.isFinal else { return [] }
    return state.withLockedValue { state in
      var events: [DeliveryEvent] = []
      guard state.tables.isRegistered(target) else { return [] }
      let device = state.tables.installations[Int(target.installation)].device
      let key = Deliveries.storageKey(target.installation, kind: state.tables.tokens[Int(target.tokenIndex)].kind)
      if let stored = state.deliveries.storedPushes[key], stored.push.seq == seq {
        _ = state.deliveries.removeStored(key)
        state.change(stored.push, to: deliveryState, now: now, &events)
        if deliveryState.isDelivered { state.receive(stored.push, deliveryState, now: now, &events) }
      } else if state.deliveries.unacknowledged[device]?.push.seq == seq {
        state.acknowledge(on: device, &events)
      }
      return events
    }
  }
}
