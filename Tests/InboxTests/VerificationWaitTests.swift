import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// How long a verification waits, and what ends it.
@Suite struct VerificationWaitTests {
  typealias Fixture = VerificationFixture

  /// Starts a verification and returns when it waits on the inbox.
  static func begin(_ json: String, in inbox: Inbox) async throws -> Task<VerificationReport?, any Error> {
    let verification = try Fixture.verification(json)
    let before = inbox.notifier.listenerCount
    let task = Task { try await inbox.verify(verification, in: Fixture.scene) }
    try await eventually("the verification waits") { inbox.notifier.listenerCount > before }
    return task
  }

  /// Further pushes cannot violate these criteria: the verification ends when they are met, long before the timeout.
  @Test(arguments: [
    "[{'match':{'topic':'a'}}]", "[{'match':{'topic':'a'},'count':{'at_least':2}},{'match':{'topic':'b'}}]",
    "[{'match':{'topic':'a'},'outcome':'accepted'}]",
  ])
  func endsWhenPositiveCountsAreMet(expect: String) async throws {
    let inbox = Inbox()
    let task = try await Self.begin("{'expect':\(expect),'timeout':'5m'}", in: inbox)
    for topic in ["c", "a", "b", "a"] { inbox.append(Fixture.push(topic: topic)) }
    let report = try #require(try await task.value)
    #expect(report.isPassed, "\(report.text)")
    #expect(inbox.notifier.listenerCount == 0)
  }

