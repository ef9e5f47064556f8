import APNSRules
import Devices
import TestSupport
import Testing

/// What a registry does with the deliveries of another server that shares the inbox.
struct FollowingTests {
  private typealias Fixture = DeliveryTests.Fixture

  private func follow(
    _ state: DeliveryState, seq: Int, collapse: UInt64? = nil, in fixture: Fixture
  ) throws -> [DeliveryEvent] {
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: fixture.now) })
    let push = AcceptedPush(
      target: match.reference, expiration: nil, priority: 10, pushType: .alert, collapseKey: collapse)
    return fixture.registry.follow(push, state: state, seq: seq, now: fixture.now, settings: fixture.settings)
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
    try fixture.push()
    #expect(fixture.events == [.overwrittenInStorage(seq: 7, by: 8)])
    #expect(fixture.stored == [8])
  }

  @Test func acknowledgedPushIsShownOnce() throws {
    let fixture = try Fixture()
    fixture.settings.onlineQueue = true
    _ = try follow(.received, seq: 1, in: fixture)
    #expect(fixture.shown.isEmpty)
    #expect(try follow(changeOf: 1, to: .delivered, in: fixture).isEmpty)
    fixture.now += 3_600_000
    #expect(fixture.registry.advance(to: fixture.now).isEmpty)
    #expect(fixture.shown == [1])
  }
}
