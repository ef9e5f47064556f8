package import Notation
package import APNSRules

/// The properties of an accepted push to a registered token that its delivery depends on.
package struct AcceptedPush: Sendable {
  /// The token and the app that it belongs to.
  package let target: DeviceRegistry.TokenReference
  /// The position of the push's record among those that are recorded together.
  package private(set) var position = 0
  /// `apns-expiration` in seconds since 1970; nil without one.
  package let expiration: Int64?
  /// 10, 5 or 1.
  package let priority: UInt8
  /// `apns-push-type`; nil without one.
  package let pushType: PushType?
  /// A hash of `apns-collapse-id`; nil without one.
  package let collapseKey: UInt64?
  /// What a Live Activity push tells the device; nil for other pushes and for one that the device ignores.
  package let activity: ActivityContent?
  /// When the push was accepted, in monotonic nanoseconds of machine time.
  package var acceptedAt: MonotonicTime
  /// The state that follows from the push and its device; set by `DeviceRegistry.deliver`.
  package internal(set) var state = DeliveryState.received

  /// Creates a description of an accepted push.
  package init(
    target: DeviceRegistry.TokenReference, expiration: Int64?, priority: UInt8, pushType: PushType?,
    collapseKey: UInt64? = nil, activity: ActivityContent? = nil, acceptedAt: MonotonicTime = 0
  ) {
    self.target = target
    self.expiration = expiration
    self.priority = priority
    self.pushType = pushType
    self.collapseKey = collapseKey
    self.activity = activity
    self.acceptedAt = acceptedAt
  }

  /// Returns the push with the position of its record.
  package func at(_ position: Int) -> AcceptedPush {
    var push = self
    push.position = position
    return push
  }
}

/// An effect of a delivery or of a change of a device on records, findings or listeners.
package enum DeliveryEvent: Sendable, Equatable {
  /// The delivery state of a push has changed.
  case changed(seq: Int, DeliveryState)
  /// A stored push was replaced by a newer one.
  case overwrittenInStorage(seq: Int, by: Int)
  /// A push was replaced by a newer one before the device had acknowledged it.
  case overwrittenBeforeAcknowledgement(seq: Int, by: Int)
  /// The device ignored a push, because it exceeds a budget.
  case overBudget(seq: Int)
  /// The device ignored a Live Activity push, because of its token or of an earlier push, whose `seq` is given.
  case notShown(seq: Int, DisplayProblem, by: Int?)
  /// Something happened on a device that is watched.
  case device(DeviceEvent)
}

/// An accepted broadcast to the subscribers of a channel.
package struct Broadcast: Sendable {
  /// The `seq` of its record in the inbox.
  package let seq: Int
  package let channel: ChannelName
  /// `apns-expiration` in seconds since 1970.
  package let expiration: Int64
  /// Whether the channel's message storage policy is 1: devices that are offline get the newest broadcast later.
  package let isStored: Bool
  /// When it was accepted, in monotonic nanoseconds of machine time.
  package let acceptedAt: MonotonicTime
  /// When it was accepted, in milliseconds since 1970 by the server's clock.
  package let time: ServerTime

  /// Creates a description of an accepted broadcast.
  package init(
    seq: Int, channel: ChannelName, expiration: Int64, isStored: Bool, acceptedAt: MonotonicTime = 0, time: ServerTime
  ) {
    self.seq = seq
    self.channel = channel
    self.expiration = expiration
    self.isStored = isStored
    self.acceptedAt = acceptedAt
    self.time = time
  }

  var acceptance: Deliveries.Acceptance { Deliveries.Acceptance(time: acceptedAt, seq: seq) }
}

/// An entry in the delivery log of a push.
package struct DeliveryLogEntry: Sendable, Equatable {
  package let state: DeliveryState
  /// Milliseconds since 1970 by the server's clock.
  package let time: Int64
  /// The device, for broadcasts; nil for a push to one token.
  package let deviceID: String?

  /// Creates an entry.
  package init(state: DeliveryState, time: Int64, deviceID: String? = nil) {
    self.state = state
    self.time = time
    self.deviceID = deviceID
  }
}

