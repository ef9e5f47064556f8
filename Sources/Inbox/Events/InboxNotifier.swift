internal import APNSMockRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// The changes of an inbox since its listeners were last notified.
struct InboxChanges: Sendable {
  /// New records in their current state, in ascending order.
  var records: [Record] = []
  /// All records up to this `seq` were in earlier changes.
  var after = 0
  /// All records up to this `seq` are in these or earlier changes.
  var through = 0
  /// The number of records that arrived and were removed before they could be reported.
  var removed = 0
  /// Records up to this `seq` were evicted because of the inbox's limits. Other records were removed by
  /// request.
  var evictedThrough = 0
  /// Records that were pending and have ended, or whose delivery, or a finding about it, changed.
  var updated: [Record] = []
  /// Set if the inbox was emptied: no record up to this `seq` is in it any more.
  var emptiedThrough: Int?
  /// The names of what was reset together with the inbox.
  var reset: [String] = []
  /// Events other than pushes.
  var serverEvents: [ServerEvent] = []
  /// The number of further events that were dropped because of `eventLimit`.
  var droppedEvents = 0
}

/// A receiver of the changes of an inbox.
protocol InboxListener: AnyObject, Sendable {
  /// Keys of the only device tokens whose pushes concern the listener; nil if all records do. It receives changes only
  /// if they contain a record of one of these tokens, or if records were removed.
  var deviceTokens: Set<PushKey>? { get }
  /// Receives the next changes. Called for one listener after the other, so it must return quickly.
  func inboxDidChange(_ changes: InboxChanges)
  /// Called once after the last changes.
  func inboxDidClose()
}

extension InboxListener {
  var deviceTokens: Set<PushKey>? { nil }
}

/// Notifies listeners of the changes of an inbox, without polling.
///
/// Appending a record only signals that there is something new. One task at a time then reads the new records from the
/// inbox, outside of every lock that a push waits for, and notifies all listeners. Changes that accumulate in between
/// are reported together, so a burst costs each listener one visit of each record that concerns it. A listener for some
/// device tokens, such as a test that waits for its own push, is found by them, so that thousands of them cost no more
/// than one. Without listeners, a push costs one relaxed load.
final class InboxNotifier: Sendable {
  /// The maximum number of server events that accumulate between two rounds.
  private static let eventLimit = 4096

  fileprivate struct State {
    /// All listeners.
    var listeners: [ObjectIdentifier: any InboxListener] = [:]
    /// The listeners whom all records concern.
    var ofAllRecords: [ObjectIdentifier: any InboxListener] = [:]
    /// The other listeners, by the keys of their device tokens.
    var byDeviceToken: [PushKey: [any InboxListener]] = [:]
    /// Every listener was notified of the records up to this `seq`, or was added later.
    var notified = 0
    var pending = Pending()
    var isDue = false
    var isRunning = false
    var isClosed = false
  }

  fileprivate struct Pending {
    var updated: [Int] = []
    var emptiedThrough: Int?
    var reset: [String] = []
    var serverEvents: [ServerEvent] = []
    var droppedEvents = 0
  }

  private let state = NIOLockedValueBox(State())
  /// Listeners read records, for which a thread may have to wait.
  private let executor = SerialTaskExecutor("apns-mock.notifications")
  private let hasListeners = Atomic<Bool>(false)
  /// Whether there are listeners, and none whom all records concern.
  private let isSelective = Atomic<Bool>(false)
  private let delivered = Atomic<Int>(0)

  /// All listeners whom they concern have received the records up to this `seq`.
  var deliveredThrough: Int { delivered.load(ordering: .acquiring) }

  // MARK: - Listeners

  /// Adds a listener. It is notified of all changes that a snapshot taken after this call does not contain, and
  /// possibly of some that the snapshot contains.
  ///
  /// - Returns: false, without adding the listener, after `close`.
  func add(_ listener: any InboxListener, to inbox: Inbox) -> Bool {
    state.withLockedValue { state in
      guard !state.isClosed else { return false }
      if state.listeners.isEmpty {
        // An append that does not see this store in time precedes the snapshot, because both acquire the inbox's lock.
        hasListeners.store(true, ordering: .relaxed)
        state.pending = Pending()
        state.notified = max(state.notified, inbox.snapshot().lastSeq)
      }
      state.add(listener)
      isSelective.store(state.ofAllRecords.isEmpty, ordering: .relaxed)
      return true
    }
  }