  /// Further pushes could violate these criteria: the verification takes the whole timeout, or ends after the settle
  /// time.
  @Test(arguments: [
    ("{'expect':[{'count':1}]", true), ("{'expect':[{'count':{'at_most':3}}]", true),
    ("{'expect':[{'match':{'topic':'b'},'count':0}]", true), ("{'expect':[{}],'no_others':true", true),
    ("{'expect':[{}],'no_findings':true", true), ("{'expect':[{'name':'x'}],'order':['x']", true),
    ("{'expect':[{'retries':{'max':1}}]", true),
    ("{'expect':[{'name':'x','match':{'topic':'b'},'count':0}],'order':['x']", false),
  ])
  func negativeCriteriaWaitForTheTimeout(document: String, isPassed: Bool) async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push(topic: "a"))
    let began = ContinuousClock.now
    let timedOut = try await inbox.verify(try Fixture.verification(document + ",'timeout':'50ms'}"), in: Fixture.scene)
    #expect(ContinuousClock.now - began >= .milliseconds(50))
    #expect(timedOut?.isPassed == isPassed, "\(timedOut?.text ?? "")")
    guard isPassed else { return }
    let settling = try Fixture.verification(document + ",'timeout':'5m','settle':'50ms'}")
    let quiet = try await inbox.verify(settling, in: Fixture.scene)
    #expect(ContinuousClock.now - began >= .milliseconds(100))
    #expect(quiet?.isPassed == true)
  }

  /// A criterion that can no longer be met ends the verification, and no other unmet criterion does.
  @Test func endsWhenACriterionCannotBeMet() async throws {
    let inbox = Inbox()
    let over = try await Self.begin("{'expect':[{'count':1}],'timeout':'5m'}", in: inbox)
    let other = try await Self.begin(
      "{'expect':[{'match':{'topic':'a'},'count':{'at_most':9}}],'no_others':true,'timeout':'5m'}", in: inbox)
    var batch = ["a", "b"].map { Fixture.push(topic: $0) }
    inbox.append(&batch)
    #expect(try await over.value?.isPassed == false)
    #expect(try await other.value?.others?.seqs == [.seq(2)])
  }

  /// A violated count does not end the wait for the others, so that the report covers them too.
  @Test func waitContinuesAfterOneFailure() async throws {
    let inbox = Inbox()
    let document = "{'expect':[{'match':{'topic':'a'},'count':0},{'match':{'topic':'b'}}],'timeout':'5m'}"
    let task = try await Self.begin(document, in: inbox)
    inbox.append(Fixture.push(topic: "a"))
    // Until this push has been delivered to the listeners, the other cannot have ended by the first push alone.
    _ = try await inbox.wait(for: WaitingTests.query("topic=a"))
    inbox.append(Fixture.push(topic: "b"))
    let report = try #require(try await task.value)
    #expect(report.expectations.map(\.isMet) == [false, true])
  }

  @Test func pendingPushCountsWithItsFinalOutcome() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push { $0.outcome = .pending })
    let accepted = try await Self.begin("{'expect':[{'outcome':'accepted'}],'timeout':'5m'}", in: inbox)
    let pending = try await Self.begin(
      "{'expect':[{'match':{'is':'pending'},'count':0}],'no_others':false,'timeout':'5m','settle':'20ms'}", in: inbox)
    inbox.finish(1, with: WaitingTests.end(.accepted))
    #expect(try await accepted.value?.expectations[0].seqs == [.seq(1)])
    #expect(try await pending.value?.isPassed == true)
  }

  /// A retry may arrive late: unmet criteria are waited for after the settle time as well.
  @Test func quietPeriodAloneIsNotEnough() async throws {
    let inbox = Inbox()
    let attempts = Fixture.attempts([0, 1002])
    inbox.append(attempts[0])
    let task = try await Self.begin(
      "{'expect':[{'retries':{'finally':'accepted'}}],'timeout':'5m','settle':'20ms'}", in: inbox)
    let quiet = try Fixture.verification("{'expect':[{'count':1}],'timeout':'5m','settle':'40ms'}")
    #expect(try await inbox.verify(quiet, in: Fixture.scene)?.isPassed == true)
    inbox.append(attempts[1])
    let report = try #require(try await task.value)
    #expect(report.isPassed, "\(report.text)")
  }

  /// A pending attempt counts once in the series of attempts, however it ends.
  @Test func retriesCountEachAttemptOnce() async throws {
    let inbox = Inbox()
    var attempts = Fixture.attempts([0, 1002, 3004], finally: .pending)
    inbox.append(&attempts)
    let task = try await Self.begin(
      "{'expect':[{'match':{'is':'retry'},'retries':{'max':2,'min':2,'finally':'accepted'}}],'timeout':'5m','settle':'20ms'}",
      in: inbox)
    inbox.finish(3, with: WaitingTests.end(.accepted))
    let report = try #require(try await task.value)
    #expect(report.isPassed, "\(report.text)")
  }

  @Test func emptyingTheInboxRestartsTheWait() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push())
    let task = try await Self.begin("{'expect':[{'count':2}],'timeout':'5m','settle':'50ms'}", in: inbox)
    inbox.removeAll()
    var batch = [Fixture.push(), Fixture.push()]
    inbox.append(&batch)
    let report = try #require(try await task.value)
    #expect(report.isPassed, "\(report.text)")
    #expect(report.expectations[0].seqs == [.seq(2), .seq(3)])
  }

  @Test func evictionDuringTheWaitIsReported() async throws {
    let inbox = Inbox(maxRecords: 1)
    let task = try await Self.begin("{'expect':[{'count':{'at_least':2}}],'timeout':'5m'}", in: inbox)
    // The inbox holds one push at a time: the first may be evicted before it is seen, and then the second.
    try await eventually("the verification ends") {
      inbox.append(Fixture.push())
      return inbox.notifier.listenerCount == 0
    }
    #expect(try await task.value?.isInconclusive == true)
  }

  @Test func stoppingOrCancellingEndsTheWait() async throws {
    let inbox = Inbox()
    let cancelled = try await Self.begin("{'expect':[{}],'timeout':'5m'}", in: inbox)
    cancelled.cancel()
    #expect(try await cancelled.value == nil)
    #expect(inbox.notifier.listenerCount == 0)
    let waiting = try await Self.begin("{'expect':[{}],'timeout':'5m'}", in: inbox)
    inbox.endWaiting()
    #expect(try await waiting.value == nil)
    #expect(
      try await inbox.verify(try Fixture.verification("{'expect':[{}],'timeout':'1s'}"), in: Fixture.scene) == nil)
    // The current contents can still be verified.
    #expect(
      try await inbox.verify(try Fixture.verification("{'expect':[{'count':0}]}"), in: Fixture.scene)?.isPassed == true)
  }

  /// Verifications that begin while others append count each push once.
  @Test func countsEachOnce() async throws {
    let inbox = Inbox()
    let (writers, each) = (4, 500)
    let all = "{'expect':[{'match':{'outcome':'accepted'},'count':{'at_least':\(writers * each)}}],'timeout':'5m'}"
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<writers {
        group.addTask {
          for number in 0..<each {
            let seq = inbox.append(Fixture.push { $0.outcome = number % 3 == 0 ? .pending : nil })
            if number % 3 == 0 { inbox.finish(seq, with: WaitingTests.end(.accepted)) }
          }
        }
      }
      for _ in 0..<20 {
        group.addTask {
          guard let verification = try? Fixture.verification(all) else { return }
          let report = try await inbox.verify(verification, in: Fixture.scene)
          #expect(report?.isPassed == true)
          #expect(report?.expectations.first?.matched == writers * each)
        }
      }
      try await group.waitForAll()
    }
  }
}