/// A channel of an app in an environment.
package struct ChannelName: Hashable, Sendable {
  package let bundleID: String
  package let environment: PushEnvironment
  /// The channel id in Base64.
  package let id: String

  /// Creates the name of a channel.
  package init(bundleID: String, environment: PushEnvironment, id: String) {
    self.bundleID = bundleID
    self.environment = environment
    self.id = id
  }
}

/// The stored pushes and shown notifications of all devices. Pushes are identified by `seq`.
struct Deliveries: Sendable {
  typealias Index = DeviceTables.Index

  /// The maximum time a push is stored (Protocol.md, section 11, documented as 30 days).
  static let longestStorage: Int64 = 30 * 86_400_000
  /// The maximum time a broadcast is stored (Protocol.md, section 10, documented as 8 hours).
  static let longestBroadcastStorage: Int64 = 8 * 3_600_000
  /// The maximum time for which an ended Live Activity stays on the screen (Protocol.md, section 6.3, documented).
  static let longestDismissal: Int64 = 4 * 3_600_000
  /// The number of notifications that a device keeps at least; older ones are removed when there are twice as many.
  static let shownLimit = 32
  /// The maximum number of pushes with a delivery log.
  static let logLimit = 100_000
  /// The number of devices in the log of a broadcast.
  static let broadcastLogLimit = 1_000

  /// A stored push. APNs stores one for each app on a device (Protocol.md, section 11, documented); pushes to topics
  /// with different suffixes do not replace each other (our inference).
  struct StoredPush: Sendable {
    var push: DevicePush
    /// Milliseconds since 1970.
    var expiresAt: ServerTime
    var priority: UInt8
    var activity: ActivityPush?
  }

  /// A push that an online device has not acknowledged.
  struct UnacknowledgedPush: Sendable {
    var push: DevicePush
    var activity: ActivityPush?
    /// When the device acknowledges it.
    var due: ServerTime
  }

  struct DevicePush: Sendable {
    var seq: Int
    var acceptedAt: MonotonicTime
    var installation: Index
    var collapseKey: UInt64?
    /// Whether the device shows it.
    var isShown: Bool
    /// The token of the Live Activity that shows it; `none` for other notifications.
    var activity = DeviceTables.none

    var acceptance: Acceptance { Acceptance(time: acceptedAt, seq: seq) }

    init(_ push: AcceptedPush, seq: Int) {
      self.init(
        seq: seq, acceptedAt: push.acceptedAt, installation: push.target.installation, collapseKey: push.collapseKey,
        isShown: push.pushType == nil || push.pushType == .alert || push.activity != nil)
    }

    init(seq: Int, acceptedAt: MonotonicTime, installation: Index, collapseKey: UInt64?, isShown: Bool = true) {
      self.seq = seq
      self.acceptedAt = acceptedAt
      self.installation = installation
      self.collapseKey = collapseKey
      self.isShown = isShown
    }
  }

  /// When a push was accepted. Pushes may have the same time, but not the same `seq`.
  struct Acceptance: Comparable {
    var time: MonotonicTime
    var seq: Int

    static func < (one: Acceptance, other: Acceptance) -> Bool { (one.time, one.seq) < (other.time, other.seq) }
  }

  /// The counted pushes of the current period of a budget.
  struct Budget: Sendable {
    var start: ServerTime
    var count: Int
  }

  struct BudgetKey: Hashable {
    enum Kind { case background, activityUpdate, activityStart }
    let installation: Index
    let kind: Kind
  }

  /// The stored pushes by `storageKey`.
  private(set) var storedPushes: [UInt64: StoredPush] = [:]
  /// When stored pushes expire, by `storageKey`. Some entries are of pushes that are not stored any more.
  private var expiries = DueTimes()
  var shown: [Index: [DevicePush]] = [:]
  /// The pushes that online devices have not acknowledged yet.
  private(set) var unacknowledged: [Index: UnacknowledgedPush] = [:]
  /// When devices acknowledge, by index. Some entries are of devices that have acknowledged already.
  private var acknowledgements = DueTimes()
  /// When ended Live Activities disappear, by their tokens. Some entries are of activities that are gone.
  var dismissals = DueTimes()
  var budgets: [BudgetKey: Budget] = [:]
  /// The devices with listeners of their own, and how many there are.
  var watched: [Index: Int] = [:]
  /// The number of listeners to all devices.
  var watchingAll = 0
  /// The newest broadcast that each subscriber of a channel has received.
  var subscribers: [ChannelName: [Index: Acceptance]] = [:]
  /// The newest broadcast of a channel that stores one.
  var storedBroadcasts: [ChannelName: (acceptance: Acceptance, expiresAt: ServerTime)] = [:]
  /// The logs of pushes whose state changed after they were recorded.
  private(set) var log: [Int: [DeliveryLogEntry]] = [:]
  /// The pushes with logs, oldest first, after `removedLogs` whose logs were removed.
  private var logOrder: [Int] = []
  private var removedLogs = 0

