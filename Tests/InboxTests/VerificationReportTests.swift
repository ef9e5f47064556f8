import APNSMockFaultModel
import APNSMockFaults
import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// The report: near misses, hints, text and JSON.
@Suite struct VerificationReportTests {
  typealias Fixture = VerificationFixture

  // MARK: - The text

  @Test func textIsAsDocumented() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push("{'aps':{'alert':{'title':'Welcome '}}}"))
    let expect = """
      {'name':'welcome push','match':{'topic':'com.acme.app','payload':{'/aps/alert/title':'Welcome'}},\
      'count':{'exactly':1},'outcome':'accepted'}
      """
    let report = try await Fixture.report("{'expect':[\(expect)]}", in: inbox)
    #expect(
      report.text == """
        ✗ welcome push: expected exactly 1 accepted, found 0
          nearest: seq 1, 2 of 3 criteria, apns-id 9D3220FE-444B-633E-D1F1-5D0DCB4F537A
            topic             ✓ com.acme.app
            outcome           ✓ accepted
            /aps/alert/title  ✗ wanted "Welcome", found "Welcome "   ← trailing space
          window complete: yes (0 evicted)   seed 918273   profile flaky-503?rate=0.2
        """)
  }

  @Test func everyCriterionHasExpectedAndActualValue() async throws {
    let inbox = Inbox()
    var attempts = Fixture.attempts([0, 10, 16], finally: .rejected)
    inbox.append(&attempts)
    inbox.append(Fixture.push("no JSON", topic: "com.other"))
    let policy =
      "{'name':'retry policy','match':{'status':503},'retries':{'max':3,'min_first_delay':'1s','growing':true,'finally':'accepted'}}"
    let report = try await Fixture.report(
      "{'expect':[\(policy),{'name':'few','count':{'at_most':2}}],'order':['few','retry policy'],'no_others':true,'no_findings':['would-not-show']}",
      in: inbox)
    #expect(!report.isPassed)
    let lines = report.text.components(separatedBy: "\n")
    for line in [
      "✗ retry policy: 1 of 4 criteria",
      "  retries.max              ✓ wanted at most 3 retries, found 2 retries",
      "  retries.min_first_delay  ✗ wanted at least 1s, found 10ms   ← seq 2 after seq 1",
      "  retries.growing          ✗ wanted each delay a tenth longer than the one before, found 10ms, 6ms   ← seq 1, 2, 3",
      "  retries.finally          ✗ wanted accepted, found rejected   ← seq 3",
      "✗ few: expected at most 2, found 4", "  found: seq 1, 2, 3, 4",
      "✓ no_others: wanted none, found none", "✗ no_findings: wanted no would-not-show, found 1",
    ] { #expect(lines.contains(line), "\(line)\n\(report.text)") }
    #expect(lines.contains { $0.hasPrefix("    would-not-show  seq 4  ") })
    #expect(lines.contains { $0.hasPrefix("✗ order: wanted few, then retry policy, found ") })
  }

  @Test func unexpectedPushesAreListed() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push(topic: "com.other"))
    let report = try await Fixture.report("{'expect':[],'no_others':true}", in: inbox)
    #expect(
      report.text.hasPrefix(
        "✗ no_others: wanted none, found 1\n    seq 1: com.other alert to \(PushFixture.deviceToken), 200\n"))
  }

  // MARK: - Hints

  static let payload = """
    {'aps':{'alert':{'title':'Welcome','body':'Zoë  is\\there'},'badge':3,'sound':'3','mutable':true,'flag':'true',\
    'one':1,'list':['x'],'zero':'a\\u200bb','null':null},'Case':1}
    """

  @Test(
    arguments: [
      ("'/aps/alert/title':'Welcome '", "\"Welcome \"", "\"Welcome\"", "trailing space is missing"),
      ("'/aps/alert/title':' Welcome'", "\" Welcome\"", "\"Welcome\"", "leading space is missing"),
      ("'/aps/alert/title':' Welcome '", "\" Welcome \"", "\"Welcome\"", "space at both ends"),
      ("'/aps/alert/title':'welcome'", "\"welcome\"", "\"Welcome\"", "upper and lower case"),
      ("'/aps/alert/title':'Goodbye'", "\"Goodbye\"", "\"Welcome\"", nil),
      ("'/aps/alert/body':'Zoë is here'", "\"Zoë is here\"", "\"Zoë  is\\there\"", "white space"),
      (
        "'/aps/alert/body':'zoë is here'", "\"zoë is here\"", "\"Zoë  is\\there\"",
        "white space, and upper and lower case"
      ),
      (
        "'/aps/alert/body':'Zoe\u{308}  is\\there'", "\"Zoe\u{308}  is\\there\"", "\"Zoë  is\\there\"",
        "another Unicode normal form"
      ),
      ("'/aps/zero':'ab'", "\"ab\"", "\"a\\u{200B}b\"", "an invisible character"),
      ("'/aps/badge':'3'", "\"3\"", "3", "a number, not a string"),
      ("'/aps/sound':3", "3", "\"3\"", "a string, not a number"),
      ("'/aps/badge':4", "4", "3", nil), ("'/aps/mutable':'True'", "\"True\"", "true", "a Boolean, not a string"),
      ("'/aps/flag':true", "true", "\"true\"", "a string, not a Boolean"),
      ("'/aps/one':true", "true", "1", "a number, not a truth value"),
      ("'/aps/mutable':1", "1", "true", "a truth value, not a number"),
      ("'/aps/list':'x'", "\"x\"", "[\"x\"]", "in a list"),
      ("'/aps/alert':'Welcome'", "\"Welcome\"", "{\"title\":\"Welcome\",\"body\":\"Zoë  is\\there\"}", nil),
      ("'/aps/alert/titel':'x'", "\"x\"", "nothing", "/aps/alert has \"title\""),
      ("'/case':1", "1", "nothing", "the payload has \"Case\""),
      ("'/aps/sound/name':'x'", "\"x\"", "nothing", "/aps/sound is a string"),
      ("'/aps/list/4':'x'", "\"x\"", "nothing", "/aps/list is a list of 1"),
      ("'/aps/null/a':'x'", "\"x\"", "nothing", "/aps/null is null"), ("'/aps/xyzzy':'x'", "\"x\"", "nothing", nil),
      ("'/aps/null':'x'", "\"x\"", "null", nil),
    ] as [(String, String, String, String?)])
  func payloadDifferenceIsExplained(member: String, wanted: String, found: String, hint: String?) async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push(Self.payload))
    let report = try await Fixture.report(
      "{'expect':[{'match':{'topic':'com.acme.app','payload':{\(member)}}}]}", in: inbox)
    let criterion = try #require(report.expectations.first?.nearest.first?.criteria.last)
    #expect(criterion.wanted == wanted)
    #expect(criterion.found == found)
    #expect(criterion.hint == hint)
    #expect(!criterion.isMet)
  }

  @Test(
    arguments: [
      ("'topic':'com.ACME.app'", "topic", "\"com.ACME.app\"", "\"com.acme.app\"", "upper and lower case"),
      ("'topic':['x','y']", "topic", "\"x\" or \"y\"", "\"com.acme.app\"", nil),
      ("'topic':'!com.*'", "topic", "not \"com.*\"", "\"com.acme.app\"", nil),
      ("'!topic':'*'", "topic", "nothing", "\"com.acme.app\"", nil),
      ("'status':'400..499'", "status", "400..499", "200", nil), ("'status':410", "status", "410", "200", nil),
      ("'reason':'Unregistered'", "reason", "\"Unregistered\"", "nothing", nil),
      ("'rule':'*'", "rule", "something", "nothing", nil), ("'accepted':false", "accepted", "false", "true", nil),
      ("'is':'retry'", "is", "retry", "first", nil), ("'outcome':'rejected'", "outcome", "rejected", "accepted", nil),
      (
        "'headers':{'apns-push-type':'Alert'}", "header.apns-push-type", "\"Alert\"", "\"alert\"",
        "upper and lower case"
      ),
      ("'headers':{'x':'1'}", "header.x", "\"1\"", "nothing", nil),
      ("'text':'absent'", "text", "\"absent\"", "not in it", nil),
      ("'finding':'near-limit'", "finding", "\"near-limit\"", "nothing", nil),
      ("'payload./aps/alert':'>3'", "/aps/alert", ">3", "\"hi\"", nil),
      ("'size_gt':'4K'", "size_gt", "4K", "22", nil),
      ("'since':'2027-01-01T00:00:00Z'", "since", "2027-01-01T00:00:00Z", "\"2026-01-31T12:00:00.000Z\"", nil),
    ] as [(String, String, String, String, String?)])
  func actualFieldValuesAreShown(member: String, name: String, wanted: String, found: String, hint: String?)
    async throws
  {
    let inbox = Inbox()
    inbox.append(Fixture.push())
    let report = try await Fixture.report(
      "{'expect':[{'match':{'device_token':'\(PushFixture.deviceToken)',\(member)}}]}", in: inbox)
    let criterion = try #require(report.expectations.first?.nearest.first?.criteria.last)
    #expect(criterion.name == name)
    #expect(criterion.wanted == wanted)
    #expect(criterion.found == found)
    #expect(criterion.hint == hint)
  }

  @Test func invalidJSONBodyIsReported() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push("{"))
    let report = try await Fixture.report(
      "{'expect':[{'match':{'topic':'com.acme.app','payload':{'/a':1}}}]}", in: inbox)
    #expect(report.expectations.first?.nearest.first?.criteria.last?.hint == "the body is not JSON")
  }

  // MARK: - Nearest pushes

  @Test func nearestPushesAreOrdered() async throws {
    let inbox = Inbox()
    for (topic, title) in [
      ("a", "Welcome"), ("a", "welcome"), ("a", "x"), ("b", "Welcome"), ("a", "y"), ("c", "z"), ("a", "z"),
    ] {
      inbox.append(Fixture.push("{'aps':{'alert':{'title':'\(title)'}}}", topic: topic))
    }
    func nearest(_ match: String, count: Int = 9) async throws -> [Int] {
      try await Fixture.report("{'expect':[{'match':\(match),'count':\(count)}]}", in: inbox).expectations[0].nearest
        .map(\.seq)
    }
    #expect(try await nearest("{'topic':'a','payload':{'/aps/alert/title':'Welcome'},'status':200}") == [2, 7, 5])
    #expect(try await nearest("{'topic':'b','payload':{'/aps/alert/title':'welcome'},'status':410}") == [4, 2, 1])
    // Of pushes that meet no criterion, those with similar values are nearest, then the newest.
    #expect(try await nearest("{'payload':{'/aps/alert/title':'WELCOME'}}") == [4, 2, 1])
    #expect(try await nearest("{'topic':'nothing.like.it'}") == [7, 6, 5])
    #expect(try await nearest("{}") == [])
    // Enough pushes arrived, so nothing is missing.
    #expect(try await nearest("{'topic':'a'}", count: 2) == [])
  }

  // MARK: - Bounds

  @Test func reportIsBounded() async throws {
    let inbox = Inbox()
    let long = String(repeating: "ä", count: 1000)
    for _ in 0..<100 { inbox.append(Fixture.push("{'aps':{'alert':'\(long)x'}}")) }
    let name = String(repeating: "n", count: 5000)
    let report = try await Fixture.report(
      "{'expect':[{'name':'\(name)','match':{'topic':'com.acme.app','payload':{'/aps/alert':'\(long)y'}}},{'count':1}],'no_others':true}",
      in: inbox)
    #expect(report.expectations[1].matched == 100)
    #expect(report.expectations[1].seqs == (1...20).map(PushName.seq))
    #expect(report.text.contains("found: seq 1, 2, 3, 4, 5 and 95 more"))
    // Both values are shown from shortly before their first difference.
    let criterion = try #require(report.expectations[0].nearest.first?.criteria.last)
    let shared = String(repeating: "ä", count: 20)
    #expect(criterion.wanted == "\"…\(shared)y\"" && criterion.found == "\"…\(shared)x\"")
    #expect(report.text.utf8.count < 3000, "\(report.text)")
  }

  @Test func controlCharactersAreEscaped() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push("{'aps':{'alert':'\\u001b[2J\\n\\u202e\\u0000'}}", topic: "a b"))
    let report = try await Fixture.report(
      "{'expect':[{'name':'\\u001b[31m\\n','match':{'topic':'a b','payload':{'/aps/alert':'\\u001b'}}}],'no_others':true}",
      in: inbox)
    let allowed = report.text.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control }
    #expect(allowed)
    #expect(report.text.contains(#"found "\u{1B}[2J\n\u{202E}\0""#), "\(report.text)")
  }

  // MARK: - JSON

  @Test func writesJSON() async throws {
    let inbox = VerificationTests.inbox()
    let report = try await Fixture.report(
      "{'expect':[{'name':'one','match':{'topic':'a'},'status':200,'count':2}],'order':['one'],'no_others':true,'no_findings':true}",
      in: inbox)
    var writer = JSONWriter()
    writer.object(report.write)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
    #expect(object["passed"] as? Bool == false && object["inconclusive"] as? Bool == false)
    let one = try #require((object["expectations"] as? [[String: Any]])?.first)
    #expect(one["name"] as? String == "one" && one["passed"] as? Bool == false && one["matched"] as? Int == 1)
    #expect(one["seqs"] as? [Int] == [1])
    let count = try #require((one["criteria"] as? [[String: Any]])?.first)
    #expect(Set(count.keys) == ["criterion", "wanted", "found", "passed", "hint"])
    let nearest = try #require((one["nearest"] as? [[String: Any]])?.first)
    #expect(nearest["seq"] as? Int == 3 && nearest["met"] as? Int == 1 && nearest["of"] as? Int == 2)
    #expect((nearest["apns_id"] as? String)?.isEmpty == false)
    #expect((object["order"] as? [String: Any])?["passed"] as? Bool == true)
    #expect((object["no_others"] as? [String: Any])?["seqs"] as? [Int] == [2])
    #expect((object["no_findings"] as? [String: Any])?["findings"] is [Any])
    #expect(object["evicted"] as? Int == 0 && object["complete"] as? Bool == true)
    #expect(object["seed"] as? Int == 918_273 && object["profile"] as? String == "flaky-503?rate=0.2")
    #expect(object["text"] as? String == report.text)
  }
}
