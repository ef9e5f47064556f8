import APNSMockRules
import Foundation
import Testing

@testable import APNSMockInbox

/// Expectations that are met, and expectations that are not.
@Suite struct VerificationTests {
  typealias Fixture = VerificationFixture

  /// Returns an inbox with topics a, b, a; the third push is rejected with 410.
  static func inbox() -> Inbox {
    let inbox = Inbox()
    inbox.append(Fixture.push("{'aps':{'alert':{'title':'Welcome'},'badge':3}}", topic: "a"))
    inbox.append(Fixture.push("{'aps':{'alert':{'title':'Bye'},'badge':'3'},'list':[1,{'x':null}]}", topic: "b"))
    inbox.append(
      Fixture.push(topic: "a") {
        $0.outcome = .rejected
        $0.sentResponse = Record.SentResponse(status: 410, reason: .unregistered)
      })
    return inbox
  }

  // MARK: - Counts

  @Test(arguments: [
    ("{}", "at least 1", 3, true), ("{'count':3}", "exactly 3", 3, true), ("{'count':2}", "exactly 2", 3, false),
    ("{'count':{'exactly':3}}", "exactly 3", 3, true), ("{'count':{'at_least':4}}", "at least 4", 3, false),
    ("{'count':{'at_most':2}}", "at most 2", 3, false), ("{'count':{'at_most':3}}", "at most 3", 3, true),
    ("{'count':{'at_least':2,'at_most':4}}", "2 to 4", 3, true),
    ("{'count':{'at_least':4,'at_most':5}}", "4 to 5", 3, false),
    ("{'match':{'topic':'a'},'count':2}", "exactly 2", 2, true),
    ("{'match':{'topic':'c'},'count':0}", "none", 0, true), ("{'match':{'topic':'a'},'count':0}", "none", 2, false),
    ("{'match':{'topic':'c'}}", "at least 1", 0, false),
    ("{'match':{'topic':'a'},'outcome':'accepted'}", "at least 1 accepted", 1, true),
    ("{'outcome':['rejected','unprocessed'],'count':1}", "exactly 1 rejected or unprocessed", 1, true),
    ("{'outcome':'!accepted','count':1}", "exactly 1 not accepted", 1, true),
    ("{'status':410,'count':1}", "exactly 1 status 410", 1, true), ("{'status':'4*'}", "at least 1 status 4*", 1, true),
    ("{'accepted':true,'count':2}", "exactly 2 accepted true", 2, true),
    ("{'reason':'Unregistered'}", "at least 1 reason Unregistered", 1, true),
    ("{'outcome':'rejected','status':410}", "at least 1 rejected, status 410", 1, true),
    ("{'outcome':null,'count':3}", "exactly 3", 3, true),
  ])
  func counts(expectation: String, wanted: String, found: Int, isMet: Bool) async throws {
    let report = try await Fixture.report("{'expect':[\(expectation)]}", in: Self.inbox())
    let criterion = try #require(report.expectations.first?.criteria.first)
    #expect(criterion.name == "count")
    #expect(criterion.wanted == wanted)
    #expect(criterion.found == String(found))
    #expect(criterion.isMet == isMet)
    #expect(report.isPassed == isMet)
    #expect(report.expectations.first?.matched == found)
  }

  // MARK: - Which pushes

