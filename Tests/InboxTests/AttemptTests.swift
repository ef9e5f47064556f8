import APNSMockRules
import APNSMockHTTPMessage
import Synchronization
import Testing

@testable import APNSMockInbox

/// Attempt numbers: a push that is sent again is attempt 2, 3, …; counting restarts after an accepted attempt and
/// after ten minutes.
@Suite struct AttemptTests {
  /// One push of a timeline: seconds since the previous one, which push it is, whether APNs accepts it, and the
  /// expected attempt number.
  struct Step: Sendable {
    var wait = 0
    var push = "a"
    var accepted = false
    var attempt: Int32
  }

  @Test(
    arguments: [
      ("retries count up", [Step(attempt: 1), Step(attempt: 2), Step(attempt: 3)]),
      (
        "an accepted attempt ends the count",
        [Step(attempt: 1), Step(accepted: true, attempt: 2), Step(attempt: 1), Step(attempt: 2)]
      ),
      (
        "equal pushes that were accepted are no retries",
        [Step(accepted: true, attempt: 1), Step(accepted: true, attempt: 1)]
      ),
      (
        "pushes are counted apart",
        [Step(attempt: 1), Step(push: "b", attempt: 1), Step(attempt: 2), Step(push: "b", accepted: true, attempt: 2)]
      ),
      (
        "just under ten minutes is no silence",
        [Step(attempt: 1), Step(wait: 599, attempt: 2), Step(wait: 599, attempt: 3)]
      ),
      ("ten minutes of silence end the count", [Step(attempt: 1), Step(wait: 600, attempt: 1), Step(attempt: 2)]),
      (
        "others do not break the silence",
        [
          Step(attempt: 1), Step(wait: 300, push: "b", attempt: 1), Step(wait: 300, attempt: 1),
          Step(push: "b", attempt: 2),
        ]
      ),
      (
        "an accepted push after long silence is a new one",
        [Step(attempt: 1), Step(wait: 5000, accepted: true, attempt: 1), Step(attempt: 1)]
      ),
    ] as [(String, [Step])])
  func timeline(name: String, steps: [Step]) {
    let clock = TestClock()
    let attempts = Attempts()
    for (index, step) in steps.enumerated() {
      clock.advance(seconds: step.wait)
      let push = PushFixture { $0.body = Array(step.push.utf8) }.pushKey
      #expect(attempts.count(push, accepted: step.accepted, now: clock.nanoseconds) == step.attempt, "step \(index)")
    }
  }

  @Test func laterAcceptanceEndsTheCount() {
    let attempts = Attempts()
    let push = PushFixture().pushKey
    #expect(attempts.isEmpty)
    #expect(attempts.count(push, accepted: false, now: 1) == 1)
    #expect(!attempts.isEmpty)
    #expect(attempts.count(push, accepted: false, now: 1) == 2)
    attempts.accept(push)
    #expect(attempts.isEmpty)
    #expect(attempts.count(push, accepted: false, now: 1) == 1)
  }

  @Test func acceptedAttemptWithoutResponseCountsOn() {
    let attempts = Attempts()
    let push = PushFixture().pushKey
    #expect(attempts.count(push, accepted: false, now: 1) == 1)
    #expect(attempts.count(push, accepted: true, now: 1) == 2)
    attempts.resume(push, after: 2, now: 1)
    #expect(attempts.peek(push, now: 2) == 3)
    #expect(attempts.count(push, accepted: true, now: 2) == 3)
    #expect(attempts.isEmpty)
  }

  @Test func acceptedAttemptWithoutResponseCountsOnAfterALongQuietTime() {
    let attempts = Attempts()
    let push = PushFixture().pushKey
    let now = 3 * AttemptCounter.retryWindow
    #expect(attempts.count(push, accepted: true, now: now) == 1)
    attempts.resume(push, after: 1, now: now)
    #expect(attempts.count(push, accepted: true, now: now) == 2)
  }

