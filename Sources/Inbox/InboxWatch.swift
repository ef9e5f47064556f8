internal import NIOConcurrencyHelpers
internal import Synchronization

/// What happened in an inbox since its listeners heard of it last.
struct InboxNews: Sendable {
  /// Records that came, as they are now, in their order.
  var records: [Record] = []
  /// All records up to this number are in these news or were in earlier ones.
  var through = 0
  /// How many records came and were gone before anybody could look at them.
  var missed = 0
  /// The inbox's limits pushed out records up to this number. Other missed ones somebody removed.
  var evictedThrough = 0
  /// Records that were pending and have ended.
  var finished: [Record] = []
  /// The inbox was emptied: nothing up to this number is in it any more.
  var emptiedThrough: Int?
  /// What was set back together with it.
  var reset: [String] = []
  /// What happened besides pushes.
  var notes: [EventNote] = []
  /// How many further notes nobody could keep.
  var droppedNotes = 0
}

/// Somebody who wants to know what happens in an inbox.
protocol InboxListener: AnyObject, Sendable {
  /// Hears what happened, one piece of news after the other. Whoever calls has others to tell: this has to be short.
  func hear(_ news: InboxNews)
  /// Hears that there will be no more news.
  func hearNoMore()
}

/// Tells listeners what happens in an inbox, without their asking again and again.
///
/// Whoever appends only says that there is something new. One task at a time then reads it from the inbox, outside of
/// every lock that a push waits for, and tells all listeners. What piles up meanwhile is told at once, so a burst costs
/// each listener one look at each new record and no more. While nobody listens, a push costs one relaxed load.
final class InboxWatch: Sendable {
  /// More notes than these do not pile up between two rounds.
  private static let noteLimit = 4096

  private struct State {
    var listeners: [ObjectIdentifier: any InboxListener] = [:]
    /// Every listener was told of the records up to this number, or came later.
    var told = 0
    var pending = Pending()
    var isDue = false
    var isRunning = false
    var isClosed = false
  }

  private struct Pending {
    var finished: [Int] = []
    var emptiedThrough: Int?
    var reset: [String] = []
    var notes: [EventNote] = []
    var droppedNotes = 0
  }

  private let state = NIOLockedValueBox(State())
  private let isHeard = Atomic<Bool>(false)

  // MARK: - Listening

  /// From now on the listener hears of everything that a snapshot taken after this call does not show. It may hear again
  /// of what that shows.
  ///
  /// - Returns: false, and nothing is heard, after `close`.
  func add(_ listener: any InboxListener, to inbox: Inbox) -> Bool {
    state.withLockedValue { state in
      guard !state.isClosed else { return false }
      if state.listeners.isEmpty {
        // An append that does not see this in time comes before the snapshot, which the inbox's lock puts in order.
        isHeard.store(true, ordering: .relaxed)
        state.pending = Pending()
        state.told = max(state.told, inbox.snapshot().lastSeq)
      }
      state.listeners[ObjectIdentifier(listener)] = listener
      return true
    }
  }

  /// It hears nothing more, but for what is being told right now.
  func remove(_ listener: any InboxListener) {
    state.withLockedValue { state in
      state.listeners[ObjectIdentifier(listener)] = nil
      if state.listeners.isEmpty { isHeard.store(false, ordering: .relaxed) }
    }
  }

  /// Ends listening for all, after they were told what is still to be told; nobody may begin any more.
  func close(_ inbox: Inbox) {
    wake(inbox) { state in
      state.isClosed = true
      isHeard.store(false, ordering: .relaxed)
    }
  }

  /// How many listen.
  var listenerCount: Int { state.withLockedValue { $0.listeners.count } }

  /// How many of those that listen are waits.
  var waiterCount: Int { state.withLockedValue { state in state.listeners.values.count { $0 is Waiter } } }

  // MARK: - Telling

  /// Records came.
  func appended(to inbox: Inbox) {
    guard isHeard.load(ordering: .relaxed) else { return }
    wake(inbox) { _ in }
  }

  /// A pending record has ended.
  func finished(_ seq: Int, in inbox: Inbox) {
    guard isHeard.load(ordering: .relaxed) else { return }
    wake(inbox) { $0.pending.finished.append(seq) }
  }

  /// The inbox was emptied.
  func emptied(_ inbox: Inbox, through seq: Int, reset: [String]) {
    guard isHeard.load(ordering: .relaxed) else { return }
    wake(inbox) { state in
      state.pending.emptiedThrough = max(seq, state.pending.emptiedThrough ?? 0)
      state.pending.finished = []
      // Of several that nobody was told of yet, all that was set back.
      for scope in reset where !state.pending.reset.contains(scope) { state.pending.reset.append(scope) }
    }
  }

  /// Something else happened. It is told after the records that came before it.
  func note(_ note: EventNote, in inbox: Inbox) {
    guard isHeard.load(ordering: .relaxed) else { return }
    wake(inbox) { state in
      if state.pending.notes.count < Self.noteLimit {
        state.pending.notes.append(note)
      } else {
        state.pending.droppedNotes += 1
      }
    }
  }

  private func wake(_ inbox: Inbox, _ change: (inout State) -> Void) {
    let isAsleep = state.withLockedValue { state in
      change(&state)
      state.isDue = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isAsleep { Task(priority: .high) { await run(inbox) } }
  }

  private func run(_ inbox: Inbox) async {
    while let (told, pending) = nextRound() {
      tell(pending, of: inbox, after: told)
      await Task.yield()
    }
    let left = state.withLockedValue { state in
      guard state.isClosed else { return [any InboxListener]() }
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in left { listener.hearNoMore() }
  }

  private func nextRound() -> (told: Int, Pending)? {
    state.withLockedValue { state in
      guard state.isDue else {
        state.isRunning = false
        return nil
      }
      state.isDue = false
      defer { state.pending = Pending() }
      return (state.told, state.pending)
    }
  }

  private func tell(_ pending: Pending, of inbox: Inbox, after told: Int) {
    var told = told
    if let through = pending.emptiedThrough {
      tell(InboxNews(through: told, missed: max(0, through - told), emptiedThrough: through, reset: pending.reset))
      told = max(told, through)
    }
    let end = inbox.snapshot().lastSeq
    while true {
      var news = Self.news(of: inbox, after: told)
      told = news.through
      if told < end {
        tell(news)
        continue
      }
      news.finished = pending.finished.compactMap(inbox.record)
      news.notes = pending.notes
      news.droppedNotes = pending.droppedNotes
      return tell(news)
    }
  }

  /// Some of the records that came after `seq`. The snapshot is gone when it returns, so that appending rarely has to
  /// copy what it shows.
  private static func news(of inbox: Inbox, after seq: Int) -> InboxNews {
    let snapshot = inbox.snapshot()
    var selection = Selection()
    selection.after = seq
    var walk = InboxWalk(snapshot, selection)
    let records = walk.next() ?? []
    return InboxNews(
      records: records, through: max(seq, walk.through), missed: max(0, walk.through - seq - records.count),
      evictedThrough: snapshot.lastEvicted)
  }

  /// Who listens is looked up after the news were read: whoever comes later takes a snapshot that shows them.
  private func tell(_ news: InboxNews) {
    let listeners = state.withLockedValue { state in
      state.told = max(state.told, news.through, news.emptiedThrough ?? 0)
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.hear(news) }
  }
}