  @Test(arguments: [
    ("{'topic':'a'}", [1, 3]), ("{'topic':['a','b']}", [1, 2, 3]), ("{'topic':'!a'}", [2]), ("{'!topic':'a'}", [2]),
    ("{'topic':'*','status':410}", [3]), ("{'status':'>=400'}", [3]), ("{'accepted':false}", [3]),
    ("{'device_token':'\(PushFixture.deviceToken.uppercased())'}", [1, 2, 3]),
    ("{'payload':{'/aps/badge':3}}", [1]), ("{'payload':{'/aps/badge':'3'}}", [2]),
    ("{'payload':{'/aps/badge':3.0}}", [1]), ("{'payload.\("/aps/badge")':3}", [1, 2]),
    ("{'payload':{'/aps/alert/title':'*'}}", []), ("{'payload./aps/alert/title':'*'}", [1, 2]),
    ("{'payload./aps/alert/title':'W*'}", [1]), ("{'payload':{'/list':[1,{'x':null}]}}", [2]),
    ("{'payload':{'/list':[{'x':null},1]}}", []), ("{'payload':{'/list/1':{'x':null}}}", [2]),
    ("{'payload':{'/list/1/x':null}}", [2]), ("{'payload':{'/aps/alert':{'title':'Bye'},'/aps/badge':'3'}}", [2]),
    ("{'payload':{'':{'aps':{'alert':'hi'}}}}", [3]),
    ("{'headers':{'Apns-Topic':'b'}}", [2]), ("{'headers':{'apns-topic':['a','!b']}}", [1, 3]),
    ("'topic:a status:200'", [1]), ("'text:welcome'", [1]), ("{'q':'topic:a','status':410}", [3]),
    ("{'after':1}", [2, 3]), ("{'before':2}", [1]), ("{'is':'duplicate'}", []), ("{'since':'-1m'}", [1, 2, 3]),
    ("{}", [1, 2, 3]), ("''", [1, 2, 3]),
  ])
  func matches(match: String, seqs: [Int]) async throws {
    let report = try await Fixture.report("{'expect':[{'match':\(match),'count':\(seqs.count)}]}", in: Self.inbox())
    #expect(report.expectations.first?.seqs == seqs.map(PushName.seq))
    #expect(report.isPassed, "\(report.text)")
  }

  // MARK: - Retries

  @Test(
    arguments: [
      ("'max':3", [0, 1000, 3000], "2 retries", true), ("'max':1", [0, 1000, 3000], "2 retries", false),
      ("'min':2", [0, 1000, 3000], "2 retries", true), ("'min':1", [0], "0 retries", false),
      ("'min':2", [0, 1000], "1 retry", false),
      ("'min_first_delay':'1s'", [0, 1000], "1s", true), ("'min_first_delay':'1s'", [0, 999], "999ms", false),
      ("'max_first_delay':'1s'", [0, 1000], "1s", true), ("'max_first_delay':'1s'", [0, 1001, 9000], "1.001s", false),
      ("'min_first_delay':'1s'", [0], "no retry", true),
      ("'growing':true", [0, 1000, 3000], "1s, 2s", true), ("'growing':true", [0, 1000, 2000], "1s, 1s", false),
      ("'growing':true", [0, 1000, 2050], "1s, 1.05s", false), ("'growing':true", [0, 1000, 2100], "1s, 1.1s", true),
      ("'growing':true", [0, 0, 0], "0s, 0s", false), ("'growing':true", [0, 1000], "1s", true),
      ("'growing':true", [0], "no retry", true),
      ("'finally':'accepted'", [0, 1000], "accepted", true), ("'finally':'rejected'", [0, 1000], "accepted", false),
      ("'finally':['rejected','accepted']", [0, 1000], "accepted", true),
    ] as [(String, [Int64], String, Bool)])
  func retryPolicyIsChecked(policy: String, times: [Int64], found: String, isMet: Bool) async throws {
    let inbox = Inbox()
    var attempts = Fixture.attempts(times)
    inbox.append(&attempts)
    let report = try await Fixture.report("{'expect':[{'retries':{\(policy)}}]}", in: inbox)
    let criterion = try #require(report.expectations.first?.criteria.first)
    #expect(report.expectations.first?.criteria.count == 1)
    #expect(criterion.name.hasPrefix("retries."))
    #expect(criterion.found == found)
    #expect(criterion.isMet == isMet && report.isPassed == isMet)
    #expect((criterion.hint == nil) == isMet)
  }

  @Test func retriesIncludeNonmatchingAttempts() async throws {
    let inbox = Inbox()
    let (one, two) = (String(repeating: "1", count: 64), String(repeating: "2", count: 64))
    let (first, second) = (
      Fixture.attempts([0, 1002], to: one), Fixture.attempts([1, 500, 999], to: two, finally: .rejected)
    )
    for record in [first[0], second[0], second[1], second[2], first[1]] { inbox.append(record) }
    // The same push again, after it was accepted, starts a new series of attempts.
    for record in Fixture.attempts([5000, 6002], to: one) { inbox.append(record) }
    let expect = "{'match':{'outcome':'rejected','device_token':'\(one)'},'retries':{'max':1,'finally':'accepted'}}"
    let report = try await Fixture.report("{'expect':[\(expect)]}", in: inbox)
    #expect(report.isPassed, "\(report.text)")
    let both = try await Fixture.report("{'expect':[{'retries':{'max':1,'finally':'accepted'}}]}", in: inbox)
    let criteria = try #require(both.expectations.first?.criteria)
    #expect(criteria.map(\.found) == ["2 retries", "rejected"])
    #expect(criteria.map(\.hint) == ["seq 2, 3, 4", "seq 4"])
  }

