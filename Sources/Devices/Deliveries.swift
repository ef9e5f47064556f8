package import APNSMockNotation
package import APNSMockRules

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
  /// The content of a Live Activity push; nil for other pushes and for one that the device ignores.
  package let activity: ActivityContent?
  /// When the push was accepted, in monotonic nanoseconds of machine time.
  package var acceptedAt: MonotonicTime
  /// The state that follows from the push and its device; set by `DeviceRegistry.deliver`.
  package internal(set) var state = DeliveryState.received
  /// How long the system of the device holds the push; nil if it does not.
  var hold: Hold?

  /// The end of the time for which the system of a device holds a background push (Protocol.md, section 6.4).
  enum Hold: Sendable, Equatable {
    /// The app was force-quit.
    case untilLaunch
    /// The app has no budget left until this time, in milliseconds since 1970.
    case until(ServerTime)

    /// The time; nil for a launch.
    var due: ServerTime? { if case .until(let time) = self { time } else { nil } }
  }

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

/// Why the system of a device that is not offline holds an accepted push. The names are those of the API.
package enum HoldCause: String, CaseIterable, Sendable {
  /// The device saves power.
  case powerRestricted = "power_restricted"
  /// The app was force-quit: a background push waits for its launch.
  case forceQuit = "force_quit"
  /// The app has no budget left for background pushes.
  case backgroundBudget = "background_budget"
}

extension AcceptedPush.Hold {
  var cause: HoldCause { self == .untilLaunch ? .forceQuit : .backgroundBudget }
}

