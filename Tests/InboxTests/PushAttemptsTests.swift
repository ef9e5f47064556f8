import APNSMockNotation
import APNSMockRules
import Testing

@testable import APNSMockInbox

/// The attempts of pushes, by push.
@Suite struct PushAttemptsTests {
  /// Attempts as number and device token, in the order of arrival, and the positions of those of each push.
  static let attempts: [(attempts: [(number: Int32, token: Character)], pushes: Set<[Int]>)] = [
    ([], []), ([(1, "a")], [[0]]), ([(1, "a"), (2, "a"), (3, "a")], [[0, 1, 2]]),
    // A number that does not increase begins another push.
    ([(1, "a"), (1, "a"), (2, "a")], [[0], [1, 2]]), ([(2, "a"), (2, "a")], [[0], [1]]),
    // Attempts are missing, because only some match or the others were evicted.
    ([(2, "a"), (5, "a"), (3, "a")], [[0, 1], [2]]),
    ([(1, "a"), (1, "b"), (2, "b"), (2, "a")], [[0, 3], [1, 2]]),
  ]

  @Test(arguments: attempts)
  func attemptsAreGroupedByPush(attempts: [(number: Int32, token: Character)], pushes: Set<[Int]>) {
    let inbox = Inbox()
    var grouped = PushAttempts()
    for (index, attempt) in attempts.enumerated() {
      var fixture = PushFixture { $0.deviceToken = String(repeating: attempt.token, count: 64) }
      (fixture.attempt, fixture.now) = (attempt.number, PushFixture.noon + Int64(index))
      inbox.append(fixture.record)
    }
    try? inbox.snapshot().records.forEach(in: Selection()) { record in
      grouped.add(record)
      return true
    }
    var found: Set<[Int]> = []
    grouped.forEachPush { push in found.insert(push.map { $0.seq - 1 }) }
    #expect(found == pushes && grouped.count == attempts.count)
  }
}
