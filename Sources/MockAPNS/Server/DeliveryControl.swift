internal import Dispatch
internal import APNSMockNotation
import APNSMockRules
package import APNSMockDevices
import APNSMockInbox
import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc
internal import Synchronization

/// Delivers accepted pushes to registered devices: keeps the records, the findings and the listeners up to date with
/// the registry.
///
/// What concerns thousands of devices at once, expiries and broadcasts, runs on queues of its own and in slices, so that no
/// event loop waits for it longer than for one slice.
package final class DeliveryControl: Sendable {
  /// The number of events that are kept for a slow reader of one device.
  private static let listenerBuffer = 1_000
  /// The number of events that are kept for a slow reader of all devices: some megabytes.
  private static let sharedListenerBuffer = 16_384
  /// The maximum number of readers of all devices.
  package static let sharedListenerLimit = 16

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
    var byDevice: [String: [DeviceEventReader]] = [:]
    var toAll: [DeviceEventReader] = []
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
  func deliver(
    _ pushes: inout [AcceptedPush], appending records: inout [Record], now: ServerTime, settings: APNSSettings
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

  /// Discards stored pushes and broadcasts that have expired by the server's clock, and delivers what devices have acknowledged
  /// or held until now.
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
      let (events, broadcasts, isComplete) = devices.advance(to: now)
      apply(events)
      for broadcast in broadcasts { devices.discard(broadcast, now: now) { usleep(Self.pause) } }
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
    case .notShown(let seq, let problem, let other): inbox.addFinding(.wouldNotShow, seq: seq, by: other, problem)
    case .device(let event):
      for reader in listeners.withLockedValue({ $0.toAll + ($0.byDevice[event.deviceID] ?? []) }) { reader.add(event) }
    }
  }

  // MARK: - Listeners

  /// Begins to read what happens on a device from now on. Call `end` afterwards.
  ///
  /// - Throws: `DeviceError` if there is no such device.
  package func read(_ id: String) throws(DeviceError) -> DeviceEventReader {
    try devices.beginWatching(id)
    let reader = DeviceEventReader(DeviceEventFilter(), limit: Self.listenerBuffer)
    listeners.withLockedValue { $0.byDevice[id, default: []].append(reader) }
    return reader
  }

  /// Begins to read what happens on all devices from now on. Call `end` afterwards.
  ///
  /// - Returns: nil if too many readers read from all devices.
  package func readAll(_ filter: DeviceEventFilter) -> DeviceEventReader? {
    let reader = DeviceEventReader(filter, limit: Self.sharedListenerBuffer)
    let isFull = listeners.withLockedValue { listeners in
      guard listeners.toAll.count < Self.sharedListenerLimit else { return true }
      listeners.toAll.append(reader)
      return false
    }
    if isFull { return nil }
    devices.beginWatchingAll()
    return reader
  }

  /// Ends a reader.
  package func end(_ reader: DeviceEventReader) {
    reader.stop()
    let found = listeners.withLockedValue { listeners -> (id: String?, isKnown: Bool) in
      if let index = listeners.toAll.firstIndex(where: { $0 === reader }) {
        listeners.toAll.remove(at: index)
        return (nil, true)
      }
      guard let id = listeners.byDevice.first(where: { entry in entry.value.contains { $0 === reader } })?.key else {
        return (nil, false)
      }
      listeners.byDevice[id]?.removeAll { $0 === reader }
      if listeners.byDevice[id]?.isEmpty == true { listeners.byDevice[id] = nil }
      return (id, true)
    }
    guard found.isKnown else { return }
    if let id = found.id { devices.endWatching(id) } else { devices.endWatchingAll() }
  }

  /// Ends all streams of notifications and the change of expired deliveries, because the server stops.
  package func end() async {
    isEnding.store(true, ordering: .releasing)
    await advance()
    await awaitBroadcasts()
    for reader in listeners.withLockedValue({ $0.toAll + $0.byDevice.values.joined() }) { reader.stop() }
  }
}