  @Test func removedPushesCountFromOneAgain() {
    let attempts = Attempts()
    let (push, other) = (PushFixture().pushKey, PushFixture { $0.body = Array("other".utf8) }.pushKey)
    for key in [push, other] { #expect(attempts.count(key, accepted: false, now: 1) == 1) }
    attempts.remove([push])
    #expect(attempts.count(push, accepted: false, now: 2) == 1)
    #expect(attempts.count(other, accepted: false, now: 2) == 2)
    attempts.remove([push, other])
    #expect(attempts.isEmpty)
  }

  @Test func rulesDoNotCountAttemptsThatWereNotProcessed() {
    let attempts = Attempts()
    let push = PushFixture().pushKey
    #expect(attempts.unprocessedAttempts(of: push) == 0)
    #expect(attempts.countUnprocessed(push, now: 1) == 1)
    #expect(attempts.countUnprocessed(push, now: 2) == 2)
    #expect(attempts.unprocessedAttempts(of: push) == 2)
    #expect(attempts.count(push, accepted: false, now: 3) == 3)
    #expect(attempts.unprocessedAttempts(of: push) == 2)
    let other = PushFixture { $0.body = Array("other".utf8) }.pushKey
    #expect(attempts.unprocessedAttempts(of: other) == 0)
  }

  @Test(arguments: [true, false])
  func unprocessedAttemptsEndWithTheirPush(isAcceptedLater: Bool) {
    let attempts = Attempts()
    let push = PushFixture().pushKey
    #expect(attempts.countUnprocessed(push, now: 1) == 1)
    if isAcceptedLater { attempts.accept(push) } else { #expect(attempts.count(push, accepted: true, now: 2) == 2) }
    #expect(attempts.isEmpty)
    #expect(attempts.countUnprocessed(push, now: 3) == 1)
    #expect(attempts.unprocessedAttempts(of: push) == 1)
  }

  @Test func emptyingTheInboxRemovesAttempts() {
    let inbox = Inbox()
    let push = PushFixture().pushKey
    _ = inbox.attempts.count(push, accepted: false, now: 1)
    inbox.removeAll()
    #expect(inbox.attempts.count(push, accepted: false, now: 1) == 1)
  }

  @Test func tableIsBoundedAndEvictsTheOldest() {
    var counter = AttemptCounter()
    func key(_ number: Int) -> PushKey {
      PushFixture { $0.body = Array("\(number)".utf8) }.pushKey
    }
    let (oldest, newest) = (key(-1), key(-2))
    #expect(counter.count(oldest, accepted: false, now: 1) == 1)
    var filler = PushKeyGenerator()
    for _ in 0..<2 * AttemptTable.limit { _ = counter.count(filler.next(), accepted: false, now: 1) }
    #expect(counter.count(newest, accepted: false, now: 1) == 1)
    #expect(counter.count(newest, accepted: false, now: 1) == 2)
    #expect(counter.count(oldest, accepted: false, now: 1) == 1)
    #expect(counter.remembered <= 2 * AttemptTable.limit)
  }

  /// Pushes that are rejected, retried and accepted, far more than are remembered at once: each is counted correctly.
  @Test func activePushesStayCounted() {
    var counter = AttemptCounter()
    var pushes = (0..<3 * AttemptMarks.limit / 2).makeIterator()
    var waiting: [PushKey] = []
    func key(_ number: Int) -> PushKey { PushKey(number: UInt64(number) &* 0x9E37_79B9_7F4A_7C15) }
    while let number = pushes.next() {
      let push = key(number)
      if counter.peek(push, now: 1) != 1 || counter.count(push, accepted: false, now: 1) != 1 {
        Issue.record("push \(number) is not new")
      }
      waiting.append(push)
      guard waiting.count == 1000 else { continue }
      for push in waiting {
        let (next, number) = (counter.peek(push, now: 2), counter.count(push, accepted: true, now: 2))
        if next != 2 || number != 2 || counter.peek(push, now: 2) != 1 { Issue.record("it is not the second attempt") }
      }
      waiting = []
    }
    #expect(counter.remembered == waiting.count)
    for push in waiting { #expect(counter.peek(push, now: 3) == 2) }
  }

  /// Compares the table with a dictionary, while keys are added, counted and removed.
  @Test func tableKeepsActiveEntries() {
    var table = AttemptTable()
    var expected: [UInt64: Int32] = [:]
    for step in 0..<200_000 {
      let number = UInt64(step).folded(by: 0x9E37_79B9_7F4A_7C15).folded(by: 0xA076_1D64_78BD_642F) >> 8
      // Keys that differ in the last bits or in the first bits, and few enough that they repeat.
      let key = number % 3 == 0 ? number % 30_000 : (number % 30_000) << 48
      switch (number / 7) % 16 {
      case 0:
        #expect(table.remove(key, now: 1) == expected.removeValue(forKey: key).map { $0 + 1 })
      case _ where expected[key] != nil:
        expected[key, default: 0] += 1
        #expect(table.count(key, now: 1) == expected[key])
      case _ where table.count < AttemptTable.limit:
        #expect(table.count(key, now: 1) == nil && table.next(key, now: 1) == nil)
        table.insert(key, attempts: 1, now: 1)
        expected[key] = 1
      default: break
      }
      if step % 20_000 == 0 { #expect(expected.allSatisfy { table.next($0, now: 1) == $1 + 1 }) }
    }
    #expect(table.count == expected.count && table.count > 10_000)
    table.removeAll()
    #expect(table.count == 0 && expected.keys.allSatisfy { table.next($0, now: 1) == nil })
  }

  @Test func insertedKeysAreMarked() {
    let marks = AttemptMarks()
    func key(_ number: Int) -> UInt64 { UInt64(number) &* 0x9E37_79B9_7F4A_7C15 }
    #expect(!marks.mayContain(0))
    for number in 0..<5000 { marks.insert(key(number), in: number % 2) }
    #expect((0..<5000).allSatisfy { marks.mayContain(key($0)) })
    #expect((5000..<10_000).count { marks.mayContain(key($0)) } < 250)
    marks.removeAll(of: 1)
    #expect(stride(from: 0, to: 5000, by: 2).allSatisfy { marks.mayContain(key($0)) })
    #expect(stride(from: 1, to: 5000, by: 2).count { marks.mayContain(key($0)) } < 100)
  }

  @Test func tableIsEmptiedWhenIdle() {
    var counter = AttemptCounter()
    var filler = PushKeyGenerator()
    _ = counter.count(filler.next(), accepted: false, now: 0)
    #expect(!counter.isEmpty)
    _ = counter.count(filler.next(), accepted: true, now: AttemptCounter.retryWindow)
    _ = counter.count(filler.next(), accepted: true, now: 2 * AttemptCounter.retryWindow)
    #expect(counter.isEmpty)
  }

  /// The table's timestamps have wrapped around in the meantime.
  @Test(arguments: [10, 20, 30, 40, 50, 60])
  func entriesExpire(days: Int64) {
    var counter = AttemptCounter()
    var filler = PushKeyGenerator()
    let (push, later) = (filler.next(), days * 86_400 * 1_000_000_000)
    _ = counter.count(push, accepted: false, now: 0)
    #expect(counter.peek(push, now: 1) == 2)
    #expect(counter.peek(push, now: later) == 1)
    #expect(counter.count(push, accepted: false, now: later) == 1)
    #expect(counter.count(push, accepted: false, now: later + 1) == 2)
  }

  /// A way in which one push differs from another.
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let apply: @Sendable (inout PushFixture) -> Void

    init(_ name: String, _ apply: @escaping @Sendable (inout PushFixture) -> Void) {
      testDescription = name
      self.apply = apply
    }
  }

  @Test(
    arguments: [
      Change("device token", { $0.deviceToken = "00ff" }), Change("topic", { $0.headers[0].1 = "com.acme.other" }),
      Change("push type", { $0.headers[1].1 = "background" }), Change("no push type", { $0.headers.removeLast() }),
      Change("collapse id", { $0.headers.append(("apns-collapse-id", "x")) }), Change("payload", { $0.body += [0x20] }),
      Change("empty payload", { $0.body = [] }),
    ] as [Change])
  func anotherPushHasAnotherKey(change: Change) {
    let (one, other) = (PushFixture().record, PushFixture(change.apply).record)
    #expect(one.pushKey != other.pushKey)
  }

  @Test(
    arguments: [
      Change("case of the device token", { $0.deviceToken = $0.deviceToken.uppercased() }),
      Change("apns-id", { $0.headers.append(("apns-id", "27cfdc15-e305-27e0-e290-8fc98e115899")) }),
      Change("priority", { $0.headers.append(("apns-priority", "5")) }),
      Change("order of the headers", { $0.headers.reverse() }),
      Change(
        "provider token", { $0.authorization = [PushFixture.authorization(issuedAt: PushFixture.noon / 1000 - 60)] }),
    ] as [Change])
  func theSamePushHasTheSameKey(change: Change) {
    let (one, other) = (PushFixture().record, PushFixture(change.apply).record)
    #expect(one.pushKey == other.pushKey)
  }
}

/// A monotonic clock that changes only when a test advances it.
final class TestClock: Sendable {
  private let time = Atomic<Int64>(1_000_000)

  var nanoseconds: Int64 { time.load(ordering: .relaxed) }

  func advance(seconds: Int) { time.add(Int64(seconds) * 1_000_000_000, ordering: .relaxed) }
}

/// Generates distinct push keys without a push for each.
struct PushKeyGenerator {
  private var state: UInt64 = 4

  mutating func next() -> PushKey {
    state += 1
    return PushKey(number: state)
  }
}

extension Attempts {
  /// Counts an attempt of a push without `apns-id`.
  fileprivate func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    count(AttemptKey(push: push), accepted: accepted, now: now)
  }

  fileprivate func countUnprocessed(_ push: PushKey, now: Int64) -> Int32 {
    countUnprocessed(AttemptKey(push: push), now: now)
  }

  fileprivate func resume(_ push: PushKey, after attempt: Int32, now: Int64) {
    resume(AttemptKey(push: push), after: attempt, now: now)
  }
}
