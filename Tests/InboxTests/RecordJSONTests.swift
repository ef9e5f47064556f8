import APNSMockRules
import Foundation
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

@Suite struct RecordJSONTests {
  @Test func jsonIsAsDocumented() throws {
    let inbox = Inbox()
    let seq = inbox.append(
      PushFixture {
        $0.deviceToken = "AB12"
        $0.headers += [("apns-expiration", "1769864400"), ("apns-collapse-id", "score")]
        $0.now = PushFixture.noon + 723_000
      }.record)
    let record = try #require(try inbox.record(seq: seq))
    let authorization = PushFixture.authorization().dropLast(PushFixture.signature.count)
    let checks = try #require(record.verdict).checks
    #expect(checks.count > 10)
    let shown = checks.map { #"{"check":"\#($0.check.name)","ok":true}"# }.joined(separator: ",")
    #expect(
      PushFixture.json(record)
        == [
          #"{"seq":1,"run":null,"test":null,"accepted":true,"decision":"accepted","ending":"response","outcome":"accepted","violation":null,"#,
          #""delivery":null,"listener":0,"kind":"push","#,
          #""environment":"sandbox","received_at":"2026-01-31T12:12:03.000Z","#,
          #""finished_at":"2026-01-31T12:12:03.002Z","push_key":"\#(record.pushKey.text)","attempt":1,"#,
          #""connection":{"id":"c17","stream":39,"client":"127.0.0.1:52114","sni":"localhost","tls":"TLSv1.3","http":"h2"},"#,
          #""request":{"method":"POST","path":"/3/device/AB12","device_token":"ab12","headers":[[":scheme","https"],"#,
          #"["authorization","\#(authorization)…"],["apns-topic","com.acme.app"],["apns-push-type","alert"],"#,
          #"["apns-expiration","1769864400"],["apns-collapse-id","score"]],"payload":{"aps":{"alert":"hi"}},"#,
          #""payload_error":null,"size":{"bytes":22,"limit":4096},"complete":true},"#,
          #""apns":{"id":"9D3220FE-444B-633E-D1F1-5D0DCB4F537A","id_origin":"server","topic":"com.acme.app","#,
          #""push_type":"alert","priority":10,"expiration":"2026-01-31T13:00:00.000Z","collapse_id":"score"},"#,
          #""auth":{"kind":"token","team_id":"MOCKTEAM01","key_id":"MOCKKEY001","issued_at":"2026-01-31T12:00:00.000Z","#,
          #""age_ms":723000,"signature":"valid"},"#,
          #""verdict":{"status":200,"reason":null,"checks":[\#(shown)]},"fault":null,"#,
          #""served":{"status":200,"reason":null,"reset":null,"goaway":null,"closed":null,"latency_ms":1.8},"#,
          #""findings":[]}"#,
        ].joined())
  }

  /// Returns the member of a record's JSON at a path.
  static func member(_ path: String, of record: Record) throws -> Any? {
    var value: Any? = try JSONSerialization.jsonObject(with: Data(PushFixture.json(record).utf8))
    for name in path.split(separator: ".") { value = (value as? [String: Any])?[String(name)] }
    return value
  }

  @Test func lastFailedCheckIsShown() throws {
    let record = PushFixture {
      $0.headers.append(("apns-priority", "7"))
    }.record
    #expect(try Self.member("verdict.status", of: record) as? Int == 400)
    #expect(try Self.member("verdict.reason", of: record) as? String == "BadPriority")
    let checks = try #require(try Self.member("verdict.checks", of: record) as? [[String: Any]])
    #expect(checks.dropLast().allSatisfy { $0["ok"] as? Bool == true && $0["detail"] == nil })
    #expect(checks.last?["check"] as? String == "priority")
    #expect(checks.last?["ok"] as? Bool == false)
    #expect((checks.last?["detail"] as? String)?.contains("7") == true)
    #expect(try Self.member("apns.priority", of: record) is NSNull)
    #expect(try Self.member("served.reason", of: record) as? String == "BadPriority")
  }

