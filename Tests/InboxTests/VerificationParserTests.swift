import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Parsing of verification documents, and errors about invalid ones.
@Suite struct VerificationReadingTests {
  typealias Fixture = VerificationFixture

  static func problems(_ json: String) -> [FileProblem] {
    let failure = #expect(throws: FileFailure.self) { try Fixture.verification(json) }
    return failure?.problems ?? []
  }

  @Test(arguments: [
    ("'timeout':'5s'", Duration.seconds(5), Duration.zero), ("'timeout':0", .zero, .zero),
    ("'timeout':'5m','settle':'500ms'", .seconds(300), .milliseconds(500)), ("'timeout':null", .zero, .zero),
  ])
  func readsTimes(members: String, timeout: Duration, settle: Duration) throws {
    let verification = try Fixture.verification("{'expect':[],\(members)}")
    #expect(verification.timeout == timeout)
    #expect(verification.settle == settle)
  }

  @Test(arguments: [
    ("{}", "", "there are no expectations", "Add at least one"), ("[]", "", "expected a map, not a list", ""),
    ("", "", "the document is not JSON", "Send an object"),
    ("{'expect':1}", "/expect", "expected a list, not a number", ""),
    ("{'expct':[]}", "/expct", "unknown", "Did you mean \"expect\"?"),
    ("{'expect':[1]}", "/expect/0", "expected a map, not a number", ""),
    ("{'expect':[null]}", "/expect/0", "expected a map, not nothing", ""),
    ("{'expect':[{'macth':{}}]}", "/expect/0/macth", "unknown", "Did you mean \"match\"?"),
    ("{'expect':[{'name':1}]}", "/expect/0/name", "a number", "Quote it: \"1\""),
    ("{'expect':[{'name':''}]}", "/expect/0/name", "the name is empty", "a name"),
    ("{'expect':[{'name':'a'},{'name':'a'}]}", "/expect/1", "called \"a\"", "Use unique names"),
    ("{'expect':[{'name':'a','name':'b'}]}", "/expect/0/name", "duplicate key: name", "Keep one"),
    ("{'expect':[{'match':{'topik':'a'}}]}", "/expect/0/match/topik", "unknown field", "Did you mean topic?"),
    ("{'expect':[{'match':{'paylod':{}}}]}", "/expect/0/match/paylod", "unknown field", "Did you mean payload?"),
    ("{'expect':[{'match':{'topic':null}}]}", "/expect/0/match/topic", "null", "!"),
    ("{'expect':[{'match':{'status':['200','x']}}]}", "/expect/0/match/status/1", "status cannot be", "whole number"),
    (
      "{'expect':[{'match':{'payload':{'aps/alert':1}}}]}", "/expect/0/match/payload/aps~1alert", "not a JSON pointer",
      "/"
    ),
    ("{'expect':[{'match':{'payload':1}}]}", "/expect/0/match/payload", "expected a map", ""),
    ("{'expect':[{'match':'topik:a'}]}", "/expect/0/match", "column 1", "Did you mean topic?"),
    ("{'expect':[{'match':3}]}", "/expect/0/match", "or a query", ""),
    ("{'expect':[{'count':-1}]}", "/expect/0/count", "-1 is not a whole number from 0", ""),
    ("{'expect':[{'count':1.5}]}", "/expect/0/count", "1.5 is not a whole number", "Did you mean 2?"),
    ("{'expect':[{'count':'3'}]}", "/expect/0/count", "\"3\" is a string, expected a whole number", "quotation marks"),
    ("{'expect':[{'count':{}}]}", "/expect/0/count", "number is missing", "exactly"),
    ("{'expect':[{'count':{'exact':1}}]}", "/expect/0/count/exact", "unknown", "Did you mean \"exactly\"?"),
    ("{'expect':[{'count':{'exactly':1,'at_most':2}}]}", "/expect/0/count/exactly", "excludes", "Omit"),
    ("{'expect':[{'count':{'at_least':3,'at_most':2}}]}", "/expect/0/count", "larger", "Swap"),
    (
      "{'expect':[{'count':{'exactly':1000001}}]}", "/expect/0/count/exactly",
      "1000001 is not a whole number from 0 to 1000000", ""
    ),
    ("{'expect':[{'outcome':'acepted'}]}", "/expect/0/outcome", "acepted", "Did you mean accepted?"),
    ("{'expect':[{'status':'many'}]}", "/expect/0/status", "many", "whole number"),
    ("{'expect':[{'accepted':1}]}", "/expect/0/accepted", "1", "true or false"),
    ("{'expect':[{'retries':{}}]}", "/expect/0/retries", "policy is missing", "finally"),
    ("{'expect':[{'retries':{'min':null}}]}", "/expect/0/retries", "policy is missing", "finally"),
    ("{'expect':[{'retries':{'min':null,'finally':null}}]}", "/expect/0/retries", "policy is missing", "finally"),
    ("{'expect':[{'count':{'exactly':null}}]}", "/expect/0/count", "number is missing", "exactly"),
    ("{'expect':[{'match':{'payload':null}}]}", "/expect/0/match/payload", "expected a map", ""),
    ("{'expect':[{'match':{'headers':null}}]}", "/expect/0/match/headers", "expected a map", ""),
    ("{'expect':[{'name':1}]}", "/expect/0/name", "1 without quotation marks is a number", "Quote it"),
    ("{'expect':[{'retries':{'maximum':3}}]}", "/expect/0/retries/maximum", "unknown", "Expected one of min, max"),
    ("{'expect':[{'retries':{'min':3,'max':1}}]}", "/expect/0/retries", "larger", "Swap"),
    ("{'expect':[{'retries':{'min_first_delay':1}}]}", "/expect/0/retries/min_first_delay", "no unit", "1s?"),
    (
      "{'expect':[{'retries':{'finally':'acceptd'}}]}", "/expect/0/retries/finally", "unknown value \"acceptd\"",
      "accepted"
    ),
    ("{'expect':[{'retries':{'finally':[]}}]}", "/expect/0/retries/finally", "empty", "at least one"),
    ("{'expect':[{'retries':{'finally':'aborted'}}]}", "/expect/0/retries/finally", "\"aborted\"", "response_lost"),
    ("{'expect':[{'retries':{'growing':'yes'}}]}", "/expect/0/retries/growing", "neither true nor false", ""),
    ("{'expect':[],'timeout':5}", "/timeout", "no unit", "5s?"),
    ("{'expect':[],'timeout':'6m'}", "/timeout", "6m is longer than 5m", ""),
    ("{'expect':[],'timeout':'soon'}", "/timeout", "\"soon\" is not a duration", "500ms"),
    ("{'expect':[],'settle':'2s'}", "/settle", "longer than the timeout", "longer"),
    ("{'expect':[],'after':-1}", "/after", "from 0", ""),
    ("{'expect':[],'order':['x']}", "/order/0", "no expectation", "There is none"),
    ("{'expect':[{'name':'first'}],'order':['frist']}", "/order/0", "\"frist\"", "Did you mean \"first\"?"),
    ("{'expect':[{'name':'a'}],'order':['a','a']}", "/order/1", "twice", "remove one"),
    ("{'expect':[{'name':'a'}],'order':'a'}", "/order", "expected a list, not a string", ""),
    ("{'no_others':'yes'}", "/no_others", "\"yes\" is neither true nor false", ""),
    ("{'no_others':'true'}", "/no_others", "\"true\" is neither true nor false", "Remove the quotation marks"),
    (
      "{'no_findings':['retried-401']}", "/no_findings/0", "unknown value \"retried-401\"",
      "Did you mean \"retried-410\"?"
    ),
    ("{'no_findings':'retried-410'}", "/no_findings", "true, or a list", ""),
    ("{'expect':[{'match':{'is':'duplicate'}}],'timeout':'1s'}", "/expect/0/match/is", "duplicate", "wait"),
  ])
  func problemsAreReported(json: String, pointer: String, message: String, hint: String) {
    let problems = Self.problems(json)
    #expect(problems.count == 1, "\(problems)")
    #expect(problems.first?.path == pointer)
    #expect(problems.first?.message.contains(message) == true, "\(problems)")
    #expect(hint.isEmpty || problems.first?.advice.contains(hint) == true, "\(problems)")
  }

