import APNSMockRules
import APNSMockDevices
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// What happens to accepted pushes (Protocol.md, section 11).
struct DeliveryTests {
  /// A registry with the device `anna`, whose app has the token `aa01`, and a log of what happened.
  final class Fixture {
    let registry = DeviceRegistry()
    var settings = APNSSettings()
    var now: Int64 = 1_000_000
    var seq = 0
    var events: [DeliveryEvent] = []

    init(_ state: DeviceState = .online) throws {
      try registry.load(now: 0) { try $0.add(DeviceRegistryTests.device("anna", token: "aa01", state)) }
    }

    /// Sends an accepted push; returns its state. The push's `seq` is the number of pushes so far.
    @discardableResult
    func push(
      to token: String = "aa01", expiration: Int64? = nil, priority: UInt8 = 10, type: PushType = .alert,
      collapse: UInt64? = nil, activity: ActivityContent? = nil, acceptedAt: MonotonicTime = 0
    ) throws -> DeliveryState {
      let match = try #require(token.withBytes { registry.match($0, now: now) })
      seq += 1
      var pushes = [
        AcceptedPush(
          target: match.reference, expiration: expiration, priority: priority, pushType: type, collapseKey: collapse,
          activity: activity, acceptedAt: acceptedAt)
      ]
      events += registry.deliver(&pushes, now: now, settings: settings) { _ in seq }
      return pushes[0].state
    }

    func set(_ state: DeviceState) throws { events += try registry.setState(of: "anna", state, now: now) }

    func broadcast(
      seq: Int, to channel: ChannelName, expiration: Int64, isStored: Bool, acceptedAt: MonotonicTime = 0
    ) {
      let broadcast = Broadcast(
        seq: seq, channel: channel, expiration: expiration, isStored: isStored, acceptedAt: acceptedAt, time: now)
      _ = registry.begin(broadcast)
      registry.deliver(broadcast) { events += $0 }
    }

    func states(of seq: Int) -> [DeliveryState] {
      events.compactMap { if case .changed(seq, let state) = $0 { state } else { nil } }
    }

    var deviceEvents: [DeviceEvent] { events.compactMap { if case .device(let event) = $0 { event } else { nil } } }

    var shown: [Int] { registry.contents(of: "anna")?.shown.map(\.seq) ?? [] }
    var stored: [Int] { registry.contents(of: "anna")?.stored.map(\.seq) ?? [] }
  }

  @Test func onlineDeviceReceivesAtOnce() throws {
    let fixture = try Fixture()
    #expect(try fixture.push() == .delivered)
    #expect(try fixture.push(expiration: 0) == .delivered)
    #expect(fixture.shown == [1, 2])
    #expect(fixture.events.isEmpty)
  }

  @Test func offlineDeviceKeepsTheNewest() throws {
    let fixture = try Fixture(.offline)
    #expect(try fixture.push() == .storedOffline)
    #expect(try fixture.push() == .storedOffline)
    #expect(fixture.events == [.overwrittenInStorage(seq: 1, by: 2)])
    #expect(fixture.stored == [2])
    try fixture.set(.online)
    #expect(fixture.states(of: 2) == [.deliveredFromStorage])
    #expect(fixture.shown == [2])
    #expect(fixture.stored.isEmpty)
    #expect(fixture.registry.log(of: 2)?.map(\.state) == [.storedOffline, .deliveredFromStorage])
  }

  /// Each app has a slot of its own.
  @Test func appsDoNotReplaceEachOthersPushes() throws {
    let fixture = try Fixture(.offline)
    _ = try fixture.registry.install("com.acme.other", .sandbox, on: "anna", replaces: false, now: 0) { "bb01" }
    try fixture.push()
    try fixture.push(to: "bb01")
    #expect(fixture.stored == [1, 2])
    #expect(fixture.events.isEmpty)
  }

  @Test(arguments: [(Int64?.none, true), (0, false), (300, false), (1001, true)])
  func expirationDecidesAboutStorage(_ expiration: Int64?, _ isStored: Bool) throws {
    let fixture = try Fixture(.offline)
    #expect(try fixture.push(expiration: expiration) == (isStored ? .storedOffline : .discardedExpired))
  }

  @Test func storedPushExpiresByTheClock() throws {
    let fixture = try Fixture(.offline)
    try fixture.push(expiration: 1001)
    fixture.now = 1_000_999
    #expect(fixture.registry.advance(to: fixture.now).events.isEmpty)
    fixture.now = 1_001_000
    #expect(fixture.registry.advance(to: fixture.now).events == [.changed(seq: 1, .discardedExpired)])
    try fixture.set(.online)
    #expect(fixture.events.isEmpty)
  }