  /// Removes a listener. A notification that is already under way may still reach it.
  func remove(_ listener: any InboxListener) {
    state.withLockedValue { state in
      state.remove(listener)
      isSelective.store(state.ofAllRecords.isEmpty && !state.listeners.isEmpty, ordering: .relaxed)
      if state.listeners.isEmpty { hasListeners.store(false, ordering: .relaxed) }
    }
  }

  /// Notifies all listeners of the remaining changes, removes them and accepts no new ones.
  func close(_ inbox: Inbox) {
    scheduleRound(inbox) { state in
      state.isClosed = true
      hasListeners.store(false, ordering: .relaxed)
    }
  }

  /// The number of listeners.
  var listenerCount: Int { state.withLockedValue { $0.listeners.count } }

  /// The number of listeners that are waits.
  var waiterCount: Int { state.withLockedValue { state in state.listeners.values.count { $0 is Waiter } } }

  // MARK: - Notifications

  /// The keys of the device tokens of records that are about to be appended; nil if they are not needed, because there
  /// are no listeners, or some whom all records concern.
  func deviceTokens(of records: [Record]) -> [PushKey?]? {
    isSelective.load(ordering: .relaxed) ? records.map(\.deviceTokenKey) : nil
  }

  /// Signals that records were appended.
  ///
  /// - Parameters:
  ///   - first: The `seq` of the first one.
  ///   - deviceTokens: What `deviceTokens(of:)` returned for them.
  func signalAppended(to inbox: Inbox, from first: Int, _ deviceTokens: [PushKey?]?) {
    guard hasListeners.load(ordering: .relaxed) else { return }
    // A round wakes another thread. Usually the new records concern no listener, and only the position changes.
    // Measured with ten thousand waits: 5.5 % of CPU per push (`make bench`).
    let concernsNobody = state.withLockedValue { state in
      guard let deviceTokens, !state.isRunning, state.notified == first - 1, state.ofAllRecords.isEmpty,
        !deviceTokens.contains(where: { key in key.map { state.byDeviceToken[$0] != nil } ?? false })
      else { return false }
      state.notified += deviceTokens.count
      delivered.store(state.notified, ordering: .releasing)
      return true
    }
    if !concernsNobody { scheduleRound(inbox) { _ in } }
  }

  /// Signals that a pending record has ended, or that its delivery or its findings changed.
  func signalUpdated(_ seq: Int, in inbox: Inbox) { signalUpdated(CollectionOfOne(seq), in: inbox) }

  /// Signals that pending records have ended, or that their deliveries or findings changed.
  func signalUpdated(_ seqs: some Collection<Int>, in inbox: Inbox) {
    guard hasListeners.load(ordering: .relaxed), !seqs.isEmpty else { return }
    scheduleRound(inbox) { $0.pending.updated += seqs }
  }

  /// Signals that the inbox was emptied.
  func signalEmptied(_ inbox: Inbox, through seq: Int, reset: [String]) {
    guard hasListeners.load(ordering: .relaxed) else { return }
    scheduleRound(inbox) { state in
      state.pending.emptiedThrough = max(seq, state.pending.emptiedThrough ?? 0)
      // Newer records may have been updated already.
      state.pending.updated.removeAll { $0 <= seq }
      // Merge the scopes of several resets that were not reported yet.
      for scope in reset where !state.pending.reset.contains(scope) { state.pending.reset.append(scope) }
    }
  }

  /// Adds a server event, which is reported after the records that arrived before it.
  func signal(_ event: ServerEvent, in inbox: Inbox) {
    guard hasListeners.load(ordering: .relaxed) else { return }
    scheduleRound(inbox) { state in
      if state.pending.serverEvents.count < Self.eventLimit {
        state.pending.serverEvents.append(event)
      } else {
        state.pending.droppedEvents += 1
      }
    }
  }

