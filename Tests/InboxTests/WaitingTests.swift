import Foundation
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Waiting for pushes: those in the inbox, those that arrive, and those that do not.
@Suite struct WaitingTests {
  /// Parses a query; without a timeout of its own it waits for longer than any test takes on a busy machine.
  static func query(_ text: String) throws -> WaitQuery {
    try WaitQuery(FilterTests.parameters(text.contains("timeout=") ? text : text + "&timeout=2m"))
  }

  static func record(_ topic: String = "a", outcome: Record.Outcome? = nil) -> Record {
    PushFixture {
      $0.headers = [("apns-topic", topic), ("apns-push-type", "alert")]
      $0.outcome = outcome
    }.record
  }

  static func end(_ outcome: Record.Outcome) -> Record.Result {
    Record.Result(
      outcome: outcome, accepted: outcome == .accepted, sentResponse: Record.SentResponse(status: 200),
      finishedAt: PushFixture.noon)
  }

  /// Starts a wait and returns when it is registered with the inbox.
  static func begin(_ text: String, in inbox: Inbox) async throws -> Task<WaitResult, any Error> {
    let query = try query(text)
    let before = inbox.notifier.listenerCount
    let wait = Task { try await inbox.wait(for: query) }
    try await eventually("the wait is registered") { inbox.notifier.listenerCount > before }
    return wait
  }

  // MARK: - Pushes in the inbox

  @Test(
    arguments: [
      ("", true, [1, 2, 3, 4]), ("topic=a", true, [1, 3]), ("topic=a&count=2", true, [1, 3]),
      ("topic=a&count=1", true, [1, 3]), ("topic=a&count==2", true, [1, 3]), ("topic=a&after=1", true, [3]),
      ("topic=a&before=3", true, [1]), ("topic=c&count=0", true, []), ("topic=c&count==0", true, []),
      ("is=pending", true, [4]), ("status=200", true, [1, 2, 3]),
      ("topic=a&count==1", false, [1, 3]), ("topic=a&count=0", false, [1, 3]),
      ("topic=a&count=3&timeout=0s", false, [1, 3]), ("topic=c&timeout=0s", false, []),
      ("topic=c&count==1&timeout=20ms", false, []), ("after=4&timeout=0s", false, []),
      ("after=9000000000000000000&count=0", true, []), ("before=0&count=0", true, []),
      ("topic=a&count=2&settle=10ms", true, [1, 3]),
      ("topic=c&count=0&settle=20ms&timeout=20ms", true, []),
    ] as [(String, Bool, [Int])])
  func existingPushesCount(text: String, isSatisfied: Bool, seqs: [Int]) async throws {
    let inbox = Inbox()
    for topic in ["a", "b", "a"] { inbox.append(Self.record(topic)) }
    inbox.append(Self.record("b", outcome: .pending))
    let answer = try await inbox.wait(for: Self.query(text))
    #expect(answer.isSatisfied == isSatisfied, "\(answer.message)")
    #expect(answer.items.map(\.seq) == seqs)
    #expect(answer.matched == seqs.count)
    #expect(answer.seq == 4)
    #expect(answer.isComplete && !answer.isAbandoned)
    #expect(inbox.notifier.listenerCount == 0)
  }

  @Test func itemsAreLimitedToAPage() async throws {
    let inbox = Inbox()
    for _ in 0..<1100 { inbox.append(Self.record()) }
    let answer = try await inbox.wait(for: Self.query("count==1100"))
    #expect(answer.isSatisfied)
    #expect(answer.matched == 1100)
    #expect(answer.items.map(\.seq) == Array(1...1000))
  }

  // MARK: - Pushes that arrive

  @Test(arguments: [
    ("topic=a", ["b", "a"], true, 1), ("topic=a&count=2", ["a", "b", "a"], true, 2),
    ("topic=a&count==2&settle=30ms", ["a", "b", "a", "b"], true, 2),
    ("topic=a&count==2&settle=1m", ["a", "a", "a"], false, 3),
    ("topic=a&count=0&settle=1m", ["b", "a"], false, 1),
    ("topic=a&count=3&settle=30ms", ["a", "a", "a", "a"], true, 4),
  ])
  func newPushesCount(text: String, topics: [String], isSatisfied: Bool, matched: Int) async throws {
    let inbox = Inbox()
    let wait = try await Self.begin(text, in: inbox)
    // In one batch, so that the wait cannot end in between.
    var batch = topics.map { Self.record($0) }
    inbox.append(&batch)
    let answer = try await wait.value
    #expect(answer.isSatisfied == isSatisfied, "\(answer.message)")
    #expect(answer.matched == matched)
    #expect(answer.seq == topics.count)
  }