  @Test func storedPushExpiresAfterThirtyDays() throws {
    let fixture = try Fixture(.offline)
    try fixture.push()
    fixture.now += 30 * 86_400_000
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == [.discardedExpired])
  }

  @Test(arguments: [(UInt8(10), DeliveryState.delivered), (5, .storedForPower), (1, .storedForPower)])
  func restrictedPowerStoresLowPriorities(_ priority: UInt8, _ state: DeliveryState) throws {
    let fixture = try Fixture(.powerRestricted)
    #expect(try fixture.push(priority: priority) == state)
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == (state == .delivered ? [] : [.deliveredFromStorage]))
  }

  @Test func offlineDeviceThatReturnsWithRestrictedPower() throws {
    let fixture = try Fixture(.offline)
    try fixture.push(priority: 5)
    try fixture.set(.powerRestricted)
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == [.storedForPower, .deliveredFromStorage])
  }

  @Test func disabledNotificationsAreDiscarded() throws {
    let fixture = try Fixture(.offline)
    try fixture.push()
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", .disabled)
    #expect(try fixture.push() == .discardedDisabled)
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == [.discardedDisabledFromStorage])
  }

  @Test func removedAppTakesPrecedence() throws {
    let fixture = try Fixture(.offline)
    try fixture.push()
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", .removed)
    #expect(try fixture.push() == .discardedUnregistered)
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == [.discardedUnregisteredFromStorage])
  }

  @Test func reinstallingDiscardsWhatIsStored() throws {
    let fixture = try Fixture(.offline)
    try fixture.push()
    let events = try fixture.registry.install("com.acme.app", nil, on: "anna", replaces: true, now: 0) { "aa02" }.events
    #expect(events == [.changed(seq: 1, .discardedUnregisteredFromStorage)])
    #expect(fixture.stored.isEmpty)
  }

  @Test func sameCollapseKeyReplacesTheShownPush() throws {
    let fixture = try Fixture()
    try fixture.push(collapse: 1)
    try fixture.push()
    try fixture.push(collapse: 1)
    #expect(fixture.shown == [2, 3])
  }

  @Test func onlineQueueKeepsTheNewestUntilItIsAcknowledged() throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    for _ in 1...3 { #expect(try fixture.push() == .received) }
    #expect(
      fixture.events == [
        .overwrittenBeforeAcknowledgement(seq: 1, by: 2), .overwrittenBeforeAcknowledgement(seq: 2, by: 3),
      ])
    #expect(fixture.registry.advance(to: fixture.now + 999).events.isEmpty)
    #expect(fixture.registry.advance(to: fixture.now + 1000).events == [.changed(seq: 3, .delivered)])
    #expect(fixture.shown == [3])
  }

  /// A push that the device acknowledged in time is not overwritten, even if `advance` was not called in between.
  @Test(arguments: [Duration.zero, .seconds(1)]) func acknowledgedPushesAreNotOverwritten(after delay: Duration) throws
  {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    fixture.settings.acknowledgeAfter = delay
    try fixture.push()
    fixture.now += delay.milliseconds
    try fixture.push()
    #expect(fixture.events == [.changed(seq: 1, .delivered)])
    #expect(fixture.shown == [1])
  }

  /// A stored push that has expired is discarded, not overwritten, even if `advance` was not called in between.
  @Test func expiredPushesAreNotOverwritten() throws {
    let fixture = try Fixture(.offline)
    try fixture.push(expiration: fixture.now / 1000 + 5)
    fixture.now += 5000
    try fixture.push()
    #expect(fixture.events == [.changed(seq: 1, .discardedExpired)])
    #expect(fixture.stored == [2])
  }

  /// A push beyond a budget is acknowledged like any other, so that its state does not stay `received`.
  @Test func pushesBeyondABudgetAreAcknowledged() throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    fixture.settings.liveActivityBudget = DeviceRate(count: 1, per: .seconds(3600))
    try fixture.push(type: .liveactivity)
    try fixture.push(type: .liveactivity)
    #expect(fixture.events == [.changed(seq: 2, .delivered), .overBudget(seq: 2)])
    #expect(fixture.registry.advance(to: fixture.now + 1000).events == [.changed(seq: 1, .delivered)])
  }

  @Test func budgetsLimitPushesPerPeriod() throws {
    let fixture = try Fixture()
    fixture.settings.liveActivityBudget = DeviceRate(count: 3, per: .seconds(3600))
    fixture.settings.pushToStartBudget = DeviceRate(count: 1, per: .seconds(60))
    for _ in 1...4 { #expect(try fixture.push(type: .liveactivity) == .delivered) }
    let start = ActivityTests.content(.start, at: fixture.now)
    for _ in 5...6 { try fixture.push(type: .liveactivity, activity: start) }
    #expect(fixture.events == [.overBudget(seq: 4), .overBudget(seq: 6)])
    fixture.now += 3_600_000
    try fixture.push(type: .liveactivity)
    #expect(fixture.events.count == 2)
  }

  @Test func deviceKeepsTheNewest64() throws {
    let fixture = try Fixture()
    for count in 1...200 {
      try fixture.push()
      #expect(fixture.shown == Array(max(1, count - 63)...count))
    }
    // One that replaces another leaves the number as it is.
    try fixture.push(collapse: 1)
    try fixture.push(collapse: 1)
    #expect(fixture.shown == Array(138...200) + [202])
  }

  /// Refused permission concerns what is shown.
  @Test(arguments: PushType.allCases) func disabledNotificationsAreDeliveredToTheApp(_ type: PushType) throws {
    let isShown = type == .alert || type == .liveactivity
    let fixture = try Fixture()
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", .disabled)
    #expect(try fixture.push(type: type) == (isShown ? .discardedDisabled : .delivered))
    try fixture.set(.offline)
    #expect(try fixture.push(type: type) == (isShown ? .discardedDisabled : .storedOffline))
    try fixture.set(.online)
    #expect(fixture.states(of: 2) == (isShown ? [] : [.deliveredFromStorage]))
    #expect(fixture.shown.isEmpty)
  }

  @Test func logIsKeptForSevenDays() {
    let week: Int64 = 7 * 86_400_000
    #expect(!DeviceRegistry.hasForgottenLog(endedAt: 5, now: 5 + week - 1))
    #expect(DeviceRegistry.hasForgottenLog(endedAt: 5, now: 5 + week))
    #expect(!DeviceRegistry.hasForgottenLog(endedAt: 5, now: 0))
    #expect(!DeviceRegistry.hasForgottenLog(endedAt: .max, now: .max - 1))
  }

  @Test func watchedDeviceReports() throws {
    let fixture = try Fixture(.offline)
    try fixture.registry.beginWatching("anna")
    try fixture.push(type: .background)
    try fixture.set(.online)
    try fixture.push()
    let received = fixture.deviceEvents
    #expect(received.map(\.seq) == [1, 2])
    #expect(received.map(\.state) == [.deliveredFromStorage, .delivered])
    #expect(
      received.allSatisfy {
        $0.kind == .notification && $0.deviceID == "anna" && $0.bundleID == "com.acme.app" && $0.environment == .sandbox
      })
    fixture.registry.endWatching("anna")
    fixture.events = []
    try fixture.push()
    #expect(fixture.events.isEmpty)
    fixture.registry.beginWatchingAll()
    try fixture.push()
    #expect(fixture.deviceEvents.map(\.seq) == [4])
    fixture.registry.reset()
    fixture.registry.endWatchingAll()
  }

  @Test(arguments: [true, false]) func broadcastsReachSubscribers(_ isStored: Bool) throws {
    let fixture = try Fixture(.offline)
    let channel = ChannelName(bundleID: "com.acme.app", environment: .sandbox, id: "dHN0")
    try fixture.registry.subscribe("anna", to: channel)
    #expect(fixture.registry.subscriptions(of: "anna") == [channel])
    for seq in 1...2 {
      fixture.broadcast(seq: seq, to: channel, expiration: 2000, isStored: isStored)
    }
    try fixture.set(.online)
    #expect(fixture.shown == (isStored ? [2] : []))
    #expect(
      fixture.registry.log(of: 2)?.map(\.state)
        == (isStored ? [.received, .storedOffline, .deliveredFromStorage] : [.received, .discardedExpired]))
    fixture.broadcast(seq: 3, to: channel, expiration: 2000, isStored: isStored)
    #expect(fixture.shown.last == 3)
    #expect(fixture.registry.unsubscribe("anna", from: channel))
    fixture.broadcast(seq: 4, to: channel, expiration: 2000, isStored: isStored)
    #expect(fixture.shown.last == 3)
  }
}