  @Test func allProblemsAreReportedTogether() {
    let problems = Self.problems(
      "{'expect':[{'match':{'topik':'a','status':'b'},'count':'c'},{'retries':{'x':1}}],'order':['z'],'timeout':1}")
    #expect(
      Set(problems.map(\.path)) == [
        "/timeout", "/expect/0/match/topik", "/expect/0/match/status", "/expect/0/count", "/expect/1/retries/x",
        "/order/0",
      ])
  }

  /// Documents that are too large are rejected without processing them.
  @Test(arguments: [
    "{'expect':[\(Array(repeating: "{}", count: 101).joined(separator: ","))]}",
    "{'expect':[{'match':{'payload':{'/a':\(String(repeating: "[", count: 40) + String(repeating: "]", count: 40))}}}]}",
    "{'expect':[{'match':{'payload':{'/a':'\(String(repeating: "x", count: 5000))'}}}]}",
    "{'expect':[{'match':{'topic':[\(Array(repeating: "'a'", count: 101).joined(separator: ","))]}}]}",
    "{'expect':[{'match':{'payload':{'\(String(repeating: "/a", count: 33))':1}}}]}",
  ])
  func oversizedInputIsRejected(json: String) {
    let problems = Self.problems(json)
    #expect(problems.count == 1, "\(problems.map(\.message))")
    #expect(problems.allSatisfy { $0.description.utf8.count < 1000 })
  }

  @Test func atMostHundredProblemsAreReported() {
    let members = (0..<200).map { "'member\($0)':1" }.joined(separator: ",")
    let problems = Self.problems("{\(members)}")
    #expect(problems.count == 101)
    #expect(problems.last?.message.contains("more than 100 problems") == true)
  }

  /// Found by fuzzing: each wrong word was compared with all possible suggestions, even if its problem was no longer
  /// reported.
  @Test(
    .timeLimit(.minutes(5)),
    arguments: [
      (
        "{'expect':[\(Self.numbered(100) { "{'name':'expectation \($0)'}" })],'order':[", "'\u{1} expectation'", "]}"
      ),
      ("{'expect':[{'match':{", "'field\u{1}':1", "}}]}"), ("{'expect':[{", "'member\u{1}':1", "}]}"),
      ("{'expect':[{'match':{'topic':'a','status':[", "'x\u{1}'", "]}}]}"),
      ("{'no_findings':[", "'finding \u{1}'", "]}"),
    ])
  func isQuickOnManyProblems(before: String, each: String, after: String) {
    let parts = Self.numbered(30_000) { each.replacing("\u{1}", with: String($0)) }
    let problems = Self.problems(before + parts + after)
    // An object may have 200 members.
    #expect(problems.count == (each.contains(":") ? 1 : 100))
  }

  private static func numbered(_ count: Int, _ text: (Int) -> String) -> String {
    (0..<count).map(text).joined(separator: ",")
  }
}