  @Test func pendingPushCountsWithItsFinalOutcome() async throws {
    let inbox = Inbox()
    inbox.append(Self.record(outcome: .pending))
    let accepted = try await Self.begin("outcome=accepted", in: inbox)
    let none = try await Self.begin("is=pending&count=0", in: inbox)
    let later = try await Self.begin("outcome=accepted&count=2", in: inbox)
    inbox.finish(1, with: Self.end(.accepted))
    #expect(try await accepted.value.items.map(\.seq) == [1])
    #expect(try await none.value.isSatisfied)
    let seq = inbox.append(Self.record(outcome: .pending))
    inbox.finish(seq, with: Self.end(.accepted))
    let answer = try await later.value
    #expect(answer.isSatisfied)
    #expect(answer.items.map(\.outcome) == [.accepted, .accepted])
  }

  /// Evictions before a reset no longer matter after it, also if a newer push was counted before the reset was
  /// reported.
  @Test func evictionsBeforeAResetDoNotMatter() async throws {
    let inbox = Inbox(maxRecords: 2)
    for _ in 0..<5 { inbox.append(Self.record()) }
    let wait = try await Self.begin("topic=z&timeout=10s", in: inbox)
    inbox.append(Self.record())
    try await eventually("push 6 is delivered") { inbox.notifier.deliveredThrough >= 6 }
    inbox.notifier.signalEmptied(inbox, through: 5, reset: [])
    #expect(try await wait.value.isComplete)
    let other = try await inbox.wait(for: Self.query("topic=z&timeout=0s"))
    #expect(!other.isComplete)
  }

  /// A reset reported late does not hide that a newer push has ended.
  @Test func endOfANewerPushIsNotLostByAReset() async throws {
    for _ in 0..<50 {
      let inbox = Inbox()
      inbox.append(Self.record())
      inbox.append(Self.record(outcome: .pending))
      let wait = try await Self.begin("is=pending&count=0", in: inbox)
      inbox.finish(2, with: Self.end(.accepted))
      inbox.notifier.signalEmptied(inbox, through: 1, reset: [])
      #expect(try await wait.value.isSatisfied)
    }
  }

  @Test func emptyingTheInboxRestartsTheWait() async throws {
    let inbox = Inbox()
    inbox.append(Self.record())
    let wait = try await Self.begin("count==2", in: inbox)
    inbox.removeAll()
    for _ in 0..<2 { inbox.append(Self.record()) }
    let answer = try await wait.value
    #expect(answer.isSatisfied)
    #expect(answer.items.map(\.seq) == [2, 3])
  }

  @Test func removedPushesStayCounted() async throws {
    let inbox = Inbox()
    inbox.append(Self.record())
    let wait = try await Self.begin("count=2", in: inbox)
    // This can end only after the pending wait has counted the first push.
    let first = try await inbox.wait(for: Self.query(""))
    #expect(first.isSatisfied)
    try await eventually("the wait has counted the first push") { inbox.notifier.listenerCount > 0 }
    inbox.append(Self.record())
    let answer = try await wait.value
    try inbox.remove(Selection())
    #expect(answer.isSatisfied && answer.matched == 2)
  }

  // MARK: - Incomplete

  @Test(arguments: [
    ("count=3", true, false), ("count==3", false, false), ("topic=c&count=0", false, false),
    ("count==1&after=4", true, true), ("count=4&timeout=0s", false, false),
    ("topic=c&count=0&after=2", true, true),
  ])
  func evictedPushesAreReported(text: String, isSatisfied: Bool, isComplete: Bool) async throws {
    let inbox = Inbox(maxRecords: 3)
    for _ in 0..<5 { inbox.append(Self.record()) }
    let answer = try await inbox.wait(for: Self.query(text))
    #expect(answer.isSatisfied == isSatisfied, "\(answer.message)")
    #expect(answer.isComplete == isComplete)
    #expect(answer.evicted == 2)
    #expect(answer.message.contains("inconclusive") == (!isComplete && !isSatisfied), "\(answer.message)")
  }

  @Test func pushesEvictedAfterMatchingCount() async throws {
    let inbox = Inbox(maxRecords: 1)
    let wait = try await Self.begin("count==3&settle=30ms", in: inbox)
    for number in 1...3 {
      inbox.append(Self.record())
      // Until the inbox has notified all listeners of this push.
      _ = try await inbox.wait(for: Self.query("after=\(number - 1)"))
    }
    let answer = try await wait.value
    #expect(answer.isComplete == answer.isSatisfied)
    // A push that was evicted unseen ends the wait at once.
    #expect(answer.evicted == 2 || !answer.isComplete)
  }

  // MARK: - Ends

