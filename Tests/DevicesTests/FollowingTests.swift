import APNSRules
import Devices
import Notation
import TestSupport
import Testing

/// What a registry does with the deliveries of another server that shares the inbox.
struct FollowingTests {
  private typealias Fixture = DeliveryTests.Fixture

  private func follow(
    _ state: DeliveryState, seq: Int, collapse: UInt64? = nil, acceptedAt: MonotonicTime? = nil, in fixture: Fixture
  ) throws -> [DeliveryEvent] {
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: fixture.now) })
    let push = AcceptedPush(
      target: match.reference, expiration: nil, priority: 10, pushType: .alert, collapseKey: collapse,
      acceptedAt: acceptedAt ?? Int64(seq))
    return fixture.registry.follow(push, in: state, seq: seq, now: fixture.now, settings: fixture.settings)
  }

  private func follow(changeOf seq: Int, to state: DeliveryState, in fixture: Fixture) throws -> [DeliveryEvent] {
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: fixture.now) })
    return fixture.registry.follow(changeOf: seq, to: state, of: match.reference, now: fixture.now)
  }

  @Test func deviceShowsThePushesOfBothServers() throws {
    let fixture = try Fixture()
    try fixture.push()
    #expect(try follow(.delivered, seq: 2, collapse: 7, in: fixture).isEmpty)
    #expect(try follow(.delivered, seq: 3, collapse: 7, in: fixture).isEmpty)
    #expect(fixture.shown == [1, 3])
  }

  @Test func serverThatStoredAPushChangesItsRecord() throws {
    let fixture = try Fixture(.offline)
    #expect(try follow(.storedOffline, seq: 1, in: fixture).isEmpty)
    #expect(fixture.stored == [1])
    try fixture.set(.online)
    #expect(fixture.events.isEmpty)
    #expect(fixture.shown == [1])
    // The record of the other server changes a little later.
    #expect(try follow(changeOf: 1, to: .deliveredFromStorage, in: fixture).isEmpty)
    #expect(fixture.shown == [1])
  }

  @Test(arguments: [(DeliveryState.deliveredFromStorage, [1]), (.discardedExpired, []), (.storedForPower, [])])
  func changedRecordEndsTheStorage(state: DeliveryState, shown: [Int]) throws {
    let fixture = try Fixture(.offline)
    _ = try follow(.storedOffline, seq: 1, in: fixture)
    #expect(try follow(changeOf: 2, to: state, in: fixture).isEmpty)
    #expect(fixture.stored == [1])
    #expect(try follow(changeOf: 1, to: state, in: fixture).isEmpty)
    #expect(fixture.shown == shown)
    #expect(fixture.stored == (state.isFinal ? [] : [1]))
  }

  @Test func storedPushOfTheOtherServerIsReplaced() throws {
    let fixture = try Fixture(.offline)
    _ = try follow(.storedOffline, seq: 7, in: fixture)
    fixture.seq = 7
    try fixture.push(acceptedAt: 100)
    #expect(fixture.events == [.overwrittenInStorage(seq: 7, by: 8)])
    #expect(fixture.stored == [8])
  }

  @Test func newerPushStaysWhicheverServerHasIt() throws {
    let fixture = try Fixture(.offline)
    fixture.seq = 6
    try fixture.push(acceptedAt: 200)
    #expect(
      try follow(.storedOffline, seq: 9, acceptedAt: 100, in: fixture) == [.overwrittenInStorage(seq: 9, by: 7)])
    #expect(fixture.stored == [7])
    #expect(
      try follow(.storedOffline, seq: 10, acceptedAt: 300, in: fixture) == [.overwrittenInStorage(seq: 7, by: 10)])
    #expect(fixture.stored == [10])
  }

  /// A push of this server may have been accepted before one that has arrived from another server already.
  @Test func olderPushOfThisServerIsOverwritten() throws {
    let fixture = try Fixture(.offline)
    _ = try follow(.storedOffline, seq: 9, acceptedAt: 300, in: fixture)
    fixture.seq = 9
    try fixture.push(acceptedAt: 200)
    #expect(fixture.events == [.overwrittenInStorage(seq: 10, by: 9)])
    #expect(fixture.stored == [9])
  }

  @Test(arguments: [true, false])
  func newerPushWaitsForItsAcknowledgementWhicheverServerHasIt(isOwn: Bool) throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    if isOwn {
      try fixture.push(acceptedAt: 200)
      fixture.events += try follow(.received, seq: 9, acceptedAt: 100, in: fixture)
      #expect(fixture.events == [.overwrittenBeforeAcknowledgement(seq: 9, by: 1)])
    } else {
      fixture.events += try follow(.received, seq: 9, acceptedAt: 200, in: fixture)
      try fixture.push(acceptedAt: 100)
      #expect(fixture.events == [.overwrittenBeforeAcknowledgement(seq: 1, by: 9)])
    }
    _ = fixture.registry.advance(to: fixture.now + 60_000)
    #expect(fixture.shown == [isOwn ? 1 : 9])
  }

  /// It was acknowledged on its server before the newer push was accepted, but its record was read late.
  @Test func olderPushThatWasAcknowledgedIsShown() throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    let before = fixture.now
    fixture.now += 60_000
    try fixture.push(acceptedAt: 200)
    fixture.now = before
    #expect(try follow(.received, seq: 9, acceptedAt: 100, in: fixture).isEmpty)
    _ = fixture.registry.advance(to: before + 120_000)
    #expect(fixture.shown.sorted() == [1, 9])
  }

  @Test func newerNotificationStaysWhicheverServerHasIt() throws {
    let fixture = try Fixture()
    try fixture.push(collapse: 5, acceptedAt: 200)
    _ = try follow(.delivered, seq: 9, collapse: 5, acceptedAt: 100, in: fixture)
    #expect(fixture.shown == [1])
    _ = try follow(.delivered, seq: 10, collapse: 5, acceptedAt: 300, in: fixture)
    #expect(fixture.shown == [10])
    fixture.seq = 10
    try fixture.push(collapse: 5, acceptedAt: 250)
    #expect(fixture.shown == [10])
  }

  /// The other server may have delivered it before its record was read for the first time.
  @Test func pushThatWasStoredAndDeliveredIsShown() throws {
    let fixture = try Fixture(.offline)
    _ = try follow(.deliveredFromStorage, seq: 1, in: fixture)
    #expect(fixture.shown == [1] && fixture.stored.isEmpty)
  }

  /// The numbers of own broadcasts are larger than any `seq` until they have one.
  @Test func broadcastsAreComparedByTheTimeOfTheirAcceptance() throws {
    let fixture = try Fixture()
    let channel = ChannelName(bundleID: "com.acme.app", environment: .sandbox, id: "AAAA")
    try fixture.registry.subscribe("anna", to: channel)
    func send(seq: Int, acceptedAt: MonotonicTime) {
      fixture.broadcast(seq: seq, to: channel, expiration: 5_000, isStored: true, acceptedAt: acceptedAt)
    }
    send(seq: 1 << 52, acceptedAt: 100)
    try fixture.set(.offline)
    send(seq: 7, acceptedAt: 200)
    try fixture.set(.online)
    #expect(fixture.shown == [1 << 52, 7])
    try fixture.set(.offline)
    try fixture.set(.online)
    #expect(fixture.shown == [1 << 52, 7])
    // One that was accepted earlier does not make the device get the stored one again.
    send(seq: 6, acceptedAt: 150)
    try fixture.set(.offline)
    try fixture.set(.online)
    #expect(fixture.shown == [1 << 52, 7, 6])
  }

  /// Removed by a reset, for example, since it was looked up.
  @Test func tokenThatIsGoneIsIgnored() throws {
    let fixture = try Fixture(.offline)
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: fixture.now) })
    let push = AcceptedPush(target: match.reference, expiration: nil, priority: 10, pushType: .alert)
    fixture.registry.reset()
    fixture.registry.recordRemovalDetected(match.reference, now: 1)
    var pushes = [push]
    #expect(fixture.registry.deliver(&pushes, now: 1, settings: fixture.settings) { _ in 1 }.isEmpty)
    #expect(pushes[0].state == .discardedUnregistered)
    #expect(fixture.registry.follow(push, in: .delivered, seq: 1, now: 1, settings: fixture.settings).isEmpty)
    #expect(fixture.registry.follow(changeOf: 1, to: .delivered, of: match.reference, now: 1).isEmpty)
  }

  @Test func acknowledgedPushIsShownOnce() throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    _ = try follow(.received, seq: 1, in: fixture)
    #expect(fixture.shown.isEmpty)
    #expect(try follow(changeOf: 1, to: .delivered, in: fixture).isEmpty)
    fixture.now += 3_600_000
    #expect(fixture.registry.advance(to: fixture.now).events.isEmpty)
    #expect(fixture.shown == [1])
  }
}
