internal import Dispatch
internal import Notation
import APNSRules
package import Devices
package import Inbox
import NIOConcurrencyHelpers
internal import PlatformLibc
internal import Synchronization

/// Delivers accepted pushes to registered devices: keeps the records, the findings and the listeners up to date with
/// the registry.
///
/// What concerns thousands of devices at once, expiries and broadcasts, runs on queues of its own and in slices, so that no
/// event loop waits for it longer than for one slice.
package final class DeliveryControl: Sendable {
  /// A notification that a device received, with its record if the inbox still holds it.
  package struct Notification: Sendable {
    package let received: ReceivedNotification
    package let record: Record?
  }

  /// The number of notifications that are kept for a slow listener; older ones are dropped.
  package static let listenerBuffer = 1_000

  /// The number of changed records after which the store is to write them.
  private static let storedChanges = 512
  /// The number of broadcasts that may wait for their delivery. The event loop of a further one waits until one is delivered.
  private static let broadcastLimit = 1024
  /// The microseconds between two slices. Without them, a thread that waits for the lock would wait for many slices, because
  /// the one that has released it takes it again before the other one runs.
  private static let pause: UInt32 = 50

  private let devices: DeviceRegistry
  private let inbox: Inbox
  private let clock: ServerClock
  private let listeners = NIOLockedValueBox(Listeners())
  /// Serial, so that a move of the clock that has nothing to do waits for the effects of earlier ones.
  private let advancing = DispatchQueue(label: "deliveries.advancing")
  private let isScheduled = Atomic<Bool>(false)
  private let isEnding = Atomic<Bool>(false)
  /// Serial, so that the devices receive broadcasts in their order.
  private let broadcasting = DispatchQueue(label: "deliveries.broadcasting")
  /// The number of broadcasts whose delivery has not ended.
  private let pendingBroadcasts = Atomic<Int>(0)
  /// Counts how many more may wait.
  private let freeBroadcasts = DispatchSemaphore(value: DeliveryControl.broadcastLimit)

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

  // MARK: - Expiries and acknowledgements

  /// Discards stored pushes that have expired by the server's clock, and delivers what devices have acknowledged by now.
  /// Returns when the records are changed.
  package func advance() async {
    guard !devices.isEmpty else { return }
    await withCheckedContinuation { continuation in
      advancing.async { [self] in
        advanceInSlices()
        continuation.resume()
      }
    }
  }

  /// Does the same as `advance()` on a thread that may wait.
  func advanceAndWait() {
    guard !devices.isEmpty else { return }
    advancing.sync { advanceInSlices() }
  }

  /// Begins the same as `advance()`, if there is something to do and it has not begun yet.
  func startAdvancing() {
    guard devices.needsAdvancing(to: clock.now), !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else {
      return
    }
    advancing.async { [self] in
      isScheduled.store(false, ordering: .releasing)
      advanceInSlices()
    }
  }

  private func advanceInSlices() {
    let now = clock.now
    var changes = 0
    while !isEnding.load(ordering: .acquiring) {
      let (events, isComplete) = devices.advance(to: now)
      apply(events)
      changes += events.count
      if changes >= Self.storedChanges {
        // Pushes whose answers wait for the store do so for one transaction with so many changes.
        inbox.writer?.flush()
        changes = 0
      }
      if isComplete { return }
      usleep(Self.pause)
    }
  }

  // MARK: - Broadcasts

  /// Delivers a broadcast to the subscribers of its channel, on this thread if they are few.
  func deliver(_ broadcast: Broadcast) {
    let count = devices.begin(broadcast)
    if count <= DeviceRegistry.sliceSize, pendingBroadcasts.load(ordering: .acquiring) == 0 {
      return devices.deliver(broadcast) { apply($0) }
    }
    freeBroadcasts.wait()
    pendingBroadcasts.add(1, ordering: .acquiringAndReleasing)
    broadcasting.async { [self] in
      deliverInSlices(broadcast)
      pendingBroadcasts.subtract(1, ordering: .releasing)
      freeBroadcasts.signal()
    }
  }

  private func deliverInSlices(_ broadcast: Broadcast) {
    devices.deliver(broadcast) { events in
      apply(events)
      usleep(Self.pause)
    }
  }

  /// Waits until devices have received all broadcasts that were accepted so far.
  package func awaitBroadcasts() async {
    guard pendingBroadcasts.load(ordering: .acquiring) > 0 else { return }
    await withCheckedContinuation { continuation in broadcasting.async { continuation.resume() } }
  }

  // MARK: - Effects

  /// Updates records, findings and listeners.
  package func apply(_ events: [DeliveryEvent]) {
    var changes: [(seq: Int, delivery: DeliveryState)] = []
    for event in events {
      if case .changed(let seq, let state) = event {
        changes.append((seq, state))
        continue
      }
      inbox.setDeliveries(changes)
      changes.removeAll()
      apply(event)
    }
    inbox.setDeliveries(changes)
  }

  private func apply(_ event: DeliveryEvent) {
    switch event {
    case .changed(let seq, let state): inbox.setDeliveries([(seq, state)])
    case .overwrittenInStorage(let seq, let other):
      inbox.addFinding(.overwrittenInStorage, seq: seq, by: other)
    case .overwrittenBeforeAcknowledgement(let seq, let other):
      inbox.addFinding(.overwrittenBeforeAck, seq: seq, by: other)
    case .overBudget(let seq): inbox.addFinding(.backgroundBudget, seq: seq)
    case .received(let id, let received):
      let continuations = listeners.withLockedValue { $0.byDevice[id]?.values.map { $0 } ?? [] }
      if continuations.isEmpty { return }
      let notification = Notification(received: received, record: inbox.record(seq: received.seq))
      for continuation in continuations { continuation.yield(notification) }
    }
  }

  // MARK: - Listeners

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

  /// Ends all streams of notifications and the change of expired deliveries, because the server stops.
  package func end() async {
    isEnding.store(true, ordering: .releasing)
    await advance()
    await awaitBroadcasts()
    for continuations in listeners.withLockedValue({ $0.byDevice.values.map { $0 } }) {
      for continuation in continuations.values { continuation.finish() }
    }
  }
}
