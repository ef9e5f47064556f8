package import APNSMockRules
internal import APNSMockNotation

/// A reader of an event log. It is removed from the log when it is deallocated.
///
/// ```swift
/// var position = reader.start
/// for await _ in reader.signals {
///   while let events = reader.read(after: &position, selection, rulebook: rulebook) { send(events) }
/// }
/// ```
package final class EventReader: Sendable {
  /// An event in the form sent to a client.
  package struct SerializedEvent: Sendable {
    /// The event's ID. For a gap that only this reader has, the ID of the event before the next one.
    package let id: Int
    /// The event's name: `push`, `push.updated`, `gap`, or the name of another event.
    package let name: String
    /// The event's data: a JSON object on one line.
    package let data: [UInt8]
  }

  /// The ID of the event after which this reader begins.
  package let start: Int
  /// Yields whenever there may be events to read; ends when the log is closed.
  package let signals: AsyncStream<Void>

  private let log: EventLog
  private let number: Int
  private let signal: AsyncStream<Void>.Continuation

  init(
    log: EventLog, number: Int, signals: AsyncStream<Void>, signal: AsyncStream<Void>.Continuation, start: Int
  ) {
    self.log = log
    self.number = number
    self.signals = signals
    self.signal = signal
    self.start = start
  }

  deinit { log.removeReader(number) }

  /// Makes `signals` yield without an event, so that the client is sent a heartbeat.
  package func signalHeartbeat() { signal.yield() }

  /// Ends `signals`, when the client stops reading.
  package func stop() { signal.finish() }

  /// Returns the next events, possibly none if the examined events are not selected; nil after the last event.
  ///
  /// - Parameters:
  ///   - position: The ID of the event after which to read; advanced past the events that were read.
  ///   - selection: The pushes to return. All other events are returned.
  ///   - inbox: The inbox of the pushes, for findings that depend on several records.
  package func read(after position: inout Int, _ selection: Selection, rulebook: Rulebook, in inbox: Inbox? = nil)
    -> [SerializedEvent]?
  {
    let batch = log.events(after: position)
    guard batch.hasGap || !batch.events.isEmpty else { return nil }
    var events: [SerializedEvent] = []
    if batch.hasGap { events.append(Self.gap(nil, id: batch.position)) }
    for event in batch.events {
      switch event.content {
      case .push(let record) where selection.contains(record):
        events.append(Self.event(event.id, "push") { record.writeMembers(to: &$0, rulebook: rulebook, in: inbox) })
      case .updated(let record) where selection.contains(record):
        events.append(
          Self.event(event.id, "push.updated") { record.writeMembers(to: &$0, rulebook: rulebook, in: inbox) })
      case .push, .updated: break
      case .server(let other): events.append(SerializedEvent(id: event.id, name: other.kind.rawValue, data: other.json))
      case .gap(let missed): events.append(Self.gap(missed, id: event.id))
      }
    }
    position = batch.events.last?.id ?? batch.position
    return events
  }

  /// Calls `body` with each push once its attempt has ended, until the server or this reader stops.
  ///
  /// - Parameters:
  ///   - missed: Called with the number of pushes and other events that were dropped because `body` is slow.
  ///   - caughtUp: Called when all events were read, also after `signalHeartbeat`.
  package func forEachEndedPush(
    missed: (Int) -> Void, caughtUp: () async -> Void = {}, _ body: (Record) async -> Void
  ) async {
    var position = start
    var pending: Set<Int> = []
    for await _ in signals {
      while true {
        let batch = log.events(after: position)
        guard batch.hasGap || !batch.events.isEmpty else { break }
        if batch.hasGap { missed(max(1, batch.position - position)) }
        for event in batch.events {
          switch event.content {
          case .push(let record) where record.outcome == .pending:
            // The ends of some are in gaps, or were removed with their pushes.
            if pending.count >= Self.pendingLimit {
              missed(pending.count)
              pending.removeAll()
            }
            pending.insert(record.seq)
          case .push(let record): await body(record)
          case .updated(let record):
            if record.outcome != .pending, pending.remove(record.seq) != nil { await body(record) }
          case .gap(let count): missed(count)
          case .server: break
          }
        }
        position = batch.events.last?.id ?? batch.position
      }
      await caughtUp()
    }
  }

  /// The maximum number of pending pushes whose end `forEachEndedPush` waits for.
  private static let pendingLimit = 65_536

  /// Ends `signals` once the events of the pushes that the inbox has now were recorded, for which it waits up to a second.
  package func finish() async {
    for _ in 0..<100 where !log.hasRecordedAllPushes { try? await Task.sleep(for: .milliseconds(10)) }
    signal.yield()
    signal.finish()
  }

  private static func gap(_ missed: Int?, id: Int) -> SerializedEvent {
    event(id, "gap") { writer in
      writer.member("missed", missed)
      writer.member("message", "events are missing here: read /api/v1/pushes for what is in the inbox")
    }
  }

  private static func event(_ id: Int, _ name: String, _ members: (inout JSONWriter) -> Void) -> SerializedEvent {
    var writer = JSONWriter()
    writer.object(members)
    return SerializedEvent(id: id, name: name, data: writer.bytes)
  }
}
