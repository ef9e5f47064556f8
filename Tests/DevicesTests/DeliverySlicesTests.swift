import APNSMockRules
import APNSMockDevices
import APNSMockNotation
import Testing

/// Changes of many deliveries at once, in slices between which other work has the registry.
struct DeliverySlicesTests {
  /// Devices that all have one app.
  final class Fixture {
    let registry = DeviceRegistry()
    let channel = ChannelName(bundleID: "com.acme.app", environment: .sandbox, id: "dHN0")
    var settings = APNSSettings()

    init(_ count: Int, _ state: DeviceState) throws {
      try registry.load(now: 0) { loader in
        for number in 1...count {
          try loader.add(DeviceRegistryTests.device("phone-\(number)", token: Self.token(number), state))
        }
      }
    }

    static func token(_ number: Int) -> String {
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }

    /// Sends a push with the number of the device as its `seq`, at the time 0.
    func push(to number: Int, expiration: Int64? = nil, seq: Int? = nil) throws {
      let match = try #require(Self.token(number).withBytes { registry.match($0, now: 0) })
      var pushes = [
        AcceptedPush(target: match.reference, expiration: expiration, priority: 10, pushType: .alert)
      ]
      #expect(registry.deliver(&pushes, now: 0, settings: settings) { _ in seq ?? number }.isEmpty)
    }
  }

  @Test func expiriesAreAppliedInSlices() throws {
    let count = 3 * DeviceRegistry.sliceSize
    let fixture = try Fixture(count, .offline)
    for number in 1...count { try fixture.push(to: number, expiration: 60) }
    #expect(!fixture.registry.needsAdvancing(to: 59_999))
    #expect(fixture.registry.needsAdvancing(to: 60_000))

    let first = fixture.registry.advance(to: 60_000)
    #expect(first.events.count == DeviceRegistry.sliceSize && !first.isComplete)
    // Between two slices, a device comes online, and the push of another one is replaced by one that expires later.
    let between = try fixture.registry.setState(of: "phone-\(count)", .online, now: 60_000)
    #expect(between == [.changed(seq: count, .discardedExpired)])
    let match = try #require(Fixture.token(count - 1).withBytes { fixture.registry.match($0, now: 60_000) })
    var pushes = [AcceptedPush(target: match.reference, expiration: 120, priority: 10, pushType: .alert)]
    let replaced = fixture.registry.deliver(&pushes, now: 60_000, settings: fixture.settings) { _ in count + 1 }
    #expect(replaced == [.changed(seq: count - 1, .discardedExpired)])

    var events = first.events + between + replaced
    var (isComplete, slices) = (false, 1)
    while !isComplete {
      let slice = fixture.registry.advance(to: 60_000)
      #expect(slice.events.count <= DeviceRegistry.sliceSize)
      events += slice.events
      isComplete = slice.isComplete
      slices += 1
    }
    #expect(slices == 3)
    let expired = events.compactMap { if case .changed(let seq, .discardedExpired) = $0 { seq } else { nil } }
    #expect(events.count == count && expired.sorted() == Array(1...count))
    #expect(fixture.registry.contents(of: "phone-\(count - 1)")?.stored.map(\.seq) == [count + 1])
    #expect(!fixture.registry.needsAdvancing(to: 119_999))
    #expect(fixture.registry.advance(to: 120_000).events == [.changed(seq: count + 1, .discardedExpired)])
  }

  @Test func acknowledgementsAreAppliedInSlices() throws {
    let count = 2 * DeviceRegistry.sliceSize
    let fixture = try Fixture(count, .online)
    fixture.settings.onlineQueue = true
    for number in 1...count { try fixture.push(to: number) }
    let first = fixture.registry.advance(to: 1000)
    let second = fixture.registry.advance(to: 1000)
    #expect(!first.isComplete && second.isComplete)
    #expect(first.events.count == DeviceRegistry.sliceSize && second.events.count == DeviceRegistry.sliceSize)
    #expect(Set((first.events + second.events).map { "\($0)" }).count == count)
    #expect(fixture.registry.contents(of: "phone-\(count)")?.shown.map(\.seq) == [count])
  }

  /// The earliest comes first, whatever the order of arrival, also after many pushes were replaced.
  @Test func pushesExpireInTheirOrder() throws {
    let fixture = try Fixture(50, .offline)
    for round in 1...100 {
      for number in 1...50 {
        let match = try #require(Fixture.token(number).withBytes { fixture.registry.match($0, now: 0) })
        let expiration = Int64(1 + (number * 37 + round) % 50)
        var pushes = [AcceptedPush(target: match.reference, expiration: expiration, priority: 10, pushType: .alert)]
        _ = fixture.registry.deliver(&pushes, now: 0, settings: fixture.settings) { _ in round * 100 + number }
      }
    }
    for second in 1...50 {
      var events: [DeliveryEvent] = []
      while fixture.registry.needsAdvancing(to: Int64(second) * 1000) {
        events += fixture.registry.advance(to: Int64(second) * 1000).events
      }
      let number = (1...50).first { 1 + ($0 * 37 + 100) % 50 == second } ?? 0
      #expect(events == [.changed(seq: 10_000 + number, .discardedExpired)])
    }
  }

  @Test func broadcastsAreDeliveredInSlices() throws {
    let count = 2 * DeviceRegistry.sliceSize + 1
    let fixture = try Fixture(count, .online)
    for number in 1...count { try fixture.registry.subscribe("phone-\(number)", to: fixture.channel) }
    for device in ["phone-\(count - 1)", "phone-\(count)"] {
      _ = try fixture.registry.setState(of: device, .offline, now: 0)
    }
    let broadcast = Broadcast(seq: 7, channel: fixture.channel, expiration: 60, isStored: true, time: 0)
    #expect(fixture.registry.begin(broadcast) == count)
    var slices = 0
    fixture.registry.deliver(broadcast) { _ in
      slices += 1
      guard slices == 1 else { return }
      // Between two slices, one device comes online and receives the broadcast from the storage, one ends its
      // subscription.
      do {
        _ = try fixture.registry.setState(of: "phone-\(count)", .online, now: 0)
      } catch {
        Issue.record(error)
      }
      #expect(fixture.registry.unsubscribe("phone-\(count - 2)", from: fixture.channel))
    }
    #expect(slices == 3)
    func shown(_ number: Int) -> [Int]? { fixture.registry.contents(of: "phone-\(number)")?.shown.map(\.seq) }
    #expect((1...count - 3).allSatisfy { shown($0) == [7] })
    #expect(shown(count) == [7])
    #expect(shown(count - 1) == [] && shown(count - 2) == [])
    let states = fixture.registry.log(of: 7)?.map(\.state) ?? []
    #expect(states.count { $0 == .delivered } == count - 3)
    #expect(states.count { $0 == .deliveredFromStorage } == 1 && states.count { $0 == .storedOffline } == 1)
  }
}