  @Test(
    arguments: [
      ("", false), ("'allow_none':false,", false), ("'allow_none':true,", true), ("'count':{'at_most':3},", true),
      ("'count':0,", true), ("'count':{'at_least':1},", false), ("'count':{'at_least':1},'allow_none':true,", true),
    ])
  func retryPolicyNeedsAPush(members: String, isMet: Bool) async throws {
    let expect = "{'expect':[{'match':{'rule':'flaky'},\(members)'retries':{'max':3,'finally':'accepted'}}]}"
    let report = try await Fixture.report(expect, in: Self.inbox())
    #expect(report.isPassed == isMet, "\(report.text)")
    #expect(report.text.contains("no push matched") == !isMet)
  }

  @Test(
    arguments: [
      ("'allow_none':true", 0, true), ("'allow_none':true,'count':2", 0, true),
      ("'allow_none':true,'count':2", 1, false), ("'allow_none':true,'count':2", 2, true),
      ("'count':{'at_most':2}", 0, true), ("'count':2", 0, false),
    ] as [(String, Int, Bool)])
  func countMayAllowZero(members: String, pushes: Int, isMet: Bool) async throws {
    let inbox = Inbox()
    for _ in 0..<pushes { inbox.append(Fixture.push()) }
    let report = try await Fixture.report("{'expect':[{\(members)}]}", in: inbox)
    #expect(report.isPassed == isMet, "\(report.text)")
  }

  @Test func orderSkipsOptionalPushes() async throws {
    let inbox = Inbox()
    for topic in ["a", "c"] { inbox.append(Fixture.push(topic: topic)) }
    func report(_ member: String) async throws -> VerificationReport {
      try await Fixture.report(
        """
        {'expect':[{'name':'a','match':{'topic':'a'}},{'name':'b','match':{'topic':'b'},\(member)},\
        {'name':'c','match':{'topic':'c'}}],'order':['a','b','c']}
        """, in: inbox)
    }
    #expect(try await report("'allow_none':true").isPassed)
    #expect(try await !report("'count':{'at_most':1}").isPassed)
  }

  // MARK: - Nothing lost