/// An effect of a delivery or of a change of a device on records, findings or listeners.
package enum DeliveryEvent: Sendable, Equatable {
  /// The delivery state of a push has changed.
  case changed(seq: Int, DeliveryState)
  /// A stored push was replaced by a newer one.
  case overwrittenInStorage(seq: Int, by: Int)
  /// A push was replaced by a newer one before the device had acknowledged it.
  case overwrittenBeforeAcknowledgement(seq: Int, by: Int)
  /// The device held or ignored a push, because it exceeds a budget.
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
  /// The number of shown pushes that a device keeps, the newest ones.
  static let shownLimit = 64
  /// How long the delivery log of a push is kept after its last entry, by the server's clock (Protocol.md, section 11,
  /// documented as 7 days).
  static let logRetention: Int64 = 7 * 86_400_000
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
    /// `apns-push-type`; nil without one.
    var type: PushType?

    var acceptance: Acceptance { Acceptance(time: acceptedAt, seq: seq) }

    init(_ push: AcceptedPush, seq: Int) {
      self.init(
        seq: seq, acceptedAt: push.acceptedAt, installation: push.target.installation, collapseKey: push.collapseKey,
        isShown: push.pushType == nil || push.pushType == .alert || push.activity != nil,
        type: push.pushType)
    }

    init(
      seq: Int, acceptedAt: MonotonicTime, installation: Index, collapseKey: UInt64?, isShown: Bool = true,
      type: PushType?
    ) {
      self.seq = seq
      self.acceptedAt = acceptedAt
      self.installation = installation
      self.collapseKey = collapseKey
      self.isShown = isShown
      self.type = type
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

  /// The newest broadcast of a channel that stores one.
  struct StoredBroadcast: Sendable {
    var channel: ChannelName
    var acceptance: Acceptance
    /// Milliseconds since 1970.
    var expiresAt: ServerTime
  }

  /// The stored pushes by `storageKey`, due when they expire.
  var storedPushes = DueTable<StoredPush>()
  var shown: [Index: [DevicePush]] = [:]
  /// The pushes that online devices have not acknowledged yet, by device.
  var unacknowledged = DueTable<UnacknowledgedPush>()
  /// The background pushes that the systems of devices hold, by installation.
  var heldPushes = DueTable<DevicePush>()
  /// When ended Live Activities disappear, by their tokens. Some entries are of activities that are gone.
  var dismissals = DueTimes()
  var budgets: [BudgetKey: Budget] = [:]
  /// The devices with listeners of their own, and how many there are.
  var watched: [Index: Int] = [:]
  /// The number of listeners to all devices.
  var watchingAll = 0
  /// The newest broadcast of a channel that each subscriber has received, or that was discarded for it.
  var subscribers: [ChannelName: [Index: Acceptance]] = [:]
  private(set) var storedBroadcasts: [ChannelName: StoredBroadcast] = [:]
  /// Stored broadcasts by `seq`, due when they expire, but for those that a newer one replaced before.
  private var expiringBroadcasts = DueTable<StoredBroadcast>()
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

  /// Whether a user who refused the permission for notifications does not get pushes of a type: those that are shown. Others
  /// are delivered to the app (Protocol.md, section 11).
  static func needsPermission(_ type: PushType?) -> Bool { type == nil || type == .alert || type == .liveactivity }

  /// Stores a broadcast for devices that are offline, unless the channel stores a newer one.
  mutating func store(_ broadcast: StoredBroadcast, now: ServerTime) {
    if let former = storedBroadcasts[broadcast.channel] {
      guard former.acceptance < broadcast.acceptance else { return }
      if former.expiresAt > now { expiringBroadcasts.remove(UInt64(former.acceptance.seq)) }
    }
    storedBroadcasts[broadcast.channel] = broadcast
    expiringBroadcasts.set(broadcast, at: UInt64(broadcast.acceptance.seq), due: broadcast.expiresAt)
  }

  /// Whether a stored push or broadcast may have expired, a device may have acknowledged a push, or the time of one that is
  /// held may have come, or a Live Activity may disappear.
  func isDue(at now: ServerTime) -> Bool {
    storedPushes.isDue(at: now) || unacknowledged.isDue(at: now) || heldPushes.isDue(at: now)
      || expiringBroadcasts.isDue(at: now) || dismissals.isDue(at: now)
  }

  /// What is due at a time.
  struct Due {
    /// The stored pushes that have expired.
    var expired: [StoredPush]
    /// The pushes that devices have acknowledged.
    var acknowledged: [UnacknowledgedPush]
    /// The pushes that are no longer held.
    var released: [DevicePush]
    /// The stored broadcasts that have expired.
    var expiredBroadcasts: [StoredBroadcast]
    /// The tokens of Live Activities that may have to disappear.
    var dismissed: [Index] = []
  }

  /// Removes and returns what is due by now.
  ///
  /// - Parameter limit: The maximum number of due times to examine. Some may be of pushes that have left already, so that
  ///   nothing is returned although `isDue`.
  mutating func takeDue(at now: ServerTime, limit: Int) -> Due {
    var limit = limit
    var due = Due(
      expired: storedPushes.takeDue(at: now, limit: &limit),
      acknowledged: unacknowledged.takeDue(at: now, limit: &limit),
      released: heldPushes.takeDue(at: now, limit: &limit),
      expiredBroadcasts: expiringBroadcasts.takeDue(at: now, limit: &limit))
    while limit > 0, let token = dismissals.popFirst(dueAt: now) {
      due.dismissed.append(Index(token))
      limit -= 1
    }
    for broadcast in due.expiredBroadcasts
    where storedBroadcasts[broadcast.channel]?.acceptance == broadcast.acceptance {
      storedBroadcasts[broadcast.channel] = nil
    }
    return due
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

  /// Changes the token of the pushes that wait for a device: it was replaced by another one, or removed.
  mutating func retarget(_ token: Index, to other: Index, of installation: Index, on device: Index) {
    func change(_ activity: inout ActivityPush?) { if activity?.token == token { activity?.token = other } }
    storedPushes.update(Self.storageKey(installation, kind: .liveactivity)) { change(&$0.activity) }
    unacknowledged.update(UInt64(device)) { change(&$0.activity) }
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
    if list.count >= shownLimit { list.removeFirst(list.count - shownLimit + 1) }
    list.append(push)
  }

  /// Forgets everything about a device.
  mutating func forget(device: Index) {
    shown[device] = nil
    unacknowledged.remove(UInt64(device))
  }

  /// Forgets everything about an app on a device.
  mutating func forget(installation: Index, on device: Index) {
    for key in Self.storageKeys(installation) { storedPushes.remove(key) }
    heldPushes.remove(UInt64(installation))
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

  /// Returns until when the system of a device holds a background push that exceeds the app's budget; nil if it does not exceed
  /// it. Counts the push.
  mutating func backgroundHold(_ rate: DeviceRate?, of installation: Index, now: ServerTime) -> AcceptedPush.Hold? {
    guard let rate, exceeds(rate, .background, of: installation, now: now) else { return nil }
    let start = budgets[BudgetKey(installation: installation, kind: .background)]?.start ?? now
    return .until(start.addingClamped(rate.per.milliseconds))
  }

  /// Counts a background push that was held until now toward the period that begins now.
  mutating func countReleased(_ push: DevicePush, now: ServerTime) {
    budgets[BudgetKey(installation: push.installation, kind: .background)] = Budget(start: now, count: 1)
  }
}
