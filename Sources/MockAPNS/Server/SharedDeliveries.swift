import APNSRules
import Devices
import FaultModel
import HTTPMessage
import Inbox
internal import NIOConcurrencyHelpers
internal import Notation

/// The deliveries of other servers that share the inbox.
extension ServerState {
  /// Starts to repeat what other servers deliver, so that devices are the same on all of them.
  func followDeliveries() {
    let pending = NIOLockedValueBox<Set<Int>>([])
    inbox.writer?.receiveRecords { [weak self] appended, changed in
      pending.withLockedValue { self?.follow(appended, changed: changed, pending: &$0) }
    }
  }

  /// - Parameter pending: The `seq` of delayed pushes, which have no result yet.
  private func follow(_ appended: [Record], changed: [Record], pending: inout Set<Int>) {
    for record in appended where !record.isImported {
      if record.outcome == .pending {
        // Those that were removed before their end are forgotten some time.
        if pending.count > 100_000 { pending = pending.filter { $0 > record.seq - 1_000_000 } }
        pending.insert(record.seq)
      } else {
        follow(record)
      }
    }
    for record in changed where record.outcome != .pending {
      if pending.remove(record.seq) != nil {
        follow(record)
      } else if let delivery = record.delivery, let device = device(of: record) {
        deliveryControl.apply(
          devices.follow(changeOf: record.seq, to: delivery, of: device.reference, now: clock.now), of: record)
      }
    }
  }

  /// Repeats the delivery of an accepted push or broadcast.
  private func follow(_ record: Record) {
    guard record.accepted, !devices.isEmpty else { return }
    let time = record.finishedAt ?? record.receivedAt
    if let delivery = record.delivery, let device = device(of: record) {
      // Not by a push that was delivered before the removal.
      if delivery == .discardedUnregistered, device.isRemovalUndetected {
        devices.recordRemovalDetected(device.reference, now: time)
      }
      let settings = activePolicy.load().settings
      let push = record.withContents { headers, body in
        AcceptedPush(
          record.facts, headers: headers, body: body, to: device, settings, acceptedAt: record.acceptedAt)
      }
      deliveryControl.apply(
        devices.follow(push, in: delivery, seq: record.seq, now: time, settings: settings), of: record)
    } else if record.kind == .broadcast, let broadcast = AcceptedBroadcast(record, in: channels) {
      deliveryControl.follow(Broadcast(broadcast, seq: record.seq, time: time), record: record)
    }
  }

  private func device(of record: Record) -> DeviceRegistry.Match? {
    guard let token = record.facts.deviceToken else { return nil }
    return record.withContents { headers, _ in
      devices.match(UnsafeRawBufferPointer(rebasing: headers[token.indices]), now: record.receivedAt)
    }
  }
}

extension AcceptedPush {
  /// Creates a description of an accepted push to a registered device.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields that the facts refer to.
  ///   - body: The payload.
  ///   - acceptedAt: When the push was accepted, if that is known already.
  init(
    _ facts: PushFacts, headers: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer, to device: DeviceRegistry.Match,
    _ settings: APNSSettings, acceptedAt: MonotonicTime = 0
  ) {
    let collapseKey = facts.collapseID.map { id in
      PushKey(apnsID: UnsafeRawBufferPointer(rebasing: headers[id.indices])).number
    }
    let startsActivity =
      facts.pushType == .liveactivity && (settings.pushToStartBudget ?? settings.liveActivityBudget) != nil
      && Self.event?.value(in: body) == .text("start")
    self.init(
      target: device.reference, expiration: facts.expiration, priority: facts.priority, pushType: facts.pushType,
      collapseKey: collapseKey, startsActivity: startsActivity, acceptedAt: acceptedAt)
  }

  private static let event = JSONPointer("/aps/event")
}