  /// Returns the key of the slot of an app for a kind of tokens.
  static func storageKey(_ installation: Index, kind: TokenKind?) -> UInt64 {
    let group = kind.map { $0.pushType.topicSuffix.isEmpty ? 0 : Int($0.pushType.rawValue) + 1 } ?? 0
    return UInt64(installation) << 8 | UInt64(group)
  }

  /// The keys of all slots of an app.
  static func storageKeys(_ installation: Index) -> some Sequence<UInt64> {
    (0...UInt64(PushType.allCases.count)).lazy.map { UInt64(installation) << 8 | $0 }
  }

  mutating func add(_ entry: DeliveryLogEntry, to seq: Int) {
    if log[seq] == nil {
      logOrder.append(seq)
      // One at a time, because pushes wait for this.
      if log.count >= Self.logLimit {
        log[logOrder[removedLogs]] = nil
        removedLogs += 1
      }
      if removedLogs >= Self.logLimit {
        logOrder.removeFirst(removedLogs)
        removedLogs = 0
      }
    }
    if entry.deviceID != nil, log[seq, default: []].count >= Self.broadcastLogLimit { return }
    log[seq, default: []].append(entry)
  }

  /// Stores a push in place of the one with the same key.
  mutating func store(_ push: StoredPush, at key: UInt64) {
    storedPushes[key] = push
    expiries.add(key, at: push.expiresAt)
    if expiries.isSparse(for: storedPushes.count) {
      expiries = DueTimes(storedPushes.lazy.map { ($0.key, $0.value.expiresAt) })
    }
  }

  /// Removes and returns the stored push with this key; nil if there is none.
  mutating func removeStored(_ key: UInt64) -> StoredPush? { storedPushes.removeValue(forKey: key) }

  /// Notes that a device has received a push and acknowledges it later.
  mutating func awaitAcknowledgement(of push: UnacknowledgedPush, on device: Index) {
    unacknowledged[device] = push
    acknowledgements.add(UInt64(device), at: push.due)
    if acknowledgements.isSparse(for: unacknowledged.count) {
      acknowledgements = DueTimes(unacknowledged.lazy.map { (UInt64($0.key), $0.value.due) })
    }
  }

  /// Removes and returns the push that a device has not acknowledged; nil if there is none.
  mutating func removeUnacknowledged(on device: Index) -> UnacknowledgedPush? {
    unacknowledged.removeValue(forKey: device)
  }

  /// Whether a stored push may have expired, a device may have acknowledged one, or a Live Activity may disappear.
  func isDue(at now: ServerTime) -> Bool {
    expiries.isDue(at: now) || acknowledgements.isDue(at: now) || dismissals.isDue(at: now)
  }

  /// Removes and returns stored pushes that have expired, and returns devices that have acknowledged a push by now, and tokens
  /// of Live Activities that may have to disappear.
  ///
  /// - Parameter limit: The maximum number of due times to examine. Some may be of pushes that have left already, so that
  ///   nothing is returned although `isDue`.
  mutating func takeDue(
    at now: ServerTime, limit: Int
  ) -> (expired: [StoredPush], acknowledging: [Index], dismissed: [Index]) {
    var (expired, acknowledging, dismissed): ([StoredPush], [Index], [Index]) = ([], [], [])
    for _ in 0..<limit {
      if let key = expiries.popFirst(dueAt: now) {
        guard let stored = storedPushes[key], stored.expiresAt <= now else { continue }
        storedPushes[key] = nil
        expired.append(stored)
      } else if let key = acknowledgements.popFirst(dueAt: now) {
        guard let waiting = unacknowledged[Index(key)], waiting.due <= now else { continue }
        acknowledging.append(Index(key))
      } else if let key = dismissals.popFirst(dueAt: now) {
        dismissed.append(Index(key))
      } else {
        break
      }
    }
    return (expired, acknowledging, dismissed)
  }

