import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Waits for device tokens: only pushes to them wake such a wait, and it examines all others nevertheless.
@Suite struct DeviceWaitTests {
  private static func token(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 64 - digits.count) + digits
  }

  private static func records(_ devices: some Sequence<Int>) -> [Record] {
    devices.map { device in PushFixture { $0.deviceToken = token(device) }.record }
  }

  private static func append(_ devices: some Sequence<Int>, to inbox: Inbox) {
    var records = records(devices)
    inbox.append(&records)
  }

  private static func wait(_ device: Int, _ parameters: String = "", in inbox: Inbox) async throws
    -> Task<WaitResult, any Error>
  {
    try await WaitingTests.begin("device_token=\(token(device).uppercased())\(parameters)", in: inbox)
  }

  @Test func eachWaitGetsItsOwnPush() async throws {
    let inbox = Inbox()
    var waits: [Task<WaitResult, any Error>] = []
    for device in 1...50 { waits.append(try await Self.wait(device, in: inbox)) }
    for device in 51...80 { Self.append([device], to: inbox) }
    Self.append((1...50).reversed(), to: inbox)
    for (index, wait) in waits.enumerated() {
      let result = try await wait.value
      #expect(result.isSatisfied && result.isComplete)
      #expect(result.items.map(\.seq) == [30 + 50 - index])
      #expect(result.seq >= 30 + 50 - index)
    }
    #expect(inbox.notifier.listenerCount == 0)
  }

  /// The cursor of a wait that timed out includes pushes to other devices, of which the wait was not notified.
  @Test func cursorIncludesOtherPushes() async throws {
    let inbox = Inbox()
    // On a thread of its own, which gets to the pushes before the timeout however many other tests run.
    let appending = Task {
      await onOwnThread {
        for _ in 0..<60_000 where inbox.notifier.listenerCount == 0 { Thread.sleep(forTimeInterval: 0.001) }
        for _ in 0..<20 { Self.append([2, 3], to: inbox) }
      }
    }
    let result = try await inbox.wait(for: WaitingTests.query("device_token=\(Self.token(1))&timeout=2s"))
    await appending.value
    #expect(!result.isSatisfied && result.isComplete)
    #expect(result.seq == 40)
  }

  /// Pushes to other devices that were evicted leave the result of an exact count certain.
  @Test func evictedPushesToOthersDoNotMatter() async throws {
    let inbox = Inbox(maxRecords: 10)
    let wait = try await Self.wait(1, "&count==1&settle=200ms", in: inbox)
    Self.append([1], to: inbox)
    // The wait must have received its push before that is evicted; on a busy machine this takes a while.
    try await eventually("push 1 is delivered") { inbox.notifier.deliveredThrough >= 1 }
    for _ in 0..<30 { Self.append([2], to: inbox) }
    let result = try await wait.value
    #expect(result.isSatisfied && result.isComplete, "\(result.message)")
    #expect(result.matched == 1)
  }

  @Test func waitsForAllPushesAndForDevicesWorkTogether() async throws {
    let inbox = Inbox()
    let any = try await WaitingTests.begin("count=3", in: inbox)
    let device = try await Self.wait(7, in: inbox)
    let either = try await WaitingTests.begin(
      "device_token=\(Self.token(8))&device_token=\(Self.token(9))&count=2", in: inbox)
    Self.append([1], to: inbox)
    Self.append([9, 7], to: inbox)
    #expect(try await any.value.isSatisfied)
    #expect(try await device.value.items.map(\.seq) == [3])
    Self.append([8], to: inbox)
    #expect(try await either.value.items.map(\.seq) == [2, 4])
  }

  @Test func emptyingTheInboxRestartsTheWait() async throws {
    let inbox = Inbox()
    let wait = try await Self.wait(1, "&count=2", in: inbox)
    Self.append([1, 2], to: inbox)
    inbox.removeAll()
    Self.append([1], to: inbox)
    Self.append([2], to: inbox)
    Self.append([1], to: inbox)
    #expect(try await wait.value.items.map(\.seq) == [3, 5])
  }

  /// Appends from several threads: no push is lost between the check of a batch and the next round.
  @Test func concurrentAppendsReachEachWait() async throws {
    let inbox = Inbox()
    var waits: [Task<WaitResult, any Error>] = []
    for device in 1...200 { waits.append(try await Self.wait(device, in: inbox)) }
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          for device in stride(from: worker + 1, through: 200, by: 4) {
            Self.append([1000, 1001], to: inbox)
            Self.append([device, 1002], to: inbox)
            if device.isMultiple(of: 8) { await Task.yield() }
          }
        }
      }
    }
    for wait in waits { #expect(try await wait.value.isSatisfied) }
  }
}
