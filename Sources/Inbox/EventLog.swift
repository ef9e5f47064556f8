internal import NIOConcurrencyHelpers
public import Notation
internal import Synchronization

/// What happens to a server, for whoever follows it: numbered events in a ring of bounded size.
///
/// Readers have no buffers of their own: each has a place in the ring, and one that the ring has overtaken is told that
/// there is a gap. So a slow reader takes no memory and slows nobody. Without readers nothing is noted, but for a while
/// after the last one left, so that one that lost its connection can go on where it was.
public final class EventLog: InboxListener {
  /// One event.
  struct Event: Sendable {
    enum Content: Sendable {
      case push(Record)
      case updated(Record)
      case note(EventNote)
      /// So many pushes or other things were not noted.
      case gap(Int)
    }

    let id: Int
    let content: Content

    /// What it keeps in memory.
    var cost: Int {
      switch content {
      case .push(let record), .updated(let record): 64 + RecordStorage.cost(record)
      case .note(let note): 64 + note.json.count
      case .gap: 64
      }
    }
  }

  /// How much is kept for those who come back, or are slow.
  public struct Limits: Sendable {
    /// Events.
    public var events: Int
    /// What they take in memory, in bytes.
    public var bytes: Int
    /// How long events are noted for nobody.
    public var memory: Duration

    /// Limits; there is always room for one event.
    public init(events: Int = 8192, bytes: Int = 32 << 20, memory: Duration = .seconds(60)) {
      self.events = max(1, events)
      self.bytes = bytes
      self.memory = memory
    }
  }

  private struct State {
    /// Those before `head` are gone.
    var ring: [Event] = []
    var head = 0
    var bytes = 0
    var lastID = 0
    /// Pushes up to this number were noted, or came before the log began.
    var seen = 0
    var readers: [Int: AsyncStream<Void>.Continuation] = [:]
    var readersMade = 0
    var isOn = false
    var isClosed = false
    var forgetting: Task<Void, Never>?
  }

  private let inbox: Inbox
  private let limits: Limits
  private let state = NIOLockedValueBox(State())
  private let isFollowed = Atomic<Bool>(false)

  /// A log of what happens in an inbox, and of what else is noted in it.
  public init(_ inbox: Inbox, limits: Limits = Limits()) {
    self.inbox = inbox
    self.limits = limits
  }

  // MARK: - Noting

  /// Notes something. While nobody follows, this costs one relaxed load.
  ///
  /// - Parameter members: writes what there is to tell.
  public func note(_ kind: EventNote.Kind, _ members: (inout JSONWriter) -> Void) {
    guard isFollowed.load(ordering: .relaxed) else { return }
    var writer = JSONWriter(capacity: 256)
    writer.object(members)
    inbox.watch.note(EventNote(kind: kind, json: writer.bytes), in: inbox)
  }

  func hear(_ news: InboxNews) {
    let readers = state.withLockedValue { state in
      guard state.isOn else { return [AsyncStream<Void>.Continuation]() }
      let before = state.lastID
      if news.missed + news.droppedNotes > 0, max(news.through, news.emptiedThrough ?? 0) > state.seen {
        append(.gap(news.missed + news.droppedNotes), to: &state)
      }
      if news.emptiedThrough != nil { append(.note(Self.reset(news.reset)), to: &state) }
      var ended: Set<Int> = []
      for record in news.records where record.seq > state.seen {
        append(.push(record), to: &state)
        if record.outcome != .pending { ended.insert(record.seq) }
      }
      state.seen = max(state.seen, news.through, news.emptiedThrough ?? 0)
      // One that came and ended at once was told as it is.
      for record in news.finished where !ended.contains(record.seq) { append(.updated(record), to: &state) }
      for note in news.notes { append(.note(note), to: &state) }
      return state.lastID > before ? Array(state.readers.values) : []
    }
    for reader in readers { reader.yield() }
  }