  @Test(
    arguments: [
      ([], []), ([Step(at: 0)], []), ([Step(at: 0, answer: "503 ServiceUnavailable")], [1]),
      ([Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 500)], []),
      ([Step(at: 0, answer: "503 ServiceUnavailable"), Step(at: 500, push: "b")], [1]),
      ([Step(at: 0, answer: "429 TooManyRequests"), Step(at: 500, answer: "lost")], [2]),
      ([Step(at: 0, answer: "refused")], [1]), ([Step(at: 0, answer: "goaway")], [1]),
      ([Step(at: 0, answer: "goaway"), Step(at: 5, connection: "c2")], []),
      // The retry overtakes the push: the old connection is read after the new one.
      ([Step(at: 0, connection: "c2"), Step(at: 900, answer: "excluded")], []),
      ([Step(at: 0, connection: "c2"), Step(at: 2000, answer: "excluded")], [2]),
      ([Step(at: 0, answer: "pending")], [1]), ([Step(at: 0, answer: "pending"), Step(at: 500)], []),
      ([Step(at: 0, answer: "400 BadTopic")], []), ([Step(at: 0, answer: "410 Unregistered")], []),
      ([Step(at: 0, answer: "taken")], []), ([Step(at: 0), Step(at: 500, answer: "503")], [2]),
    ] as [([Step], [Int])])
  func lostPushesAreReported(steps: [Step], lost: [Int]) async throws {
    let report = try await Fixture.report("{'nothing_lost':true}", in: FindingsScenario(steps).inbox)
    #expect(report.lost?.seqs == lost.map(PushName.seq) && report.isPassed == lost.isEmpty, "\(report.text)")
    #expect(report.text.contains("✗ nothing_lost: wanted none lost, found \(lost.count) lost") == !lost.isEmpty)
  }

  @Test func pendingRetryIsNotLost() async throws {
    let scene = FindingsScenario([Step(at: 0, answer: "503 ServiceUnavailable")])
    let verification = try Fixture.verification("{'nothing_lost':true,'timeout':'5m','settle':'20ms'}")
    let inbox = scene.inbox
    async let report = inbox.verify(verification, in: Fixture.scene)
    try await Task.sleep(for: .milliseconds(50))
    scene.add(Step(at: 500))
    let isPassed = try await report?.isPassed
    #expect(isPassed == true)
  }

  // MARK: - Order, other pushes, findings

  static let three = """
    {'name':'a','match':{'topic':'a'}},{'name':'b','match':{'topic':'b'}},{'name':'c','match':{'topic':'c'},'count':0},\
    {'name':'gone','match':{'status':410}}
    """

  @Test(arguments: [
    ("['a','b','gone']", "a (seq 1), then b (seq 2), then gone (seq 3)", true),
    ("['b','a']", "a (seq 1), then b (seq 2)", false), ("['b','gone']", "b (seq 2), then gone (seq 3)", true),
    ("['a','c']", "a (seq 1); no c", false), ("['c']", "no c", false), ("['a']", "a (seq 1)", true),
  ])
  func orderComparesFirstPushes(order: String, found: String, isMet: Bool) async throws {
    let report = try await Fixture.report("{'expect':[\(Self.three)],'order':\(order)}", in: Self.inbox())
    #expect(report.order?.found == found)
    #expect(report.order?.isMet == isMet && report.isPassed == isMet)
  }

  @Test func pushIsNotOrderedWithItself() async throws {
    let expect = "{'name':'one','match':{'topic':'b'}},{'name':'two','match':{'payload':{'/aps/badge':'3'}}}"
    let report = try await Fixture.report("{'expect':[\(expect)],'order':['one','two']}", in: Self.inbox())
    #expect(report.order?.isMet == false)
    #expect(report.order?.hint?.contains("one push") == true)
  }

  @Test(arguments: [
    ("[{'match':{'topic':'a'}}]", [2]), ("[{'match':{'topic':'a'}},{'match':{'topic':'b'}}]", []),
    ("[{}]", []), ("[]", [1, 2, 3]),
    // The expected outcome is not part of the match, so pushes with another outcome are not unexpected.
    ("[{'match':{'topic':['a','b']},'outcome':'rejected'}]", []),
  ])
  func unexpectedPushesAreFound(expect: String, seqs: [Int]) async throws {
    let report = try await Fixture.report("{'expect':\(expect),'no_others':true}", in: Self.inbox())
    #expect(report.others?.seqs == seqs.map(PushName.seq))
    #expect(report.others?.criterion.isMet == seqs.isEmpty && report.isPassed == seqs.isEmpty)
    #expect(try await Fixture.report("{'expect':\(expect),'no_others':false}", in: Self.inbox()).others == nil)
  }

  @Test(arguments: [
    ("true", 1, false), ("['would-not-show']", 1, false), ("['near-limit']", 0, true), ("false", nil, true),
  ])
  func forbiddenFindingsAreFound(names: String, count: Int?, isMet: Bool) async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push("no JSON"))
    let report = try await Fixture.report("{'expect':[{}],'no_findings':\(names)}", in: inbox)
    #expect(report.findings?.findings.count == count)
    #expect(report.isPassed == isMet, "\(report.text)")
  }

  // MARK: - The window

  @Test func onlyPushesSinceTheResetCount() async throws {
    let inbox = Self.inbox()
    #expect(try await Fixture.report("{'expect':[{'count':1}],'after':2}", in: inbox).expectations[0].seqs == [.seq(3)])
    inbox.removeAll()
    #expect(try await Fixture.report("{'expect':[{'count':0}]}", in: inbox).isPassed)
    #expect(try await Fixture.report("{'expect':[{'count':0}],'after':9000000000000000000}", in: inbox).isPassed)
  }

  @Test(arguments: [("", false), (",'after':1", false), (",'after':2", true), (",'after':4", true)])
  func evictedPushesAreReported(after: String, isComplete: Bool) async throws {
    let inbox = Inbox(maxRecords: 3)
    for _ in 0..<5 { inbox.append(Fixture.push()) }
    let report = try await Fixture.report("{'expect':[{'count':{'at_least':1}}]\(after)}", in: inbox)
    #expect(report.isComplete == isComplete && report.isInconclusive == !isComplete)
    #expect(report.isPassed == isComplete)
    #expect(report.evicted == 2)
    #expect(report.text.contains("inconclusive") == !isComplete)
    inbox.removeAll()
    inbox.append(Fixture.push())
    #expect(try await Fixture.report("{'expect':[{'count':1}]}", in: inbox).isPassed)
  }
}
