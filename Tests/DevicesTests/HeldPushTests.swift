import APNSMockRules
import APNSMockDevices
import APNSMockNotation
import Testing

/// Background pushes that the system of a device holds (Protocol.md, section 6.4).
struct HeldPushTests {
  private let hour: Int64 = 3_600_000

  /// A device whose app may handle `count` background pushes in an hour.
  private func fixture(_ count: Int) throws -> DeliveryTests.Fixture {
    let fixture = try DeliveryTests.Fixture()
    fixture.settings.backgroundBudget = DeviceRate(count: count, per: .seconds(3600))
    try fixture.registry.beginWatching("anna")
    return fixture
  }

  private func push(_ fixture: DeliveryTests.Fixture) throws -> DeliveryState {
    try fixture.push(priority: 5, type: .background)
  }

  private func advance(_ fixture: DeliveryTests.Fixture, by milliseconds: Int64) {
    fixture.now += milliseconds
    fixture.events += fixture.registry.advance(to: fixture.now).events
  }

  private func received(_ fixture: DeliveryTests.Fixture) -> [Int] {
    fixture.deviceEvents.filter { $0.kind == .notification }.compactMap(\.seq)
  }

  private func set(_ fixture: DeliveryTests.Fixture, _ state: InstallationState) throws {
    fixture.events += try fixture.registry.setState(of: "com.acme.app", nil, on: "anna", state, now: fixture.now)
  }

  private func launch(_ fixture: DeliveryTests.Fixture) throws {
    fixture.events += try fixture.registry.launch("com.acme.app", nil, on: "anna", now: fixture.now)
  }