  mutating func show(_ push: DevicePush, on device: Index) { Self.add(push, to: &shown[device, default: []]) }

  /// Removes a Live Activity from those that a device shows.
  mutating func hideActivity(_ token: Index, on device: Index) { shown[device]?.removeAll { $0.activity == token } }

  /// Changes the token of a Live Activity that a device shows.
  mutating func moveActivity(_ token: Index, to other: Index, on device: Index) {
    for index in shown[device]?.indices ?? 0..<0 where shown[device]?[index].activity == token {
      shown[device]?[index].activity = other
    }
  }

  /// Whether there are listeners to a device.
  func isWatched(_ device: Index) -> Bool {
    device != DeviceTables.none && (watchingAll > 0 || !watched.isEmpty && watched[device] != nil)
  }

  /// Adds a push to those that a device shows. It replaces one of the same app with the same collapse id, and of a Live Activity
  /// what it showed before.
  private static func add(_ push: DevicePush, to list: inout [DevicePush]) {
    if push.activity != DeviceTables.none { list.removeAll { $0.activity == push.activity } }
    if let key = push.collapseKey {
      func isSame(_ other: DevicePush) -> Bool { other.collapseKey == key && other.installation == push.installation }
      list.removeAll(where: isSame)
    }
    // Half of them at once, so that most pushes move nothing.
    if list.count >= 2 * shownLimit { list.removeFirst(shownLimit) }
    list.append(push)
  }

  /// Forgets everything about a device.
  mutating func forget(device: Index) {
    shown[device] = nil
    unacknowledged[device] = nil
  }

  /// Forgets everything about an app on a device.
  mutating func forget(installation: Index, on device: Index) {
    for key in Self.storageKeys(installation) { storedPushes[key] = nil }
    for kind in [BudgetKey.Kind.background, .activityUpdate, .activityStart] {
      budgets[BudgetKey(installation: installation, kind: kind)] = nil
    }
    shown[device]?.removeAll { $0.installation == installation }
    for channel in subscribers.keys { subscribers[channel]?[installation] = nil }
  }

  /// Counts a push and returns whether it exceeds the budget.
  mutating func exceeds(
    _ rate: DeviceRate?, _ kind: BudgetKey.Kind, of installation: Index, now: ServerTime
  ) -> Bool {
    guard let rate else { return false }
    let key = BudgetKey(installation: installation, kind: kind)
    var budget = budgets[key] ?? Budget(start: now, count: 0)
    if now &- budget.start >= rate.per.milliseconds || now < budget.start { budget = Budget(start: now, count: 0) }
    budget.count += 1
    budgets[key] = budget
    return budget.count > rate.count
  }
}

/// Times at which something is due for a key, such as the expiry of a stored push: a binary heap.
///
/// An entry stays until its time when it has no object any more, so who takes one checks whether it still holds.
struct DueTimes: Sendable {
  private typealias Entry = (time: ServerTime, key: UInt64)

  private var heap: [Entry] = []

  /// Creates an empty list.
  init() {}

  /// Creates a list with these entries.
  init(_ entries: some Sequence<(UInt64, ServerTime)>) {
    heap = entries.map { key, time in (time, key) }
    for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(from: index) }
  }

  /// Whether most entries have no object any more, if there are `count` objects.
  func isSparse(for count: Int) -> Bool { heap.count > 2 * count + 1024 }

  /// Whether the earliest time has come.
  func isDue(at now: ServerTime) -> Bool { heap.first.map { $0.time <= now } ?? false }

  mutating func add(_ key: UInt64, at time: ServerTime) {
    var index = heap.count
    heap.append((time, key))
    while index > 0, heap[index] < heap[(index - 1) / 2] {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Removes the earliest entry, of equal ones that with the smallest key, and returns its key; nil if none is due.
  mutating func popFirst(dueAt now: ServerTime) -> UInt64? {
    guard let first = heap.first, first.time <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink(from: 0)
    }
    return first.key
  }

  private mutating func sink(from start: Int) {
    var index = start
    while true {
      var least = index
      for child in 2 * index + 1...2 * index + 2 where child < heap.count && heap[child] < heap[least] { least = child }
      guard least != index else { return }
      heap.swapAt(index, least)
      index = least
    }
  }
}
