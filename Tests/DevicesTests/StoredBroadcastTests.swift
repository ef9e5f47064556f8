import APNSMockRules
import APNSMockDevices
import APNSMockNotation
import Testing

/// Broadcasts that are stored for devices that are offline: each ends in a state (Protocol.md, sections 10 and 11).
struct StoredBroadcastTests {
  private let channel = ChannelName(bundleID: "com.acme.app", environment: .sandbox, id: "dHN0")

  /// An offline device that is subscribed to the channel.
  private func fixture() throws -> DeliveryTests.Fixture {
    let fixture = try DeliveryTests.Fixture(.offline)
    try fixture.registry.subscribe("anna", to: channel)
    return fixture
  }

  private func send(_ seq: Int, _ fixture: DeliveryTests.Fixture, expiresAfter seconds: Int64) {
    fixture.broadcast(seq: seq, to: channel, expiration: fixture.now / 1000 + seconds, isStored: true)
  }

  private func advance(_ fixture: DeliveryTests.Fixture, by milliseconds: Int64) {
    fixture.now += milliseconds
    let due = fixture.registry.advance(to: fixture.now)
    for broadcast in due.broadcasts { fixture.registry.discard(broadcast, now: fixture.now) }
  }

  private func states(_ seq: Int, _ fixture: DeliveryTests.Fixture) -> [DeliveryState] {
    fixture.registry.log(of: seq)?.map(\.state) ?? []
  }

  @Test func expiredBroadcastIsDiscarded() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    advance(fixture, by: 59_999)
    #expect(states(1, fixture) == [.received, .storedOffline])
    #expect(fixture.registry.needsAdvancing(to: fixture.now + 1))
    advance(fixture, by: 1)
    #expect(states(1, fixture) == [.received, .storedOffline, .discardedExpired])
    #expect(fixture.registry.log(of: 1)?.last?.deviceID == "anna")
    #expect(fixture.registry.log(of: 1)?.last?.time == fixture.now)
    try fixture.set(.online)
    advance(fixture, by: 60_000)
    #expect(states(1, fixture) == [.received, .storedOffline, .discardedExpired])
    #expect(fixture.shown.isEmpty)
  }

  @Test func broadcastExpiresAfterEightHours() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 86_400)
    advance(fixture, by: 8 * 3_600_000 - 1)
    #expect(states(1, fixture).last == .storedOffline)
    advance(fixture, by: 1)
    #expect(states(1, fixture).last == .discardedExpired)
  }

  /// The device comes online after the expiration, before it is noticed.
  @Test func deviceThatIsOnlineTooLate() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    fixture.now += 60_000
    try fixture.set(.online)
    #expect(fixture.shown.isEmpty)
    advance(fixture, by: 0)
    #expect(states(1, fixture) == [.received, .storedOffline, .discardedExpired])
  }

  @Test func deliveredBroadcastDoesNotExpire() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    try fixture.set(.online)
    advance(fixture, by: 60_000)
    #expect(states(1, fixture) == [.received, .storedOffline, .deliveredFromStorage])
  }

  /// A broadcast that a newer one replaces before its expiration is not discarded, as with pushes.
  @Test func replacedBroadcastDoesNotExpire() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    send(2, fixture, expiresAfter: 120)
    advance(fixture, by: 60_000)
    #expect(states(1, fixture) == [.received, .storedOffline])
    advance(fixture, by: 60_000)
    #expect(states(2, fixture) == [.received, .storedOffline, .discardedExpired])
  }

  /// One whose expiration was not noticed yet is discarded, although a newer one is stored.
  @Test func expiredBroadcastIsNotReplaced() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    fixture.now += 60_000
    send(2, fixture, expiresAfter: 60)
    advance(fixture, by: 0)
    #expect(states(1, fixture) == [.received, .storedOffline, .discardedExpired])
    try fixture.set(.online)
    #expect(states(2, fixture) == [.received, .storedOffline, .deliveredFromStorage])
    #expect(fixture.shown == [2])
  }

  /// `apns-expiration: 0` on a channel that stores: nothing is stored, and an older one that is stays.
  @Test func expiredAtOnce() throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    fixture.broadcast(seq: 2, to: channel, expiration: 0, isStored: true)
    #expect(states(2, fixture) == [.received, .discardedExpired])
    try fixture.set(.online)
    #expect(fixture.shown == [1])
  }

  @Test(arguments: [
    (InstallationState.disabled, DeliveryState.discardedDisabledFromStorage),
    (.removed, .discardedUnregisteredFromStorage), (.forceQuit, .deliveredFromStorage),
  ])
  func stateOfTheApp(_ state: InstallationState, _ result: DeliveryState) throws {
    let fixture = try fixture()
    send(1, fixture, expiresAfter: 60)
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", state)
    try fixture.set(.online)
    #expect(states(1, fixture) == [.received, .storedOffline, result])
    advance(fixture, by: 60_000)
    #expect(states(1, fixture) == [.received, .storedOffline, result], "one end only")
  }

  /// What was discarded because notifications are disabled is not delivered when they are enabled.
  @Test func discardedBroadcastIsNotDeliveredLater() throws {
    let fixture = try fixture()
    try fixture.set(.online)
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", .disabled)
    send(1, fixture, expiresAfter: 60)
    try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", .enabled)
    try fixture.set(.offline)
    try fixture.set(.online)
    #expect(states(1, fixture) == [.received, .discardedDisabled])
    #expect(fixture.shown.isEmpty)
  }

  @Test func manyDevicesAreDiscardedInSlices() throws {
    let count = 2 * DeviceRegistry.sliceSize + 1
    let fixture = try DeliverySlicesTests.Fixture(count, .offline)
    for number in 1...count { try fixture.registry.subscribe("phone-\(number)", to: fixture.channel) }
    let broadcast = Broadcast(seq: 7, channel: fixture.channel, expiration: 60, isStored: true, time: 0)
    _ = fixture.registry.begin(broadcast)
    fixture.registry.deliver(broadcast) { _ in }
    let due = fixture.registry.advance(to: 60_000)
    let expired = try #require(due.broadcasts.first)
    #expect(due.broadcasts.count == 1 && due.isComplete)
    var slices = 0
    fixture.registry.discard(expired, now: 60_000) { slices += 1 }
    #expect(slices == 3)
    // The log is limited to a thousand entries.
    #expect(fixture.registry.log(of: 7)?.count { $0.state == .discardedExpired } == 1000 - 1 - count)
    fixture.registry.discard(expired, now: 60_000)
    #expect(fixture.registry.advance(to: 120_000).broadcasts.isEmpty)
  }
}
