import APNSMockRules
import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

/// The parameter `fields`, which selects members of records.
@Suite struct RecordMembersTests {
  static func shown(_ fields: String, _ record: Record) throws -> String {
    let query = try PageQuery(FilterTests.parameters(fields.replacing(";", with: "&fields=")))
    var writer = JSONWriter()
    try #require(query.fields).write(record, to: &writer, rulebook: PushFixture.rulebook)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test(arguments: [
    ("fields=seq", #"{"seq":0}"#),
    ("fields=apns.topic,seq", #"{"apns":{"topic":"com.acme.app"},"seq":0}"#),
    ("fields=served.status,outcome,served.reason", #"{"served":{"status":200,"reason":null},"outcome":"accepted"}"#),
    ("fields=seq;apns.topic", #"{"seq":0,"apns":{"topic":"com.acme.app"}}"#),
    ("fields=request.payload", #"{"request":{"payload":{"aps":{"alert":"h\u0069"}}}}"#),
    ("fields=request.size,request.size.bytes", #"{"request":{"size":{"bytes":28,"limit":4096}}}"#),
    ("fields=request.size.bytes,request.method", #"{"request":{"size":{"bytes":28},"method":"POST"}}"#),
    (
      "fields=connection",
      #"{"connection":{"id":"c17","stream":39,"client":"127.0.0.1:52114","sni":"localhost","tls":"TLSv1.3","http":"h2"}}"#
    ),
    // The parent of the member is null.
    ("fields=fault.rule", #"{"fault":null}"#), ("fields=auth.certificate.topics", #"{"auth":{"certificate":null}}"#),
    ("fields=findings,accepted", #"{"findings":[],"accepted":true}"#),
    ("fields=seq,seq", #"{"seq":0}"#),
  ])
  func fieldsSelectMembers(fields: String, expected: String) throws {
    let record = PushFixture { $0.body = Array(#"{"aps":{"alert":"h\u0069"}}"#.utf8) + [0x20] }.record
    #expect(try Self.shown(fields, record) == expected)
  }

  @Test(arguments: [
    ("fields=", "", "seq,apns.topic"), ("fields=seq,", "", "Use a list"),
    ("fields=topic", "topic", "Did you mean apns.topic?"), ("fields=seq,servd.status", "servd.status", "served.status"),
    ("fields=seq,payload", "payload", "Did you mean request.payload?"),
    ("fields=verdict.checks.0", "verdict.checks.0", "verdict.reason"),
    ("fields=Seq", "Seq", "Did you mean seq?"), ("fields=seq, outcome", " outcome", "Did you mean outcome?"),
  ])
  func unknownFieldsAreReported(fields: String, value: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try PageQuery(FilterTests.parameters(fields)) }
    #expect(error?.field == "fields")
    #expect(error?.value == value)
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
  }

  /// The list of names contains every member of a record, in the record's order.
  @Test func everyMemberIsAField() throws {
    let records = [
      PushFixture {
        $0.outcome = .rejected
        $0.wireDetails = WireDetails(
          injections: Injections(
            (1...2).map {
              Injection(
                profile: "p", rule: "r\($0)", action: .respond(Action.Response(status: 503, reason: "x")),
                continues: false)
            }), goAway: WireDetails.GoAway(code: "NO_ERROR", lastStream: 3, debugData: ""))
      }.record,
      PushFixture {
        $0.body = [0xFF]
        $0.wireDetails = WireDetails(upstream: WireDetails.UpstreamAnswer(status: 200))
      }.record,
      InboxImportTests.record(adding: [("x-bad", [0xFF])]),
      PushFixture {
        $0.authorization = []
        $0.connection = ConnectionFacts(
          id: "c1", listener: 0, client: "", sni: nil, tls: "",
          certificate: ProviderCertificate(
            subjectUID: "com.acme.app", topics: [], development: true, production: false, commonName: nil,
            fingerprint: ""))
      }.record,
    ]
    var names: Set<String> = []
    for record in records {
      let json = try JSONSerialization.jsonObject(with: Data(PushFixture.json(record).utf8))
      collect(json, under: "", into: &names)
    }
    // Only records of a view of several servers have these.
    names.formUnion(["server", "server_seq"])
    #expect(names == Set(RecordMembers.names))
    #expect(RecordMembers.names.count == names.count)
  }

  private func collect(_ json: Any, under parent: String, into names: inout Set<String>) {
    guard let object = json as? [String: Any] else { return }
    for (name, value) in object {
      names.insert(parent + name)
      if parent + name != "request.payload" { collect(value, under: parent + name + ".", into: &names) }
    }
  }
}