  @Test func newestIsHeldUntilTheBudgetAllowsIt() throws {
    let fixture = try fixture(3)
    for _ in 1...3 { #expect(try push(fixture) == .delivered) }
    for _ in 4...6 { #expect(try push(fixture) == .storedForPower) }
    #expect(received(fixture) == [1, 2, 3])
    #expect(fixture.stored == [6])
    let findings = fixture.events.filter { if case .device = $0 { false } else { true } }
    #expect(
      findings == [
        .overBudget(seq: 4), .overwrittenInStorage(seq: 4, by: 5), .overBudget(seq: 5),
        .overwrittenInStorage(seq: 5, by: 6), .overBudget(seq: 6),
      ])
    advance(fixture, by: hour - 1)
    #expect(received(fixture) == [1, 2, 3])
    advance(fixture, by: 1)
    #expect(received(fixture) == [1, 2, 3, 6])
    #expect(fixture.registry.log(of: 6)?.map(\.state) == [.storedForPower, .deliveredFromStorage])
    #expect(fixture.registry.log(of: 5)?.map(\.state) == [.storedForPower])
    // It counts toward the next period.
    for _ in 7...8 { #expect(try push(fixture) == .delivered) }
    #expect(try push(fixture) == .storedForPower)
  }

  /// A prediction says what would happen, and that it does not happen.
  @Test func predictionsCountNothing() throws {
    let fixture = try fixture(1)
    func predict(_ priority: UInt8 = 5, _ type: PushType = .background) throws -> (DeliveryState, HoldCause?) {
      let match = try #require("aa01".withBytes { fixture.registry.match($0, now: fixture.now) })
      let push = AcceptedPush(target: match.reference, expiration: nil, priority: priority, pushType: type)
      let found = fixture.registry.predictedDelivery(of: push, now: fixture.now, settings: fixture.settings)
      return (found.state, found.cause)
    }
    for _ in 1...2 { #expect(try predict() == (.delivered, nil)) }
    #expect(try push(fixture) == .delivered)
    for _ in 1...2 { #expect(try predict() == (.storedForPower, .backgroundBudget)) }
    #expect(try predict(10, .alert) == (.delivered, nil))
    try set(fixture, .forceQuit)
    #expect(try predict() == (.storedForPower, .forceQuit))
    try fixture.set(.powerRestricted)
    #expect(try predict(5, .alert) == (.storedForPower, .powerRestricted))
    #expect(fixture.stored.isEmpty && received(fixture) == [1])
  }

  /// A push after the end of the period does not overwrite the one that was held, even if `advance` was not called.
  @Test func heldPushIsDeliveredBeforeALaterOne() throws {
    let fixture = try fixture(1)
    _ = try push(fixture)
    #expect(try push(fixture) == .storedForPower)
    fixture.now += hour
    #expect(try push(fixture) == .storedForPower)
    #expect(received(fixture) == [1, 2])
    #expect(fixture.states(of: 2) == [.deliveredFromStorage])
    #expect(fixture.stored == [3])
  }

  @Test func otherPushesAreNotHeld() throws {
    let fixture = try fixture(1)
    for _ in 1...2 { _ = try push(fixture) }
    #expect(try fixture.push() == .delivered)
    #expect(try fixture.push(to: "aa01", type: .voip) == .delivered)
    #expect(received(fixture) == [1, 3, 4])
  }

  @Test func launchDeliversWhatIsHeld() throws {
    let fixture = try fixture(1)
    for _ in 1...3 { _ = try push(fixture) }
    try launch(fixture)
    #expect(received(fixture) == [1, 3])
    try launch(fixture)
    advance(fixture, by: hour)
    #expect(received(fixture) == [1, 3])
  }

  @Test func forceQuitDropsWhatIsHeld() throws {
    let fixture = try fixture(1)
    for _ in 1...2 { _ = try push(fixture) }
    try set(fixture, .forceQuit)
    #expect(fixture.stored.isEmpty)
    try launch(fixture)
    advance(fixture, by: hour)
    #expect(received(fixture) == [1])
    #expect(fixture.registry.log(of: 2)?.map(\.state) == [.storedForPower])
  }

  @Test func forceQuitAppHoldsTheNewestUntilItsLaunch() throws {
    let fixture = try fixture(1)
    fixture.settings.backgroundBudget = nil
    try set(fixture, .forceQuit)
    for _ in 1...3 { #expect(try push(fixture) == .storedForPower) }
    #expect(try fixture.push() == .delivered)
    #expect(
      fixture.events.filter { if case .overBudget = $0 { true } else { false } }.isEmpty,
      "no mistake of the provider")
    advance(fixture, by: 100 * hour)
    #expect(received(fixture) == [4] && fixture.stored == [3])
    try launch(fixture)
    #expect(received(fixture) == [4, 3])
    #expect(fixture.registry.device("anna")?.apps[0].state == .enabled)
    #expect(try push(fixture) == .delivered)
  }

  /// A push that was stored while the device was offline is held when it reaches the device.
  @Test func storedPushIsHeldWhenTheDeviceIsOnline() throws {
    let fixture = try fixture(1)
    try fixture.set(.offline)
    #expect(try push(fixture) == .storedOffline)
    try set(fixture, .forceQuit)
    try fixture.set(.online)
    #expect(fixture.states(of: 1) == [.storedForPower])
    try launch(fixture)
    #expect(fixture.states(of: 1) == [.storedForPower, .deliveredFromStorage])
  }

  @Test func removedAppDiscardsWhatIsHeld() throws {
    let fixture = try fixture(1)
    for _ in 1...2 { _ = try push(fixture) }
    try set(fixture, .removed)
    advance(fixture, by: hour)
    #expect(fixture.states(of: 2) == [.discardedUnregisteredFromStorage])
    #expect(received(fixture) == [1])
  }

  /// A push that was stored before is older than one that was held in the meantime.
  @Test func olderPushDoesNotReplaceWhatIsHeld() throws {
    let fixture = try fixture(1)
    fixture.settings.backgroundBudget = nil
    try fixture.set(.powerRestricted)
    try set(fixture, .forceQuit)
    #expect(try fixture.push(priority: 5, type: .background, acceptedAt: 1) == .storedForPower)
    #expect(try fixture.push(priority: 10, type: .background, acceptedAt: 2) == .storedForPower)
    try fixture.set(.online)
    #expect(fixture.stored == [2])
    #expect(fixture.events.contains(.overwrittenInStorage(seq: 1, by: 2)))
    try launch(fixture)
    #expect(received(fixture) == [2])
  }

  /// What another push left in storage does not concern the one that is held.
  @Test func restoredAlertLeavesTheHeldPush() throws {
    let fixture = try fixture(1)
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: 0) })
    for (seq, type, state) in [
      (7, PushType.background, DeliveryState.storedForPower), (8, .alert, .deliveredFromStorage),
    ] {
      let push = AcceptedPush(target: match.reference, expiration: nil, priority: 5, pushType: type)
      fixture.registry.restore(push, seq: seq, state, receivedAt: fixture.now, settings: fixture.settings)
    }
    #expect(fixture.stored == [7])
  }

  /// The period of the budget goes on when a server continues.
  @Test func periodIsRestored() throws {
    let fixture = try fixture(1)
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: 0) })
    let push = AcceptedPush(target: match.reference, expiration: nil, priority: 5, pushType: .background)
    for (seq, state, time) in [(7, DeliveryState.delivered, 0), (8, .storedForPower, hour / 2)] {
      fixture.registry.restore(
        push, seq: seq, state, receivedAt: fixture.now + time, settings: fixture.settings)
    }
    advance(fixture, by: hour - 1)
    #expect(fixture.stored == [8])
    advance(fixture, by: 1)
    #expect(fixture.states(of: 8) == [.deliveredFromStorage])
  }

  /// A server that continues holds the push again.
  @Test func heldPushIsRestored() throws {
    let fixture = try fixture(1)
    let match = try #require("aa01".withBytes { fixture.registry.match($0, now: 0) })
    let push = AcceptedPush(target: match.reference, expiration: nil, priority: 5, pushType: .background)
    fixture.registry.restore(push, seq: 7, .storedForPower, receivedAt: fixture.now, settings: fixture.settings)
    #expect(fixture.stored == [7])
    advance(fixture, by: hour)
    #expect(fixture.states(of: 7) == [.deliveredFromStorage])
  }
}
