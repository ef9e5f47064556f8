import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockDevices
@testable import MockAPNS

struct DeviceEventReaderTests {
  private static func event(
    _ seq: Int, _ kind: DeviceEvent.Kind = .notification, device: String = "anna", app: String = "com.acme.app"
  ) -> DeviceEvent {
    DeviceEvent(kind: kind, deviceID: device, bundleID: app, environment: .sandbox, time: 0, seq: seq)
  }

  /// A slow reader keeps the newest events and learns how many are missing.
  @Test func limit() throws {
    let reader = DeviceEventReader(DeviceEventFilter(), limit: 100)
    for seq in 1...1050 { reader.add(Self.event(seq)) }
    var batch = try #require(reader.next(60))
    #expect(batch.missed == 950 && batch.events.map(\.seq) == Array(951...1010))
    batch = try #require(reader.next(60))
    #expect(batch.missed == 0 && batch.events.map(\.seq) == Array(1011...1050))
    #expect(reader.next(60)?.events == nil)
    for seq in 1...30 {
      reader.add(Self.event(seq))
      #expect(reader.next(1)?.events.map(\.seq) == [seq])
    }
  }

  @Test func filter() {
    var filter = DeviceEventFilter()
    filter.kinds = [.activityStarted, .activityEnded]
    filter.device = TextPattern("an*", foldsCase: false)
    filter.bundleID = TextPattern("com.acme.*", foldsCase: false)
    filter.environment = .sandbox
    let reader = DeviceEventReader(filter, limit: 10)
    for event in [
      Self.event(1), Self.event(2, .activityStarted), Self.event(3, .activityRotated), Self.event(4, .activityEnded),
      Self.event(5, .activityEnded, device: "bert"), Self.event(6, .activityEnded, app: "com.other"),
    ] {
      reader.add(event)
    }
    filter.environment = .production
    let other = DeviceEventReader(filter, limit: 10)
    other.add(Self.event(2, .activityStarted))
    #expect(reader.next(10)?.events.map(\.seq) == [2, 4])
    #expect(other.next(10)?.events == nil)
  }

  @Test func stopEndsTheSignals() async {
    let reader = DeviceEventReader(DeviceEventFilter(), limit: 10)
    reader.add(Self.event(1))
    reader.stop()
    var count = 0
    for await _ in reader.signals { count += 1 }
    #expect(count == 1)
  }
}