  @Test(arguments: [
    ([], "the body is empty"), (Array("a=1".utf8), "the body is not JSON: no JSON value at byte 0"),
    ([0x22, 0xFF, 0x22], "the body is not JSON: not UTF-8 at byte 1"),
    (Array(#"{"aps":{}"#.utf8), "the body is not JSON: neither comma nor closing brace at byte 9"),
    (
      Array(repeating: UInt8(ascii: "["), count: 4000), "the body is not JSON: nested deeper than 500 at byte 500"
    ),
  ])
  func saysWhyAPayloadIsNotShown(body: [UInt8], problem: String) throws {
    let record = PushFixture { $0.body = body }.record
    #expect(try Self.member("request.payload", of: record) is NSNull)
    #expect(try Self.member("request.payload_error", of: record) as? String == problem)
    #expect(Array(record.body) == body)
  }

  @Test func truncatedBodyIsMarked() throws {
    let record = PushFixture {
      $0.body = Array(repeating: 0x20, count: 5120)
      $0.bodySize = 70_000
    }.record
    #expect(record.isBodyCut)
    #expect(
      try Self.member("request.payload_error", of: record) as? String
        == "the body has 70000 bytes, of which the first 5120 are stored")
    #expect(try Self.member("request.size.bytes", of: record) as? Int == 70_000)
  }

  @Test func payloadIsKeptByteForByte() {
    let payload = #"{ "b":1.0, "a":1E2,"a" : "\u00e9é","big":123456789012345678901234567890 }"#
    let json = PushFixture.json(PushFixture { $0.body = Array(payload.utf8) }.record)
    #expect(json.contains(#""payload":\#(payload),"payload_error":null"#))
  }

  @Test func jsonIsOneLine() {
    let json = PushFixture.json(
      PushFixture {
        $0.body = Array("{\r\n  \"aps\": {}\n}".utf8)
        $0.headers.append(("x-note", "a\u{2028}b\u{7}"))
      }.record)
    #expect(!json.utf8.contains(UInt8(ascii: "\n")))
    #expect(!json.utf8.contains(UInt8(ascii: "\r")))
    #expect(json.contains(#""payload":{    "aps": {} }"#))
    #expect(json.contains("a\u{2028}b\\u0007"))
  }

  /// A signature is neither stored nor shown, for any form of the request and at whatever check validation ended.
  @Test(
    arguments: [
      AttemptTests.Change("accepted", { _ in }), AttemptTests.Change("another method", { $0.method = "GET" }),
      AttemptTests.Change("no JWT but dots", { $0.authorization = ["a.b.\(PushFixture.signature)"] }),
      AttemptTests.Change("capital", { $0.authorization = ["Bearer x.y.\(PushFixture.signature)"] }),
      AttemptTests.Change("four parts", { $0.authorization = ["bearer x.y.\(PushFixture.signature).z"] }),
      AttemptTests.Change("basic", { $0.authorization = ["Basic \(PushFixture.signature)"] }),
      AttemptTests.Change("twice", { $0.authorization += ["bearer x.y.\(PushFixture.signature)"] }),
      AttemptTests.Change("twice with another between") {
        $0.headers.append(("authorization", "bearer x.y.\(PushFixture.signature)"))
      },
      AttemptTests.Change("beside a certificate") {
        $0.connection = ConnectionFacts(
          id: "c1", listener: 0, client: "", sni: nil, tls: "",
          certificate: ProviderCertificate(
            subjectUID: "com.acme.app", topics: [], development: true, production: true, commonName: "Acme",
            fingerprint: "00"))
      },
      AttemptTests.Change("incomplete") {
        $0.isComplete = false
        $0.outcome = .incomplete
      },
    ])
  func neverKeepsNorShowsASignature(change: AttemptTests.Change) {
    let record = PushFixture(change.apply).record
    #expect(!record.withBytes(0..<record.byteCount) { String(decoding: $0, as: UTF8.self) }.contains("SECRET"))
    #expect(!PushFixture.json(record).contains("SECRET"))
    #expect(PushFixture.json(record).contains("…\"]"))
  }

  @Test func invalidUTF8IsShown() throws {
    var headers = PushFixture().request.headers
    let (name, value): ([UInt8], [UInt8]) = (Array("x-bad".utf8), [0x61, 0xFF, 0x62])
    name.withUnsafeBytes { name in value.withUnsafeBytes { _ = headers.append(name: name, value: $0) } }
    let request = HTTPRequest(headers: headers, body: [])
    let record = Record(
      request: request, verdict: Verdict(facts: PushFixture().record.facts), hasVerdict: false,
      generatedID: [], connection: PushFixture().connection,
      receivedAt: 0,
      result: Record.Result(outcome: .incomplete, accepted: false, sentResponse: Record.SentResponse(), finishedAt: 0))
    let shown = try #require(try Self.member("request.headers", of: record) as? [[String]])
    #expect(shown.last == ["x-bad", "a\u{FFFD}b"])
  }

  @Test func injectionIsShown() throws {
    let record = PushFixture {
      $0.outcome = .rejected
      $0.sentResponse = Record.SentResponse(status: 503, reason: .serviceUnavailable, latencyNanoseconds: 1_800_000)
      $0.wireDetails = WireDetails(
        injections: [
          Injection(
            profile: "flaky-503", rule: "flaky", action: .respond(Action.Response(status: 503, reason: nil)),
            continues: false, draw: 0.125, probability: 0.2, ordinal: 2),
          Injection(rule: "long-tail", action: .delay(.fixed(.seconds(1))), continues: true),
        ], goAway: WireDetails.GoAway(code: "NO_ERROR", lastStream: 37, debugData: "bye"))
    }.record
    let json = PushFixture.json(record)
    #expect(
      json.contains(
        #""fault":{"profile":"flaky-503","rule":"flaky","action":"respond","draw":0.125,"p":0.2,"ordinal":2,"by":null,"#
          + #""also":[{"profile":null,"rule":"long-tail","action":"delay","draw":null,"p":null,"ordinal":0}]},"served":{"status":503,"reason":"ServiceUnavailable","#
          + #""reset":null,"goaway":{"code":"NO_ERROR","last_stream":37,"debug":"bye"},"closed":null,"latency_ms":1.8}"#
      ))
  }

