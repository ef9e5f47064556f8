import APNSMockRules
import APNSMockHTTPMessage
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

@Suite struct FilterTests {
  /// A push with a value in every field.
  static let record: Record = {
    PushFixture {
      $0.deviceToken = "AB12cd34"
      $0.headers += [
        ("apns-priority", "5"), ("apns-collapse-id", "Score-7"), ("apns-id", "27cfdc15-E305-27e0-e290-8fc98e115899"),
      ]
      $0.body = Array(repeating: 0x20, count: 4097)
      $0.generatedID = ""
      $0.attempt = 2
      $0.connection = ConnectionFacts(id: "c17", listener: 1, client: "[::1]:5", sni: nil, tls: "TLSv1.2")
    }.record
  }()

  static func matches(_ query: String, _ record: Record = record) throws -> Bool {
    try Filter(parameters(query)).matches(record)
  }

  /// Returns the conditions of a query string, without percent decoding.
  static func parameters(_ query: String) -> [(name: String, value: String)] {
    query.split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }
  }

  @Test(arguments: [
    ("topic=a&scope=topic:b", false), ("topic=com.acme.app&scope=topic:com.*", true),
    ("scope=topic:com.*&topic=a", false), ("scope=topic:com.*&topic=a&topic=com.acme.app", true),
    ("q=attempt:2&scope=attempt:>1&scope=attempt:<3", true), ("scope=attempt:>1&scope=attempt:>2", false),
  ])
  func aScopeRestrictsTheOtherConditions(query: String, matches: Bool) throws {
    #expect(try Selection(Self.parameters(query)).filter.matches(Self.record) == matches)
  }

  @Test(arguments: [
    ("rule=flaky", true), ("rule=fla*", true), ("rule=Flaky", false), ("rule=long-tail", true),
    ("profile=flaky-503", true), ("profile=healthy", false), ("reason=Sideways", true),
    ("status=503", true), ("outcome=rejected", true), ("is=faulted", true), ("decision=rejected", true),
    ("ending=response", true),
    ("violation=*", false), ("decision=accepted", false), ("ending=refused", false),
  ])
  func selectsByFault(query: String, expected: Bool) throws {
    let record = PushFixture {
      $0.outcome = .rejected
      $0.sentResponse = Record.SentResponse(status: 503)
      $0.wireDetails = WireDetails(
        injections: [
          Injection(
            profile: "flaky-503", rule: "flaky", action: .respond(Action.Response(status: 503, reason: "Sideways")),
            continues: false),
          Injection(rule: "long-tail", action: .delay(.fixed(.seconds(1))), continues: true),
        ], unusualReason: "Sideways")
    }.record
    #expect(try Self.matches(query, record) == expected)
    #expect(try !Self.matches("!" + query, record) == expected)
  }

  @Test func aPushWithoutFaultHasNoRule() throws {
    #expect(try !Self.matches("rule=*"))
    #expect(try !Self.matches("profile=*"))
  }

  @Test(arguments: [
    ("", true),
    // Each field, once matching and once not.
    ("device_token=ab12cd34", true), ("device_token=AB12CD34", true), ("device_token=ab12cd35", false),
    ("device_token=ab12*", true), ("device_token=*CD34", true), ("topic=com.acme.app", true),
    ("topic=com.acme.App", false), ("topic=com.acme", false), ("topic=com.*", true), ("status=413", true),
    ("status=200", false), ("status=4*", true), ("status=5*", false), ("reason=PayloadTooLarge", true),
    ("reason=payloadtoolarge", false), ("reason=Bad*", false), ("outcome=rejected", true), ("outcome=accepted", false),
    ("outcome=*ed", true), ("accepted=false", true), ("accepted=true", false), ("push_type=alert", true),
    ("push_type=voip", false), ("priority=5", true), ("priority=10", false),
    ("apns_id=27CFDC15-e305-27e0-E290-8fc98e115899", true), ("apns_id=27cfdc15*", true), ("apns_id=0*", false),
    ("collapse_id=Score-7", true), ("collapse_id=score-7", false), ("connection=c17", true), ("connection=c1", false),
    ("listener=1", true), ("listener=0", false), ("key_id=MOCKKEY001", true), ("key_id=OTHERKEY02", false),
    ("team_id=MOCKTEAM01", true), ("team_id=MOCK", false), ("attempt=2", true), ("attempt=1", false),
    ("push_key=*", true), ("push_key=00", false), ("since=2026-01-31T12:00:00Z", true),
    ("since=2026-01-31T12:00:00.001Z", false), ("until=2026-01-31T12:00:00Z", false),
    ("until=2026-01-31T12:00:00.001Z", true), ("since=2026-01-31T13:00:00 01:00", true), ("size_gt=4096", true),
    ("size_gt=4097", false), ("size_gt=4KiB", true), ("size_lt=4098", true), ("size_lt=4097", false),
    ("is=retry", true), ("is=first", false), ("is=pending", false),
    // Repeated fields are alternatives; different fields must all match.
    ("status=200&status=413", true), ("status=200&status=410", false), ("topic=com.acme.app&status=413", true),
    ("topic=com.acme.app&status=200", false), ("topic=x&topic=*.app&status=200&status=4*", true),
    // Negation in front of the value or of the name; each negated condition must hold in any case.
    ("status=!413", false), ("status=!200", true), ("!status=413", false), ("!status=!413", true),
    ("status=!200&status=!410", true), ("status=!200&status=!413", false), ("status=4*&status=!413", false),
    ("topic=!com.acme.*", false), ("is=!retry", false), ("accepted=!true", true),
    ("!since=2026-01-31T12:00:00.001Z", true),
    ("size_gt=!4097", true),
  ])
  func filterSelects(query: String, expected: Bool) throws {
    #expect(try Self.matches(query) == expected)
  }

  @Test(
    arguments: [
      ("collapse_id=*", false), ("!collapse_id=*", true), ("push_type=*", false), ("!push_type=*", true),
      ("reason=*", false), ("!reason=*", true), ("key_id=*", false), ("status=200", false), ("priority=*", false),
      ("is=first", true), ("topic=", nil),
    ] as [(String, Bool?)])
  func absentFieldsAreUnequal(query: String, expected: Bool?) throws {
    let record = PushFixture {
      $0.headers = [("apns-topic", "com.acme.app"), ("apns-priority", "7")]
      $0.authorization = []
      $0.connection = ConnectionFacts(id: "c1", listener: 0, client: "", sni: nil, tls: "")
      $0.outcome = .incomplete
      $0.isComplete = false
    }.record
    if let expected {
      #expect(try Self.matches(query, record) == expected)
    } else {
      #expect(throws: FilterError.self) { try Self.matches(query, record) }
    }
  }

  @Test func pendingPushesAreFound() throws {
    let held = PushFixture { $0.outcome = .pending }.record
    #expect(try Self.matches("is=pending&outcome=pending", held))
    #expect(try !Self.matches("status=*", held))
    #expect(try !Self.matches("is=pending"))
  }

  @Test func topicOfACertificateIsMatched() throws {
    let certificate = ProviderCertificate(
      subjectUID: "com.acme.app", topics: [], development: true, production: false, commonName: nil, fingerprint: "")
    let record = PushFixture {
      $0.headers = []
      $0.authorization = []
      $0.connection = ConnectionFacts(
        id: "c1", listener: 0, client: "", sni: nil, tls: "", certificate: certificate)
    }.record
    #expect(try Self.matches("topic=com.acme.app&status=200", record))
  }

  @Test(
    arguments: [
      ("topik=x", "topik", nil, "unknown field \"topik\"", "did you mean topic?"),
      ("!statsu=200", "statsu", nil, "unknown field \"statsu\"", "did you mean status?"),
      ("colour=red", "colour", nil, "unknown field \"colour\"", "The fields are device_token, topic,"),
      ("payload.aps=1", "payload.aps", nil, "\"aps\" is not a JSON pointer", "payload./aps/alert/title"),
      ("payload./a~2=1", "payload./a~2", nil, "\"/a~2\" is not a JSON pointer", "~0 a tilde"),
      ("header.=1", "header.", nil, "unknown field \"header.\"", "header.name"),
      ("type=", "type", "", "type cannot be \"\"", "!type=*"),
      ("payload./a=>x", "payload./a", ">x", "payload./a cannot be \">x\"", "a bound such as >3"),
      ("payload./a=9..3", "payload./a", "9..3", "payload./a cannot be", "a range such as 3..9"),
      ("status=>", "status", ">", "status cannot be", "a bound such as >=400"),
      ("status=>-1", "status", ">-1", "status cannot be", "a whole number"),
      ("status=499..400", "status", "499..400", "status cannot be", "400..499"),
      ("status=4..", "status", "4..", "status cannot be", "400..499"),
      ("status=9223372036854775807", "status", "9223372036854775807", "status cannot be", "a whole number"),
      ("size=>1K..2K", "size", ">1K..2K", "size cannot be", "a range such as 1K..4K"),
      ("size_gt=>3K", "size_gt", ">3K", "size_gt cannot be", "3.5KiB"),
      ("since=5m", "since", "5m", "since cannot be", "-5m"),
      ("since=-5m", "since", "-5m", "since cannot be", "2026-01-31"),
      ("finding=would-not-show", "finding", "would-not-show", "finding cannot be", "not available here"),
      ("is=duplicate", "is", "duplicate", "is cannot be", "not in a wait"),
      ("is=du*", "is", "du*", "is cannot be", "not in a wait"),
      ("text=", "text", "", "text cannot be", "Specify a value"),
      ("status=>400&status=<500", "status", "<500", "status cannot be", "written 401..499"),
      ("payload./a=<9&payload./a=>=3", "payload./a", ">=3", "payload./a cannot be", "such as 3..9"),
      ("status=abc", "status", "abc", "status cannot be \"abc\"", "a whole number such as 200"),
      ("status=-1", "status", "-1", "status cannot be \"-1\"", "a whole number"),
      ("status=", "status", "", "status cannot be \"\"", "!status=*"),
      ("status=!", "status", "", "status cannot be \"\"", "Specify a value"),
      ("outcome=acepted", "outcome", "acepted", "outcome cannot be \"acepted\"", "Did you mean accepted?"),
      (
        "outcome=x", "outcome", "x", "outcome cannot be",
        "accepted, rejected, response_lost, unanswered, unprocessed, incomplete, malformed, pending, unknown"
      ),
      ("outcome=faulted", "outcome", "faulted", "outcome cannot be", "Use is:faulted"),
      ("outcome=aborted", "outcome", "aborted", "outcome cannot be", "response_lost, unanswered or incomplete"),
      ("is=duplicat", "is", "duplicat", "is cannot be", "retry, first, pending"),
      ("accepted=yes", "accepted", "yes", "accepted cannot be \"yes\"", "true or false"),
      ("since=yesterday", "since", "yesterday", "since cannot be \"yesterday\"", "RFC 3339"),
      ("size_gt=big", "size_gt", "big", "size_gt cannot be \"big\"", "3.5KiB"),
      ("size_lt=1*", "size_lt", "1*", "size_lt cannot be", "a number of bytes"),
    ] as [(String, String, String?, String, String)])
  func invalidParametersAreReported(query: String, field: String, value: String?, message: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try Filter(Self.parameters(query)) }
    #expect(error?.field == field)
    #expect(error?.value == value)
    #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
  }
}