  private func scheduleRound(_ inbox: Inbox, _ change: (inout State) -> Void) {
    let wasIdle = state.withLockedValue { state in
      change(&state)
      state.isDue = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if wasIdle { Task(executorPreference: executor, priority: .high) { await self.run(inbox) } }
  }

  private func run(_ inbox: Inbox) async {
    while let (notified, pending) = nextRound() {
      notify(pending, of: inbox, after: notified)
      await Task.yield()
    }
    let closedListeners = state.withLockedValue { state in
      guard state.isClosed else { return [any InboxListener]() }
      defer { (state.listeners, state.ofAllRecords, state.byDeviceToken) = ([:], [:], [:]) }
      return Array(state.listeners.values)
    }
    for listener in closedListeners { listener.inboxDidClose() }
  }

  private func nextRound() -> (notified: Int, Pending)? {
    state.withLockedValue { state in
      guard state.isDue else {
        state.isRunning = false
        return nil
      }
      state.isDue = false
      defer { state.pending = Pending() }
      return (state.notified, state.pending)
    }
  }

  private func notify(_ pending: Pending, of inbox: Inbox, after notified: Int) {
    var notified = notified
    if let through = pending.emptiedThrough {
      notify(
        InboxChanges(
          after: notified, through: notified, removed: max(0, through - notified), emptiedThrough: through,
          reset: pending.reset))
      notified = max(notified, through)
    }
    let end = inbox.snapshot().lastSeq
    while true {
      var changes = Self.changes(of: inbox, after: notified)
      notified = changes.through
      if notified < end {
        notify(changes)
        continue
      }
      var unreadable = 0
      for seq in pending.updated {
        do throws(StoreUnavailable) {
          if let record = try inbox.record(seq: seq) { changes.updated.append(record) }
        } catch {
          // It may count in its new state, so waits are inconclusive.
          guard !error.isByReset else { continue }
          unreadable += 1
          (changes.removed, changes.evictedThrough) = (changes.removed + 1, .max)
        }
      }
      changes.serverEvents = pending.serverEvents
      changes.droppedEvents = pending.droppedEvents + unreadable
      return notify(changes)
    }
  }

  /// Returns some of the records after `seq`. The snapshot is released on return, so that appending rarely has to
  /// copy the chunk it shares.
  private static func changes(of inbox: Inbox, after seq: Int) -> InboxChanges {
    let snapshot = inbox.snapshot()
    var selection = Selection.allKinds
    selection.after = seq
    var iterator = InboxIterator(snapshot, selection)
    let records: [Record]
    do {
      records = try iterator.next() ?? []
    } catch {
      // For listeners, records of a store that cannot be read are evicted ones: waits are then inconclusive, and event
      // streams report a gap.
      let last = max(seq, snapshot.lastSeq)
      return InboxChanges(
        after: seq, through: last, removed: last - seq, evictedThrough: error.isByReset ? snapshot.lastEvicted : last)
    }
    return InboxChanges(
      records: records, after: seq, through: max(seq, iterator.through),
      removed: max(0, iterator.through - seq - records.count),
      evictedThrough: snapshot.lastEvicted)
  }

  /// Notifies the listeners whom the changes concern. They are read after the changes, because a listener added later
  /// takes a snapshot that contains these changes.
  private func notify(_ changes: InboxChanges) {
    let seq = max(changes.through, changes.emptiedThrough ?? 0)
    let (listeners, byDeviceToken) = state.withLockedValue { state in
      state.notified = max(state.notified, seq)
      // Removed records are missing from the changes, and may concern anybody.
      let concernsAll = changes.removed > 0 || changes.emptiedThrough != nil
      return concernsAll ? (state.listeners, [:]) : (state.ofAllRecords, state.byDeviceToken)
    }
    for listener in listeners.values { listener.inboxDidChange(changes) }
    if !byDeviceToken.isEmpty { notify(byDeviceToken, changes) }
    delivered.store(max(seq, deliveredThrough), ordering: .releasing)
  }

  private func notify(_ byDeviceToken: [PushKey: [any InboxListener]], _ changes: InboxChanges) {
    var concerned: [ObjectIdentifier: (listener: any InboxListener, changes: InboxChanges)] = [:]
    func add(_ record: Record, to list: WritableKeyPath<InboxChanges, [Record]>) {
      guard let key = record.deviceTokenKey, let listeners = byDeviceToken[key] else { return }
      for listener in listeners {
        let none = InboxChanges(after: changes.after, through: changes.through, evictedThrough: changes.evictedThrough)
        concerned[ObjectIdentifier(listener), default: (listener, none)].changes[keyPath: list].append(record)
      }
    }
    for record in changes.records { add(record, to: \.records) }
    for record in changes.updated { add(record, to: \.updated) }
    for (listener, changes) in concerned.values { listener.inboxDidChange(changes) }
  }
}

extension InboxNotifier.State {
  fileprivate mutating func add(_ listener: any InboxListener) {
    let id = ObjectIdentifier(listener)
    listeners[id] = listener
    guard let keys = listener.deviceTokens else { return ofAllRecords[id] = listener }
    for key in keys { byDeviceToken[key, default: []].append(listener) }
  }

  fileprivate mutating func remove(_ listener: any InboxListener) {
    let id = ObjectIdentifier(listener)
    listeners[id] = nil
    ofAllRecords[id] = nil
    for key in listener.deviceTokens ?? [] {
      byDeviceToken[key]?.removeAll { $0 === listener }
      if byDeviceToken[key]?.isEmpty == true { byDeviceToken[key] = nil }
    }
  }
}