  private static func reset(_ scopes: [String]) -> EventNote {
    var writer = JSONWriter(capacity: 128)
    writer.object { $0.member("reset", scopes) }
    return EventNote(kind: .reset, json: writer.bytes)
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
      // Its place stays for a while, what it keeps must not.
      state.ring[state.head] = Event(id: 0, content: .gap(0))
      state.head += 1
    }
    if state.head > 512, state.head > state.ring.count / 2 {
      state.ring.removeFirst(state.head)
      state.head = 0
    }
  }

  // MARK: - Following

  /// Somebody begins to follow.
  ///
  /// - Parameter lastID: the event after which to go on; nil for what comes from now on.
  /// - Returns: nil after the log was closed.
  public func follow(after lastID: Int? = nil) -> EventReader? {
    let (news, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    return state.withLockedValue { state -> EventReader? in
      guard turnOn(&state) else { return nil }
      state.forgetting?.cancel()
      state.forgetting = nil
      state.readersMade += 1
      state.readers[state.readersMade] = signal
      // What was noted while it was away is there already.
      signal.yield()
      return EventReader(
        log: self, number: state.readersMade, news: news, signal: signal, start: lastID ?? state.lastID)
    }
  }

  private func turnOn(_ state: inout State) -> Bool {
    guard !state.isClosed else { return false }
    guard !state.isOn else { return true }
    guard inbox.watch.add(self, to: inbox) else { return false }
    state.isOn = true
    // Nobody can go on over the time that was not noted.
    state.lastID += 1
    state.seen = inbox.snapshot().lastSeq
    isFollowed.store(true, ordering: .relaxed)
    return true
  }

  func leave(_ reader: Int) {
    state.withLockedValue { state in
      guard let signal = state.readers.removeValue(forKey: reader) else { return }
      signal.finish()
      guard state.readers.isEmpty, state.isOn else { return }
      let memory = limits.memory
      state.forgetting = Task { [weak self] in
        try? await Task.sleep(for: memory)
        if !Task.isCancelled { self?.turnOff() }
      }
    }
  }

  private func turnOff() {
    state.withLockedValue { state in
      // Somebody may have come just now.
      guard state.readers.isEmpty, state.isOn else { return }
      forget(&state)
      inbox.watch.remove(self)
    }
  }

  private func forget(_ state: inout State) {
    state.isOn = false
    isFollowed.store(false, ordering: .relaxed)
    state.ring = []
    state.head = 0
    state.bytes = 0
    state.forgetting?.cancel()
    state.forgetting = nil
  }

  func hearNoMore() {
    let readers = state.withLockedValue { state in
      state.isClosed = true
      // What was noted stays, for those who have not read it yet.
      state.isOn = false
      isFollowed.store(false, ordering: .relaxed)
      state.forgetting?.cancel()
      defer { state.readers = [:] }
      return Array(state.readers.values)
    }
    for reader in readers { reader.finish() }
  }

  /// Some events that somebody has not read yet.
  struct Piece: Sendable {
    var events: [Event] = []
    /// The event after which they stand.
    var place: Int
    /// Whether something between the place that was asked for and this one is not there any more.
    var hasGap = false
  }

  /// Some of the events after a place.
  func events(after place: Int, limit: Int = 64) -> Piece {
    state.withLockedValue { state in
      // A place that is yet to come is one of another server's life.
      guard let first = state.ring.suffix(from: state.head).first?.id, place <= state.lastID else {
        return Piece(place: state.lastID, hasGap: place != state.lastID)
      }
      let start = max(place, first - 1)
      let index = state.head + start - first + 1
      // A copy: the ring itself must not be shared, or the next event would copy all of it.
      return Piece(
        events: Array(state.ring[index...].prefix(limit)), place: start, hasGap: start != place)
    }
  }

  /// How many follow.
  public var readerCount: Int { state.withLockedValue { $0.readers.count } }
}