  @Test func stoppingTheServerEndsTheWait() async throws {
    let inbox = Inbox()
    let waits = [try await Self.begin("", in: inbox), try await Self.begin("count=0&settle=1m", in: inbox)]
    inbox.endWaiting()
    for wait in waits {
      let answer = try await wait.value
      #expect(answer.isAbandoned && !answer.isSatisfied)
    }
    #expect(try await inbox.wait(for: WaitQuery()).isAbandoned)
  }

  @Test func cancellationEndsTheWait() async throws {
    let inbox = Inbox()
    let wait = try await Self.begin("timeout=5m", in: inbox)
    wait.cancel()
    #expect(try await wait.value.isAbandoned)
    #expect(inbox.notifier.listenerCount == 0)
  }

  // MARK: - Many at once

  @Test func hundredsOfWaitsAreIndependent() async throws {
    let inbox = Inbox()
    var waits: [Task<WaitResult, any Error>] = []
    for number in 0..<300 { waits.append(try await Self.begin("topic=t\(number)&count=4&timeout=5m", in: inbox)) }
    #expect(inbox.notifier.listenerCount == 300)
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask { for number in 0..<300 { inbox.append(Self.record("t\(number)")) } }
      }
    }
    for (number, wait) in waits.enumerated() {
      let answer = try await wait.value
      #expect(answer.isSatisfied && answer.matched == 4, "\(number): \(answer.message)")
      #expect(
        answer.items.allSatisfy { $0.withTopic { $0.map { String(decoding: $0, as: UTF8.self) } } == "t\(number)" })
    }
    #expect(inbox.notifier.listenerCount == 0)
  }

  /// A wait that begins while others append, and while other waits start and end, counts each push once.
  @Test func countsEachOnce() async throws {
    let inbox = Inbox(maxRecords: 100_000)
    let (writers, each) = (4, 1500)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<writers {
        group.addTask {
          for number in 0..<each {
            if number % 3 == 0 {
              let seq = inbox.append(Self.record(outcome: .pending))
              inbox.finish(seq, with: Self.end(writer % 2 == 0 ? .accepted : .unanswered))
            } else {
              var batch = [Self.record()]
              inbox.append(&batch)
            }
          }
        }
      }
      for round in 0..<40 {
        group.addTask {
          let answer = try await inbox.wait(
            for: Self.query("topic=a&outcome=!pending&count=\((round + 1) * 150)&timeout=5m"))
          #expect(answer.isSatisfied)
          #expect(answer.items.map(\.seq) == answer.items.map(\.seq).sorted())
          #expect(Set(answer.items.map(\.seq)).count == answer.items.count)
        }
      }
      try await group.waitForAll()
    }
    let all = try await inbox.wait(for: Self.query("outcome=!pending&count==\(writers * each)"))
    #expect(all.isSatisfied, "\(all.message)")
  }
}

/// Parsing of the query string of a wait.
@Suite struct WaitQueryTests {
  @Test(arguments: [
    ("", WaitQuery.Count.atLeast(1), Duration.seconds(10), Duration.zero),
    ("count=3", .atLeast(3), .seconds(10), .zero), ("count==3", .exactly(3), .seconds(10), .zero),
    ("count=0", .exactly(0), .seconds(10), .zero), ("count==0&settle=2s", .exactly(0), .seconds(10), .seconds(2)),
    ("timeout=5m", .atLeast(1), .seconds(300), .zero), ("timeout=0s", .atLeast(1), .zero, .zero),
    ("settle=30s", .atLeast(1), .seconds(30), .seconds(30)),
    ("settle=500ms&timeout=1s", .atLeast(1), .seconds(1), .milliseconds(500)),
  ])
  func queryIsParsed(text: String, count: WaitQuery.Count, timeout: Duration, settle: Duration) throws {
    let query = try WaitQuery(FilterTests.parameters(text))
    #expect(query.count == count)
    #expect(query.timeout == timeout)
    #expect(query.settle == settle)
  }

  @Test(arguments: [
    ("count=-1", "count", "at least three"), ("count=x", "count", "whole number"), ("count=", "count", "whole number"),
    ("count===3", "count", "exactly three"), ("count=1000001", "count", "1000000"),
    ("timeout=10", "timeout", "such as 500ms"), ("timeout=-1s", "timeout", "such as"),
    ("timeout=301s", "timeout", "5m"),
    ("settle=6m", "settle", "5m"), ("settle=2s&timeout=1s", "settle", "at most the timeout, 1s"),
    ("tiemout=1s", "tiemout", "did you mean timeout?"), ("topik=x", "topik", "did you mean topic?"),
    ("status=abc", "status", "whole number"), ("after=-1", "after", "seq of a record"),
  ])
  func invalidParametersAreReported(text: String, field: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try WaitQuery(FilterTests.parameters(text)) }
    #expect(error?.field == field)
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
  }
}
