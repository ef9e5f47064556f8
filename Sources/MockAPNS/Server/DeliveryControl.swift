internal import Notation
import APNSRules
package import Devices
package import Inbox
import NIOConcurrencyHelpers

/// Delivers accepted pushes to registered devices: keeps the records, the findings and the listeners up to date with
/// the registry.
package final class DeliveryControl: Sendable {
  /// A notification that a device received, with its record if the inbox still holds it.
  package struct Notification: Sendable {
    package let received: ReceivedNotification
    package let record: Record?
  }

  /// The number of notifications that are kept for a slow listener; older ones are dropped.
  package static let listenerBuffer = 1_000

  private let devices: DeviceRegistry
  private let inbox: Inbox
  private let clock: ServerClock
  private let listeners = NIOLockedValueBox(Listeners())

  private struct Listeners {
    var next = 0
    var byDevice: [String: [Int: AsyncStream<Notification>.Continuation]] = [:]
  }

  init(devices: DeviceRegistry, inbox: Inbox, clock: ServerClock) {
    self.devices = devices
    self.inbox = inbox
    self.clock = clock
  }

  /// Decides the deliveries of accepted pushes, appends the records of the batch that they belong to, and delivers
  /// them.
  ///
  /// - Parameters:
  ///   - pushes: The accepted pushes, with the indices of their records as positions. Empty afterwards.
  ///   - records: The records. Empty afterwards.
  /// - Returns: The `seq` of the first record.
  func record(
    _ pushes: inout [AcceptedPush], in records: inout [Record], now: ServerTime, settings: APNSSettings
  ) -> Int {
    var first = 0
    let events = devices.deliver(&pushes, now: now, settings: settings) { pushes in
      // Here, so that the order of these times is that of the records.
      let time = MachineTime.nanoseconds
      for index in records.indices { records[index].setLatency(respondedAt: time) }
      for index in pushes.indices {
        let position = pushes[index].position
        records[position].delivery = pushes[index].state
        pushes[index].acceptedAt = records[position].acceptedAt
      }
      first = inbox.append(&records)
      return first
    }
    pushes.removeAll(keepingCapacity: true)
    apply(events)
    return first
  }

  /// Delivers a push whose record is already in the inbox, and completes the record.
  ///
  /// - Parameter arrivedAt: When the push arrived, in monotonic nanoseconds of machine time.
  func complete(
    _ push: AcceptedPush, arrivedAt: MonotonicTime, seq: Int, with result: Record.Result, now: ServerTime,
    settings: APNSSettings
  ) {
    var pushes = [push]
    apply(
      devices.deliver(&pushes, now: now, settings: settings) { pushes in
        // Here, so that the order of these times is that of the deliveries.
        let time = MachineTime.nanoseconds
        var result = result
        if result.sentResponse.latencyNanoseconds != nil { result.sentResponse.latencyNanoseconds = time - arrivedAt }
        result.delivery = pushes.first?.state
        let record = inbox.finish(seq, with: result)
        for index in pushes.indices { pushes[index].acceptedAt = record?.acceptedAt ?? time }
        return seq - push.position
      })
  }

  /// Discards stored pushes that have expired by the server's clock, and delivers what devices have acknowledged by
  /// now.
  package func advance() {
    guard devices.needsAdvancing else { return }
    apply(devices.advance(to: clock.now))
  }

  /// Updates records, findings and listeners.
  ///
  /// - Parameter record: A record that events may be about, so that it need not be read.
  package func apply(_ events: [DeliveryEvent], of record: Record? = nil) {
    for event in events {
      switch event {
      case .changed(let seq, let state): _ = inbox.setDelivery(seq, state)
      case .overwrittenInStorage(let seq, let other):
        inbox.addDeliveryFinding(.overwrittenInStorage, seq: seq, by: other)
      case .overwrittenBeforeAcknowledgement(let seq, let other):
        inbox.addDeliveryFinding(.overwrittenBeforeAck, seq: seq, by: other)
      case .overBudget(let seq): inbox.addDeliveryFinding(.backgroundBudget, seq: seq)
      case .received(let id, let received):
        let continuations = listeners.withLockedValue { $0.byDevice[id]?.values.map { $0 } ?? [] }
        if continuations.isEmpty { continue }
        let notification = Notification(
          received: received, record: record?.seq == received.seq ? record : inbox.record(seq: received.seq))
        for continuation in continuations { continuation.yield(notification) }
      }
    }
  }

  /// Returns the notifications that a device receives from now on.
  ///
  /// - Throws: `DeviceError` if there is no such device.
  package func notifications(of id: String) throws(DeviceError) -> AsyncStream<Notification> {
    try devices.beginWatching(id)
    let (stream, continuation) = AsyncStream.makeStream(
      of: Notification.self, bufferingPolicy: .bufferingNewest(Self.listenerBuffer))
    let number = listeners.withLockedValue { listeners in
      listeners.next += 1
      listeners.byDevice[id, default: [:]][listeners.next] = continuation
      return listeners.next
    }
    continuation.onTermination = { [listeners, devices] _ in
      listeners.withLockedValue { listeners in
        listeners.byDevice[id]?[number] = nil
        if listeners.byDevice[id]?.isEmpty == true { listeners.byDevice[id] = nil }
      }
      devices.endWatching(id)
    }
    return stream
  }

  /// Ends all streams of notifications, because the server stops.
  package func endNotifications() {
    for continuations in listeners.withLockedValue({ $0.byDevice.values.map { $0 } }) {
      for continuation in continuations.values { continuation.finish() }
    }
  }
}
