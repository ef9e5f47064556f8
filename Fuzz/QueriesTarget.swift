import APNSMockRules
import APNSMockHTTPMessage
import APNSMockNotation

@testable import APNSMockInbox

/// Fuzzes inbox queries: the first line is a query, the others are URL parameters, one per line. The same text also
/// serves as a pattern, a duration, a time and a size.
struct QueriesTarget: FuzzTarget {
  private let inbox = Inbox()
  private let rulebook = Rulebook()
  private static let now: Int64 = 1_769_860_800_000

  init() {
    let pushes: [(fields: [(String, String)], body: String)] = [
      ([("apns-topic", "com.acme.app"), ("apns-push-type", "alert")], #"{"aps":{"alert":"order shipped","badge":3}}"#),
      (
        [("apns-topic", "com.acme.app.voip"), ("apns-priority", "5"), ("x-n", "1.50")],
        #"{"a":[1,"2",{"b":null}],"\u0061ps":{},"big":12345678901234567890.5e3}"#
      ),
      ([("apns-collapse-id", "é*\"x"), ("apns-expiration", "0")], "no JSON \u{0}"), ([], ""),
    ]
    for (index, push) in pushes.enumerated() {
      let headers = HeaderList(
        [(":method", "POST"), (":path", "/3/device/" + String(repeating: "ab12", count: 16))] + push.fields)
      let request = HTTPRequest(stream: Int32(2 * index + 1), headers: headers, body: Array(push.body.utf8))
      var authentication = ConnectionAuthentication()
      let verdict = rulebook.validate(
        request, authentication: &authentication, keys: TrustedKeySet(version: 1, keys: []),
        now: Self.now)
      let result = Record.Result(
        .rejected, .response,
        sentResponse: Record.SentResponse(status: verdict.status, reason: verdict.reason),
        finishedAt: Self.now)
      inbox.append(
        Record(
          request: request, verdict: verdict, generatedID: [],
          connection: ConnectionFacts(id: "c\(index)", listener: 0, client: "127.0.0.1:1", sni: nil, tls: "TLSv1.3"),
          attempt: Int32(index), receivedAt: Self.now, arrivedAt: 0, result: result))
    }
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let query = input.text()
    let context = FilterContext(now: Self.now, rulebook: rulebook, snapshot: inbox.snapshot(), inbox: inbox)
    if let filter = try? Filter(query: query, in: context) { inspect(filter, words: query) }
    var parameters: [(name: String, value: String)] = []
    while !input.isAtEnd {
      var line = Input(input.line())
      parameters.append((line.text(before: UInt8(ascii: "=")), String(decoding: line.remaining, as: UTF8.self)))
    }
    if let filter = try? Filter(parameters, in: context) { inspect(filter, words: "\(parameters)") }
    if let page = try? PageQuery(parameters, in: context), let fields = page.fields {
      for record in records {
        var writer = JSONWriter()
        fields.write(record, to: &writer, rulebook: rulebook, in: inbox)
        let problem = writer.bytes.withUnsafeBytes { JSONText.problem(in: $0) }
        expect(problem == nil, "\(parameters): what is shown is not JSON")
      }
    }
    _ = try? WaitQuery(parameters, in: context)
    lookAtValues(query, parameters.first?.value ?? "")
  }

  private var records: [Record] {
    (1...4).compactMap { try? inbox.record(seq: $0) }
  }

  private func inspect(_ filter: Filter, words: String) {
    for record in records {
      let isMeant = filter.matches(record)
      let met = filter.metCount(record)
      expect(
        isMeant == (met == filter.fieldCount),
        "\(words): it matches is \(isMeant), \(met) of \(filter.fieldCount) fields are met")
    }
  }

  /// Checks that values do not change when they are written and read.
  private func lookAtValues(_ text: String, _ other: String) {
    let pattern = TextPattern(text.prefix(200), foldsCase: false)
    let subject = Array(other.utf8.prefix(200))
    let matches = subject.withUnsafeBytes { pattern.matches($0) }
    let should = Self.glob(Array(text.prefix(200).utf8), subject)
    expect(matches == should, "\(text) matches \(other) is \(matches)")
    if let duration = DurationFormat.duration(text) {
      let written = DurationFormat.text(duration)
      expect(DurationFormat.duration(written) != nil, "\(text) is written \(written), which cannot be read")
    }
    if let time = TimestampFormat.milliseconds(text), let written = TimestampFormat.text(time) {
      expect(TimestampFormat.milliseconds(written) == time, "\(text) is written \(written), which is another time")
    }
    if let size = SizeFormat.bytes(text) { expect(size >= 0, "\(text) is \(size) bytes") }
    _ = (QueryNumber(text), try? Value.size(text), try? Value.flag(text))
  }

  /// A simple quadratic implementation of pattern matching, for comparison.
  private static func glob(_ pattern: [UInt8], _ text: [UInt8]) -> Bool {
    var row = [true] + text.map { _ in false }
    for character in pattern {
      var next = [character == UInt8(ascii: "*") && row[0]]
      for index in text.indices {
        if character == UInt8(ascii: "*") {
          next.append(next[index] || row[index + 1])
        } else {
          next.append(row[index] && text[index] == character)
        }
      }
      row = next
    }
    return row[text.count]
  }
}
