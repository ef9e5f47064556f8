package import APNSMockRules
package import APNSMockDevices
internal import NIOConcurrencyHelpers
package import APNSMockNotation

/// Which events of devices a reader gets; a property that is nil selects all.
package struct DeviceEventFilter: Sendable {
  package var kinds: Set<DeviceEvent.Kind>?
  package var device: TextPattern?
  package var bundleID: TextPattern?
  package var environment: PushEnvironment?

  /// Creates a filter that selects everything.
  package init() {}

  func selects(_ event: DeviceEvent) -> Bool {
    guard kinds?.contains(event.kind) ?? true, environment.map({ $0 == event.environment }) ?? true else {
      return false
    }
    return (device?.matches(event.deviceID) ?? true) && (bundleID?.matches(event.bundleID) ?? true)
  }
}

/// A reader of what happens on one device or on all. It keeps a limited number of events for a slow client and counts those that
/// it has dropped.
///
/// ```swift
/// for await _ in reader.signals {
///   while let batch = reader.next(100) { send(batch) }
/// }
/// ```
package final class DeviceEventReader: Sendable {
  /// Events in the order in which they happened.
  package struct Batch: Sendable {
    /// The number of dropped events before `events`.
    package let missed: Int
    package let events: ArraySlice<DeviceEvent>
  }

  private struct Buffer: Sendable {
    /// The events that were not read, after `first` that were.
    var events: [DeviceEvent] = []
    var first = 0
    var missed = 0
  }

  /// Yields whenever there may be events to read; ends when the server stops.
  package let signals: AsyncStream<Void>

  private let signal: AsyncStream<Void>.Continuation
  private let buffer = NIOLockedValueBox(Buffer())
  private let filter: DeviceEventFilter
  private let limit: Int

  /// - Parameter limit: The number of events that are kept; older ones are dropped.
  init(_ filter: DeviceEventFilter, limit: Int) {
    self.filter = filter
    self.limit = limit
    (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  func add(_ event: DeviceEvent) {
    guard filter.selects(event) else { return }
    buffer.withLockedValue { buffer in
      buffer.events.append(event)
      if buffer.events.count - buffer.first > limit {
        buffer.first += 1
        buffer.missed += 1
      }
      // Half of them at once, so that most events move nothing.
      guard buffer.first >= limit else { return }
      buffer.events.removeFirst(buffer.first)
      buffer.first = 0
    }
    signal.yield()
  }

  /// Returns the next events; nil if there are none.
  ///
  /// - Parameter limit: The maximum number of events.
  package func next(_ limit: Int) -> Batch? {
    buffer.withLockedValue { buffer in
      let events = buffer.events[buffer.first...].prefix(limit)
      guard !events.isEmpty else { return nil }
      let missed = buffer.missed
      buffer.missed = 0
      buffer.first += events.count
      if buffer.first == buffer.events.count { (buffer.events, buffer.first) = ([], 0) }
      return Batch(missed: missed, events: events)
    }
  }

  /// Makes `signals` yield without an event, so that the client is sent a heartbeat.
  package func signalHeartbeat() { signal.yield() }

  /// Ends `signals`.
  package func stop() { signal.finish() }
}
