internal import NIOConcurrencyHelpers
package import APNSMockNotation
internal import Synchronization

/// A ring buffer of bounded size with numbered events of a server, for its readers.
///
/// Readers have no buffers of their own: each has a position in the ring. A reader that the ring has overtaken
/// receives a gap event, so a slow reader neither uses memory nor slows others. Without readers no events are
/// recorded, except for a time after the last reader was removed (`Limits.retention`), so that a reader that lost its
/// connection can resume.
package final class EventLog: InboxListener {
  /// A numbered event.
  struct Event: Sendable {
    enum Content: Sendable {
      case push(Record)
      case updated(Record)
      /// An event other than a push.
      case server(ServerEvent)
      /// The number of pushes or other events that were not recorded.
      case gap(Int)
    }

    let id: Int
    let content: Content

    /// The memory the event uses, in bytes.
    var cost: Int {
      switch content {
      case .push(let record), .updated(let record): 64 + RecordStorage.cost(record)
      case .server(let event): 64 + event.json.count
      case .gap: 64
      }
    }
  }

  /// Limits on the events that are kept for slow or returning readers.
  package struct Limits: Sendable {
    /// The maximum number of events.
    package var events: Int
    /// The maximum memory of the events, in bytes.
    package var bytes: Int
    /// How long events are recorded after the last reader was removed.
    package var retention: Duration

    /// Creates limits. At least one event is always kept.
    package init(events: Int = 8192, bytes: Int = 32 << 20, retention: Duration = .seconds(60)) {
      self.events = max(1, events)
      self.bytes = bytes
      self.retention = retention
    }
  }

  private struct State {
    /// The events; those before `head` were dropped.
    var ring: [Event] = []
    var head = 0
    var bytes = 0
    /// Begins with a random number, so that an id of another server, or of an earlier run of this one, is not mistaken for
    /// one of these. JavaScript can represent it exactly.
    var lastID = Int.random(in: 1 << 32..<1 << 52)
    /// Pushes up to this `seq` were recorded, or arrived before the log began.
    var seen = 0
    var readers: [Int: AsyncStream<Void>.Continuation] = [:]
    var readersMade = 0
    var isRecording = false
    var isClosed = false
    var shutoffTask: Task<Void, Never>?
  }

  private let inbox: Inbox
  private let limits: Limits
  private let state = NIOLockedValueBox(State())
  private let hasReaders = Atomic<Bool>(false)

  /// Creates a log of the changes of an inbox and of other events recorded with `record(_:_:)`.
  package init(_ inbox: Inbox, limits: Limits = Limits()) {
    self.inbox = inbox
    self.limits = limits
  }

  // MARK: - Appending events

  /// Appends an event. Without readers this costs one relaxed load.
  ///
  /// - Parameter members: Writes the members of the event's JSON object.
  package func append(_ kind: ServerEvent.Kind, _ members: (inout JSONWriter) -> Void) {
    guard hasReaders.load(ordering: .relaxed) else { return }
    var writer = JSONWriter(capacity: 256)
    writer.object(members)
    inbox.notifier.signal(ServerEvent(kind: kind, json: writer.bytes), in: inbox)
  }

  func inboxDidChange(_ changes: InboxChanges) {
    let readers = state.withLockedValue { state in
      guard state.isRecording else { return [AsyncStream<Void>.Continuation]() }
      let before = state.lastID
      if changes.removed > 0, max(changes.through, changes.emptiedThrough ?? 0) > state.seen {
        append(.gap(changes.removed), to: &state)
      }
      if changes.emptiedThrough != nil { append(.server(Self.reset(changes.reset)), to: &state) }
      var ended: Set<Int> = []
      for record in changes.records where record.seq > state.seen {
        append(.push(record), to: &state)
        if record.outcome != .pending { ended.insert(record.seq) }
      }
      state.seen = max(state.seen, changes.through, changes.emptiedThrough ?? 0)
      // A record that arrived and ended in the same round was already logged in its final state.
      for record in changes.updated where !ended.contains(record.seq) { append(.updated(record), to: &state) }
      for event in changes.serverEvents { append(.server(event), to: &state) }
      // Those beyond the limit of a round were dropped.
      if changes.droppedEvents > 0 { append(.gap(changes.droppedEvents), to: &state) }
      return state.lastID > before ? Array(state.readers.values) : []
    }
    for reader in readers { reader.yield() }
  }

  private static func reset(_ scopes: [String]) -> ServerEvent {
    var writer = JSONWriter(capacity: 128)
    writer.object { $0.member("reset", scopes) }
    return ServerEvent(kind: .reset, json: writer.bytes)
  }

  private func append(_ content: Event.Content, to state: inout State) {
    state.lastID += 1
    let event = Event(id: state.lastID, content: content)
    state.ring.append(event)
    state.bytes += event.cost
    while state.ring.count - state.head > limits.events
      || (state.bytes > limits.bytes && state.ring.count - state.head > 1)
    {
      state.bytes -= state.ring[state.head].cost
      // The slot is removed later; release its content now.
      state.ring[state.head] = Event(id: 0, content: .gap(0))
      state.head += 1
    }
    if state.head > 512, state.head > state.ring.count / 2 {
      state.ring.removeFirst(state.head)
      state.head = 0
    }
  }

  // MARK: - Readers

  /// Adds a reader.
  ///
  /// - Parameter lastID: The event after which to resume; nil for new events only.
  /// - Returns: The reader; nil after the log was closed.
  package func addReader(after lastID: Int? = nil) -> EventReader? {
    let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    return state.withLockedValue { state -> EventReader? in
      guard startRecording(&state) else { return nil }
      state.shutoffTask?.cancel()
      state.shutoffTask = nil
      state.readersMade += 1
      state.readers[state.readersMade] = signal
      // Events recorded while the reader was away are available immediately.
      signal.yield()
      return EventReader(
        log: self, number: state.readersMade, signals: signals, signal: signal, start: lastID ?? state.lastID)
    }
  }

  private func startRecording(_ state: inout State) -> Bool {
    guard !state.isClosed else { return false }
    guard !state.isRecording else { return true }
    guard inbox.notifier.add(self, to: inbox) else { return false }
    state.isRecording = true
    // No reader may resume across the time in which nothing was recorded.
    state.lastID += 1
    state.seen = inbox.snapshot().lastSeq
    hasReaders.store(true, ordering: .relaxed)
    return true
  }

  func removeReader(_ reader: Int) {
    state.withLockedValue { state in
      guard let signal = state.readers.removeValue(forKey: reader) else { return }
      signal.finish()
      guard state.readers.isEmpty, state.isRecording else { return }
      let retention = limits.retention
      state.shutoffTask = Task { [weak self] in
        try? await Task.sleep(for: retention)
        if !Task.isCancelled { self?.stopRecording() }
      }
    }
  }

  private func stopRecording() {
    state.withLockedValue { state in
      // A reader may have joined in the meantime.
      guard state.readers.isEmpty, state.isRecording else { return }
      clear(&state)
      inbox.notifier.remove(self)
    }
  }

  private func clear(_ state: inout State) {
    state.isRecording = false
    hasReaders.store(false, ordering: .relaxed)
    state.ring = []
    state.head = 0
    state.bytes = 0
    state.shutoffTask?.cancel()
    state.shutoffTask = nil
  }

  func inboxDidClose() {
    let readers = state.withLockedValue { state in
      state.isClosed = true
      // Keep the recorded events for readers that have not read them yet.
      state.isRecording = false
      hasReaders.store(false, ordering: .relaxed)
      state.shutoffTask?.cancel()
      defer { state.readers = [:] }
      return Array(state.readers.values)
    }
    for reader in readers { reader.finish() }
  }

  /// A batch of events for one reader.
  struct Batch: Sendable {
    var events: [Event] = []
    /// The ID of the event before the first one in `events`.
    var position: Int
    /// Whether events between the requested position and `position` were dropped.
    var hasGap = false
  }

  /// Returns events after the position, at most `limit`.
  func events(after position: Int, limit: Int = 64) -> Batch {
    state.withLockedValue { state in
      // A position beyond the last event comes from another server, or from an earlier run of this one.
      guard let first = state.ring.suffix(from: state.head).first?.id, position <= state.lastID else {
        return Batch(position: state.lastID, hasGap: position != state.lastID)
      }
      let start = max(position, first - 1)
      let index = state.head + start - first + 1
      // Copy the elements: a slice would share the ring's storage, and the next append would copy the whole ring.
      return Batch(
        events: Array(state.ring[index...].prefix(limit)), position: start, hasGap: start != position)
    }
  }

  /// Whether the events of all pushes in the inbox were recorded.
  var hasRecordedAllPushes: Bool { inbox.notifier.deliveredThrough >= inbox.snapshot().lastSeq }

  /// The number of readers.
  package var readerCount: Int { state.withLockedValue { $0.readers.count } }
}

/// An event other than a push, for event streams.
package struct ServerEvent: Sendable {
  /// The kind of an event; the raw value is the event's name.
  package enum Kind: String, Sendable {
    /// An event on a provider's connection.
    case connection
    /// A rule outside of the profile was added or removed.
    case rule
    /// The active profile or its parameters changed, or fault injection was paused or resumed.
    case profile
    /// Something was reset.
    case reset
    /// Pushes were deleted by a request.
    case deleted
    /// The clock was frozen, advanced or set to the real time.
    case clock
  }

  /// The kind of the event.
  package let kind: Kind
  /// The event's data: a JSON object on one line.
  let json: [UInt8]
}