  @Test func endWithoutResponseIsShown() throws {
    let record = PushFixture {
      $0.outcome = .unanswered
      $0.sentResponse = Record.SentResponse()
      $0.wireDetails = WireDetails(
        injections: [
          Injection(rule: "magic-0903", action: .resetConnection(afterAccepting: false), continues: false)
        ], reset: "CANCEL", closed: .reset)
    }.record
    let json = PushFixture.json(record)
    #expect(
      json.contains(
        #""fault":{"profile":null,"rule":"magic-0903","action":"reset_connection","draw":null,"p":null,"ordinal":0,"by":null}"#
      ))
    #expect(
      json.contains(
        #""served":{"status":null,"reason":null,"reset":"CANCEL","goaway":null,"closed":"reset","latency_ms":null}"#))
  }

  @Test func pendingPushIsShown() throws {
    let record = PushFixture { $0.outcome = .pending }.record
    for path in ["finished_at", "served.status", "served.reason", "served.latency_ms"] {
      #expect(try Self.member(path, of: record) is NSNull, "\(path)")
    }
    #expect(try Self.member("accepted", of: record) as? Bool == false)
  }

  @Test func incompleteRequestIsShown() throws {
    let record = PushFixture {
      $0.isComplete = false
      $0.outcome = .incomplete
      $0.generatedID = ""
    }.record
    for path in ["verdict", "apns.id", "apns.id_origin", "served.status", "fault"] {
      #expect(try Self.member(path, of: record) is NSNull, "\(path)")
    }
    #expect(try Self.member("auth.kind", of: record) as? String == "none")
    #expect(try Self.member("apns.topic", of: record) as? String == "com.acme.app")
  }

  @Test func certificateIsShown() throws {
    let record = PushFixture {
      $0.authorization = []
      $0.headers = []
      $0.connection = ConnectionFacts(
        id: "c1", listener: 0, client: "", sni: nil, tls: "",
        certificate: ProviderCertificate(
          subjectUID: "com.acme.app", topics: ["com.acme.app"], development: true, production: true,
          commonName: "Apple Push Services: com.acme.app", fingerprint: "00ff"))
    }.record
    #expect(try Self.member("auth.kind", of: record) as? String == "certificate")
    #expect(try Self.member("auth.key_id", of: record) is NSNull)
    #expect(try Self.member("auth.certificate.subject_uid", of: record) as? String == "com.acme.app")
    #expect(try Self.member("auth.certificate.fingerprint", of: record) as? String == "00ff")
    #expect(try Self.member("apns.topic", of: record) as? String == "com.acme.app")
  }

  @Test(arguments: [
    ("0", "1970-01-01T00:00:00.000Z"), ("253402300799", "9999-12-31T23:59:59.000Z"), ("253402300800", "253402300800"),
    ("9223372036854775807", "9223372036854775807"), ("00099999999999999999999", "00099999999999999999999"),
  ])
  func writesExpirationAsATime(header: String, time: String) throws {
    let record = PushFixture { $0.headers.append(("apns-expiration", header)) }.record
    #expect(try Self.member("apns.expiration", of: record) as? String == time)
    #expect(try Self.member("verdict.status", of: record) as? Int == 200)
  }

  @Test func futureTokenHasANegativeAge() throws {
    let record = PushFixture {
      $0.authorization = [PushFixture.authorization(issuedAt: PushFixture.noon / 1000 + 300)]
    }.record
    #expect(try Self.member("auth.age_ms", of: record) as? Int == -300_000)
  }

  @Test func clientIDIsShown() throws {
    let record = PushFixture {
      $0.headers.append(("apns-id", "27cfdc15-E305-27e0-e290-8fc98e115899"))
      $0.generatedID = ""
    }.record
    #expect(try Self.member("apns.id", of: record) as? String == "27cfdc15-E305-27e0-e290-8fc98e115899")
    #expect(try Self.member("apns.id_origin", of: record) as? String == "client")
  }

  @Test func listsFindings() throws {
    let record = PushFixture { $0.headers.removeLast() }.record
    #expect(try Self.member("findings", of: record) as? [String] == ["missing-push-type"])
  }
}
