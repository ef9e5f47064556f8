import APNSMockRules
import APNSMockHTTPMessage
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults
@testable import APNSMockInbox

@Suite struct InboxImportTests {
  /// One record of every kind.
  static let records: [(name: String, record: Record)] = [
    ("accepted", PushFixture().record),
    ("rejected", PushFixture { $0.headers.append(("apns-priority", "7")) }.record),
    ("rejected for its token", PushFixture { $0.authorization = [] }.record),
    (
      "of a token without sense",
      PushFixture { $0.authorization = ["bearer not a token", "Bearer eyJh.b.c"] }.record
    ),
    ("of an empty signature", PushFixture { $0.authorization = ["bearer a.b."] }.record),
    (
      "of a token in other fields",
      PushFixture {
        let token = String(PushFixture.authorization().dropFirst("bearer ".count))
        $0.path = "/3/devices/\(token)?jwt=\(token)"
        $0.headers += [("cookie", "a=b; c=\(token); d=…"), ("x-other", "… \(token)")]
      }.record
    ),
    ("pending", PushFixture { $0.outcome = .pending }.record),
    (
      "incomplete",
      PushFixture {
        $0.isComplete = false
        $0.outcome = .incomplete
        $0.generatedID = ""
      }.record
    ),
    (
      "faulted by two rules",
      PushFixture {
        $0.outcome = .rejected
        $0.sentResponse = Record.SentResponse(
          status: 503, reason: .serviceUnavailable, latencyNanoseconds: 1_234_567_891)
        $0.wireDetails = WireDetails(
          injections: [
            Injection(
              profile: "flaky-503", rule: "flaky", action: .respond(Action.Response(status: 503, reason: nil)),
              continues: false, draw: 0.1 + 0.2, probability: 0.4, ordinal: 2),
            Injection(
              profile: "chaos", rule: "long-tail", action: .delay(.fixed(.seconds(1))), continues: true, draw: 1e-9,
              probability: 1),
          ], goAway: WireDetails.GoAway(code: "NO_ERROR", lastStream: Int32.max, debugData: #"{"reason":"x\u0000"}"#))
      }.record
    ),
    (
      "reset",
      PushFixture {
        $0.outcome = .responseLost
        $0.sentResponse = Record.SentResponse()
        $0.wireDetails = WireDetails(
          injections: [
            Injection(rule: "magic-0903", action: .resetConnection(afterAccepting: true), continues: false)
          ], reset: "CANCEL", closed: .reset)
      }.record
    ),
    (
      "closed after a GOAWAY with an answer APNs does not know",
      PushFixture {
        $0.outcome = .rejected
        $0.sentResponse = Record.SentResponse(status: 418, latencyNanoseconds: 999)
        $0.wireDetails = WireDetails(
          unusualReason: "Teapot\u{202E}", goAway: WireDetails.GoAway(code: "ENHANCE", lastStream: 0, debugData: ""),
          closed: .fin)
      }.record
    ),
    (
      "forwarded, with another answer than that of the rules",
      PushFixture {
        $0.outcome = .rejected
        $0.wireDetails = WireDetails(
          upstream: WireDetails.UpstreamAnswer(
            status: 410, reason: "Unregistered", apnsID: "A", latency: 1_500_000, connection: 2))
      }.record
    ),
    (
      "forwarded without an answer",
      PushFixture {
        $0.wireDetails = WireDetails(upstream: WireDetails.UpstreamAnswer(problem: "no \u{1F4E1} answer"))
      }.record
    ),
    ("without body", PushFixture { $0.body = [] }.record),
    ("null", PushFixture { $0.body = Array("null".utf8) }.record),
    ("no JSON", PushFixture { $0.body = Array("a=1".utf8) }.record),
    ("no UTF-8", PushFixture { $0.body = [0x22, 0xFF, 0x00, 0x22] }.record),
    ("JSON with spaces around it", PushFixture { $0.body = Array(" {\"aps\":{}}\t".utf8) }.record),
    ("JSON on several lines", PushFixture { $0.body = Array("{\r\n  \"aps\": {}\n}\n".utf8) }.record),
    (
      "JSON with everything",
      PushFixture {
        $0.body = Array(#"{ "b":1.0, "a":1E2,"a" : "\u00e9é\ud83d\ude00😀","big":123456789012345678901234567890 }"#.utf8)
      }.record
    ),
    (
      "nested as deep as can be",
      PushFixture {
        $0.body = Array((String(repeating: "[", count: 499) + "1" + String(repeating: "]", count: 499)).utf8)
      }.record
    ),
    (
      "nested deeper", PushFixture { $0.body = Array(repeating: UInt8(ascii: "["), count: 4000) }.record
    ),
    (
      "body beyond what is kept",
      PushFixture {
        $0.body = Array(repeating: UInt8(ascii: "1"), count: 5120)
        $0.bodySize = 70_000
      }.record
    ),
    (
      "headers that come twice",
      PushFixture { $0.headers += [("apns-topic", "com.acme.other"), ("x-a", "1"), ("x-a", "2"), ("cookie", "")] }
        .record
    ),
    (
      "headers with odd characters",
      PushFixture {
        $0.headers += [
          ("x-note", "a\u{2028}b\u{7}\"\\😀"), ("x-nul", "a\0b"), ("x-dots", "a…"), ("apns-collapse-id", "c\0d…"),
        ]
      }.record
    ),
    ("headers that are not text", record(adding: [("x-bad", [0x61, 0xFF, 0x62])])),
    ("a collapse id that is not text", record(adding: [("apns-collapse-id", [0x80])])),
    ("an authorization that is not text", record(adding: [("authorization", [0x80, 0x20, 0x81, 0x2e, 0x82])])),
    (
      "of a client's id",
      PushFixture {
        $0.headers.append(("apns-id", "2235cb23-9220-5658-f5eb-7b5bb23fdec4"))
        $0.generatedID = ""
      }.record
    ),
    ("of a date", PushFixture { $0.headers.append(("apns-expiration", "1769864400")) }.record),
    ("of a date that cannot be written", PushFixture { $0.headers.append(("apns-expiration", "\(Int64.max)")) }.record),
    ("of a third attempt", PushFixture { $0.attempt = 3 }.record),
    (
      "of a provider certificate",
      PushFixture { $0.connection = connection(topics: ["com.acme.app", "com.acme.b"]) }.record
    ),
    (
      "of a provider certificate with one topic",
      PushFixture {
        $0.headers = []
        $0.authorization = []
        $0.connection = connection(topics: ["com.acme.app.voip"])
      }.record
    ),
    (
      "of a provider certificate, not whole",
      PushFixture {
        $0.headers = []
        $0.connection = connection(topics: ["com.acme.app"])
        $0.isComplete = false
        $0.outcome = .incomplete
      }.record
    ),
    (
      "stored, of production",
      PushFixture {
        $0.delivery = .storedForPower
        $0.connection = ConnectionFacts(
          id: "c17", listener: 0, environment: .production, client: "127.0.0.1:52114", sni: "localhost", tls: "TLSv1.3")
      }.record
    ),
    ("broadcast", PushFixture.broadcast()), ("request of channel management", PushFixture.channel()),
    (
      "of a time before 1970 and without a host name",
      PushFixture {
        $0.now = -1
        $0.connection = ConnectionFacts(id: "c2", listener: 3, client: "[::1]:1", sni: nil, tls: "TLSv1.2")
      }.record
    ),
  ]

  static func record(adding fields: [(name: String, value: [UInt8])]) -> Record {
    var request = PushFixture().request
    for field in fields {
      Array(field.name.utf8).withUnsafeBytes { name in
        field.value.withUnsafeBytes { _ = request.headers.append(name: name, value: $0) }
      }
    }
    var authentication = ConnectionAuthentication(certificate: nil)
    let verdict = PushFixture.rulebook.validate(
      request, authentication: &authentication, keys: TrustedKeySet(version: 1, keys: []),
      now: PushFixture.noon)
    return Record(
      request: request, verdict: verdict, generatedID: ArraySlice("ABC".utf8),
      connection: PushFixture().connection, receivedAt: PushFixture.noon,
      result: Record.Result(
        outcome: .rejected, accepted: false,
        sentResponse: Record.SentResponse(status: verdict.status, reason: verdict.reason),
        finishedAt: PushFixture.noon))
  }

  private static func connection(topics: [String]) -> ConnectionFacts {
    ConnectionFacts(
      id: "c3", listener: 0, client: "127.0.0.1:3", sni: "localhost", tls: "TLSv1.3",
      certificate: ProviderCertificate(
        subjectUID: "com.acme.app", topics: topics, development: true, production: false, commonName: "Apple Push",
        fingerprint: "ab12"))
  }

  static func export(_ inbox: Inbox, as format: InboxExport.Format = .lines, rulebook: Rulebook = PushFixture.rulebook)
    -> [UInt8]
  {
    var export = InboxExport(inbox.snapshot(), .allKinds, as: format, rulebook: rulebook)
    var text: [UInt8] = []
    while let piece = try? export.next() { text += piece }
    return text
  }

  /// Imports an inbox.
  ///
  /// - Parameter size: The size of the pieces in which the text is read.
  static func read(_ text: [UInt8], inPiecesOf size: Int = .max, maxBytes: Int = .max) throws -> Inbox {
    var reading = InboxImport(maxBytes: maxBytes)
    var rest = text[...]
    while !rest.isEmpty {
      try reading.read(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return try reading.finish()
  }

  @Test(arguments: records.indices)
  func recordRoundTrips(index: Int) throws {
    let (name, record) = Self.records[index]
    let inbox = Inbox()
    inbox.append(record)
    let text = Self.export(inbox)
    let back = try Self.read(text)
    // Other rules would result in other findings; the imported findings are kept.
    let again = Self.export(back, rulebook: Rulebook(mode: .strict))
    #expect(String(decoding: again, as: UTF8.self) == String(decoding: text, as: UTF8.self), "\(name)")
    let copy = try #require(try back.record(seq: 1))
    #expect(copy.body == record.body, "\(name)")
    #expect(copy.isBodyCut == record.isBodyCut, "\(name)")
    #expect(copy.pushKey == record.pushKey, "\(name)")
    #expect(
      (try? copy.curlCommand(to: "a", authority: "b", tokenCommand: "c"))
        == (try? record.curlCommand(to: "a", authority: "b", tokenCommand: "c")), "\(name)")
    #expect((try? copy.simulatorFile()) == (try? record.simulatorFile()), "\(name)")
  }

  /// Earlier versions exported 32 digits, half a SHA-256. The key of an imported push is always computed from the
  /// push.
  @Test func longerPushKeyIsRecomputed() throws {
    let inbox = Inbox()
    inbox.append(PushFixture().record)
    let text = String(decoding: Self.export(inbox), as: UTF8.self)
    let key = PushFixture().pushKey.text
    let older = text.replacing(key, with: "a497d65908808ea49025cf476ab51651")
    #expect(older != text)
    let back = try Self.read(Array(older.utf8))
    #expect(try back.record(seq: 1)?.pushKey.text == key)
    #expect(try back.snapshot().page(try PageQuery([("push_key", key)])).items.map(\.seq) == [1])
  }

  @Test(arguments: [InboxExport.Format.lines, .array], [1, 7, 1000, Int.max])
  func importInPieces(format: InboxExport.Format, size: Int) throws {
    let inbox = Inbox()
    for (_, record) in Self.records { inbox.append(record) }
    try inbox.remove(try Selection([(name: "apns_id", value: "ABC")]))
    let text = Self.export(inbox, as: format)
    let back = try Self.read(text, inPiecesOf: size)
    #expect(Self.export(back, as: format) == text)
    #expect(back.snapshot().count == inbox.snapshot().count)
    #expect(back.snapshot().lastSeq == Self.records.count)
    #expect(back.snapshot().evicted == 0)
  }

  @Test(arguments: [InboxExport.Format.lines, .array])
  func emptyExportIsAnEmptyInbox(format: InboxExport.Format) throws {
    let back = try Self.read(Self.export(Inbox(), as: format))
    #expect(back.snapshot().count == 0)
    #expect(back.snapshot().lastSeq == 0)
  }

  @Test func importedRecordsAreFilteredAndPaged() throws {
    let inbox = Inbox()
    for (_, record) in Self.records { inbox.append(record) }
    let back = try Self.read(Self.export(inbox))
    for query in [
      "status:200", "outcome:rejected", "is:faulted", "ending:response", "rule:flaky", "rule:long-tail profile:chaos",
      "key_id:MOCKKEY001", "is:retry",
      "text:😀", "payload./a:é*", "finding:would-not-show", "header.x-a:2", "!topic:com.acme.app", "reason:Teapot*",
      "attempt:>2", "larger:10K", "connection:c3", "since:2026-01-31T11:00:00Z",
    ] {
      func found(in inbox: Inbox) throws -> [Int] {
        let context = FilterContext(rulebook: PushFixture.rulebook)
        let page = try inbox.snapshot().page(try PageQuery([(name: "q", value: query)], in: context))
        return page.items.map(\.seq)
      }
      #expect(try found(in: back) == found(in: inbox), "\(query)")
      #expect(try !found(in: back).isEmpty, "\(query)")
    }
  }

  @Test func importedRecordsShareStorage() throws {
    let inbox = Inbox()
    for _ in 0..<3 { inbox.append(PushFixture().record) }
    let back = try Self.read(Self.export(inbox))
    let (one, three) = (try #require(try back.record(seq: 1)), try #require(try back.record(seq: 3)))
    #expect(one.connection === three.connection)
    #expect(one.verdict?.token === three.verdict?.token)
  }

  /// Programs such as jq reformat payloads.
  @Test func reformattedPayloadIsTheBody() throws {
    let inbox = Inbox()
    inbox.append(PushFixture { $0.body = Array(#"{ "aps":{"alert":"hi"} }"#.utf8) }.record)
    let text = String(decoding: Self.export(inbox), as: UTF8.self).replacing(
      #"{ "aps":{"alert":"hi"} }"#, with: "{\"aps\":\n {\"alert\":\"hi\"}}")
    let back = try #require(try Self.read(Array(text.utf8)).record(seq: 1))
    #expect(String(decoding: back.body, as: UTF8.self) == "{\"aps\":\n {\"alert\":\"hi\"}}")
    #expect(!back.isBodyCut)
    #expect(back.payloadProblem == nil)
  }

  private static let line: String = {
    let inbox = Inbox()
    inbox.append(PushFixture().record)
    return String(decoding: export(inbox).dropLast(), as: UTF8.self)
  }()

  @Test(arguments: [
    ("hello", "1: expected a record of a push"), ("{}", "1: no record of a push: seq is missing"),
    ("\n\n{\"seq\":1}", "3: no record of a push: outcome is missing"), ("[", "1: the list of records has no end"),
    ("[{}]", "1: no record of a push: seq is missing"), ("[]\n[]", "2: expected a record"),
    ("{\"seq\":1", "1: the record that"),
    ("{\"seq\":\"1\n\"}", "1: the line ends within a string"), ("{\"seq\":0}", "1: seq cannot be 0"),
    ("{\"seq\":x}", "1: no JSON value at column 8"), ("\u{FEFF}{}", "1: expected a record of a push"),
  ])
  func errorNamesTheLine(text: String, problem: String) {
    let error = #expect(throws: InboxImport.Problem.self) { try Self.read(Array(text.utf8)) }
    #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [
    (#""seq":1"#, #""seq":-1"#, "seq cannot be -1"), (#""seq":1"#, #""seq":9223372036854775807"#, "seq cannot be"),
    (#""seq":1"#, #""seq":92233720368547758070"#, "not a whole number"),
    (#""accepted":true"#, #""accepted":1"#, "neither true"),
    (#""decision":"accepted""#, #""decision":"lost""#, "decision cannot be \"lost\""),
    (#""ending":"response""#, #""ending":"refused""#, "decision accepted contradicts ending refused"),
    (#""accepted":true"#, #""accepted":false"#, "decision accepted contradicts accepted false"),
    (#""format":2"#, #""format":3"#, "format 3 is unknown"),
    (#""decision":"accepted","#, "", "decision is missing"),
    (#""received_at":"2026"#, #""received_at":"20x6"#, "received_at cannot be"),
    (#""stream":39"#, #""stream":3000000000"#, "not a whole number"),
    (#"{"check":"method""#, #"{"check":"luck""#, "luck"),
    (#""signature":"valid""#, #""signature":"good""#, "signature cannot be"),
    (#""bytes":22"#, #""bytes":-"#, "a number without digits"),
    (#""payload":{"#, #""body_base64":"??","payload":{"#, "header fields or body"),
    (#""headers":[["#, #""headers":[["a"],["#, "a header field must be a name and a value"),
    (#""latency_ms":1.8"#, #""latency_ms":"soon""#, "no number"),
    (#""latency_ms":1.8"#, #""latency_ms":1e300"#, "latency_ms cannot be"),
    (#""latency_ms":1.8"#, #""latency":"soon""#, "latency cannot be"),
    (#""fault":null"#, #""fault":{"rule":"x"}"#, "a fault without an action"),
  ])
  func errorNamesTheProblem(good: String, bad: String, problem: String) {
    #expect(Self.line.contains(good))
    let text = Self.line.replacing(good, with: bad, maxReplacements: 1)
    let error = #expect(throws: InboxImport.Problem.self) { try Self.read(Array(text.utf8)) }
    #expect(error?.line == 1)
    #expect(error?.reason.contains(problem) == true, "\(error?.description ?? "")")
  }

  /// Text that is not UTF-8, and half of a surrogate pair, are errors wherever they are: a payload is stored, and a merge
  /// copies members that it does not know, as they are.
  @Test(arguments: invalidTexts)
  func textThatIsNoJSONIsAnError(text: [UInt8], problem: String) throws {
    let error = #expect(throws: InboxImport.Problem.self) { try Self.read(text, inPiecesOf: 7) }
    #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
    var merge = ExportMerge([Self.input(text)])
    let other = #expect(throws: ExportMerge.Problem.self) { while try merge.next() != nil {} }
    #expect(other?.problem == error)
  }

  private static let invalidTexts: [(text: [UInt8], problem: String)] = [
    (bytes("{\"seq\":1,\n \"é\":\"x", [0xFF], "\"}"), "2: not UTF-8 at column 8"),
    (bytes("\n {\"request\":{\"payload\":{\"a\":\"", [0xED, 0xA0, 0x80], "\"}}}"), "2: not UTF-8 at column 30"),
    (
      bytes(#"{"seq":1,"request":{"payload":{"a":"\ud800"}}}"#), "1: half of a surrogate pair before here, at column 43"
    ),
    (bytes(#"{"seq":1,"unknown":["\udc00"]}"#), "1: half of a surrogate pair before here, at column 28"),
    (bytes(#"[{"seq":1,"served":{"reason":"\ud800x"}}]"#), "1: half of a surrogate pair before here, at column 37"),
    (bytes(#"{"seq":1,"request":{"headers":[["a"]"#, [0x00], "]}}"), "1: neither comma"),
  ]

  private static func bytes(_ start: String, _ raw: [UInt8] = [], _ end: String = "") -> [UInt8] {
    Array(start.utf8) + raw + Array(end.utf8)
  }

  private static func input(_ text: [UInt8]) -> ExportMerge.Input {
    var rest: ArraySlice<UInt8>? = text[...]
    return {
      defer { rest = nil }
      return rest
    }
  }

  /// A payload nested as deeply as one may be is imported, although a record is nested more deeply.
  @Test func theDeepestPayloadIsImported() throws {
    let inbox = Inbox()
    let depth = JSONText.maxDepth - 1
    let brackets = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    let seq = inbox.append(PushFixture { $0.body = Array(brackets.utf8) }.record)
    #expect(try #require(try inbox.record(seq: seq)).payloadProblem == nil)
    let text = Self.export(inbox)
    #expect(Self.export(try Self.read(text)) == text)
  }

  @Test(arguments: Action.Name.allCases)
  func everyActionIsImported(name: Action.Name) {
    #expect(name.bare.name == name)
  }

  @Test func numbersMustAscend() throws {
    let error = #expect(throws: InboxImport.Problem.self) {
      try Self.read(Array((Self.line + "\n" + Self.line + "\n").utf8))
    }
    #expect(error?.description == "2: seq 1 follows seq 1; the records of an export must be in order")
  }

  /// Gaps of any size between numbers take no memory.
  @Test func largeGapsAreAccepted() throws {
    let far = Self.line.replacing(#""seq":1"#, with: #""seq":9007199254740992"#, maxReplacements: 1)
    let text = Array((Self.line + "\n" + far + "\n").utf8)
    #expect(Self.export(try Self.read(text)) == text)
  }

  @Test func memoryAndLengthAreBounded() throws {
    let many = (1...600).map { Self.line.replacing(#""seq":1"#, with: "\"seq\":\($0)", maxReplacements: 1) }
    let tooMany = #expect(throws: InboxImport.Problem.self) {
      try Self.read(Array(many.joined(separator: "\n").utf8), maxBytes: 1000)
    }
    #expect(tooMany?.reason.contains("require more than 1000 bytes") == true)
    let long = Array((#"{"seq":1,"x":""# + String(repeating: "x", count: 2 << 20)).utf8)
    let tooLong = #expect(throws: InboxImport.Problem.self) { try Self.read(long, inPiecesOf: 65536) }
    #expect(tooLong?.reason.contains("longer than 1 MiB") == true)
  }

  /// Damaged text never crashes the import.
  @Test func damagedExportsAreErrorsOrRecords() {
    let line = Array(Self.line.utf8)
    var random = SystemRandomNumberGenerator()
    for _ in 0..<3000 {
      var damaged = line
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let index = Int.random(in: damaged.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: damaged[index] = UInt8.random(in: 0...255, using: &random)
        case 1: damaged.remove(at: index)
        default: damaged.removeSubrange(index..<min(index + 20, damaged.count))
        }
      }
      guard let inbox = try? Self.read(damaged) else { continue }
      let exported = Self.export(inbox)
      #expect(exported.dropLast().withUnsafeBytes { JSONText.problem(in: $0, maxDepth: 508) } == nil)
    }
  }
}
