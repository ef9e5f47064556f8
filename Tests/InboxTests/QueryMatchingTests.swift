import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Queries by field and by operator, in both query forms.
@Suite struct QueryMatchingTests {
  static let payload = #"""
    {"aps": {"alert": {"title": "Order shipped", "body": "F\u00fcr \"dich\" * nur"}, "badge": 4, "sound": ""},
     "big": 9007199254740993, "half": 2.50, "yes": true, "nothing": null, "three": "3", "minus": -1,
     "list": [1, "zwei", {"x": 0}], "a/b": 1, "m~n": 2, "": 5, "a b:c": "x", "twice": 1, "twice": 2, "Grüße": "Köln"}
    """#

  /// A push with a value in every field: the third attempt of an alert.
  static let fixture = PushFixture {
    $0.headers += [
      ("apns-priority", "5"), ("apns-collapse-id", "Score-7"), ("apns-expiration", "1769864400"),
      ("x-note", "a  B"), ("x-empty", ""),
    ]
    $0.body = Array(payload.utf8)
    $0.attempt = 3
  }

  /// The record of `fixture`.
  static let record = fixture.record

  static let context = FilterContext(now: PushFixture.noon + 60_000, rulebook: PushFixture.rulebook)

  static func matches(_ query: String, _ record: Record = record) throws -> Bool {
    try Filter(query: query, in: context).matches(record)
  }

  /// Queries about fields and headers, and whether they match `record`.
  static let fields: [(query: String, expected: Bool)] = [
    ("", true),
    // Fields by both of their names.
    ("device_token:AB12*", true), ("token:AB12*", true), ("token:cd*", false), ("topic:com.acme.app", true),
    ("topic:*.App", false), ("push_type:alert", true), ("type:alert", true), ("type:voip", false),
    ("apns_id:9d3220fe-*", true), ("id:9D3220FE-444B-633E-D1F1-5D0DCB4F537A", true), ("id:9", false),
    ("collapse_id:Score-7", true), ("collapse:Score-*", true), ("collapse:score-7", false), ("push_key:*", true),
    ("push_key:00*11*22", false), ("rule:*", false), ("reason:*", false), ("profile:*", false),
    ("outcome:accepted", true), ("outcome:*ed", true), ("outcome:rejected", false), ("accepted:true", true),
    ("accepted:false", false), ("connection:c17", true), ("listener:0", true), ("listener:>0", false),
    ("key_id:MOCKKEY001", true), ("team_id:MOCK*", true), ("key_id:x", false),
    // Numbers: equal, pattern, bounds, ranges.
    ("status:200", true), ("status:2*", true), ("status:*00", true), ("status:>199", true), ("status:>200", false),
    ("status:>=200", true), ("status:>=201", false), ("status:<201", true), ("status:<200", false),
    ("status:<=200", true), ("status:<=199", false), ("status:200..299", true), ("status:100..199", false),
    ("status:200..200", true), ("status>=200", true), ("status<200", false), ("status=200", true),
    ("priority:5", true), ("priority:>5", false), ("priority:<10", true), ("attempt:3", true), ("attempt:>2", true),
    ("attempt:1..2", false), ("!attempt:1..2", true),
    // Sizes, in bytes and larger units.
    ("size:>300", true), ("size:<300", false), ("size:>0.25K", true), ("size:>1KiB", false), ("size:100..1K", true),
    ("larger:300", true), ("larger:1K", false), ("size_gt:300", true), ("smaller:1K", true), ("size_lt:300", false),
    // Times, absolute or relative to now, which is a minute after the push.
    ("since:2026-01-31T12:00:00Z", true), ("since:2026-01-31T12:00:00.001Z", false),
    ("since:2026-01-31T13:00:00+01:00", true), ("until:2026-01-31T12:00:00.001Z", true), ("since:-5m", true),
    ("since:-1m", true), ("since:-59s", false), ("until:-59s", true), ("until:-1m", false), ("since:-1h30m", true),
    ("since:-3650d until:-1s", true),
    // States.
    ("is:retry", true), ("is:first", false), ("is:pending", false), ("is:*", true), ("!is:retry", false),
    ("is:pending is:retry", true),
    // Findings.
    ("finding:*", false), ("!finding:would-not-show", true),
    // Headers: any value of a repeated header counts.
    ("header.apns-topic:com.acme.app", true), ("header.APNS-Topic:com.acme.app", true),
    ("header.apns-topic:x", false),
    (#"header.x-note:"a  B""#, true), (#"header.x-note:"a  b""#, false),
    ("header.x-other:*", false), ("!header.x-other:*", true), ("header.x-empty:*", true),
    (#"header.x-empty:"""#, true),
    ("header.apns-expiration:>1769864399", true), ("header.apns-expiration:>1769864400", false),
    ("header.apns-expiration:1769864000..1769865000", true), ("header.x-note:>3", false),
    (#"header.":path":/3/device/*"#, true), ("header.authorization:bearer*", true),
  ]

  @Test(arguments: fields)
  func queryMatches(query: String, expected: Bool) throws {
    #expect(try Self.matches(query) == expected)
  }

  /// Queries about the payload and about text anywhere, and whether they match `record`.
  static let payloads: [(query: String, expected: Bool)] = [
    // Strings: equal, pattern, case, white space.
    (#"payload./aps/alert/title:"Order shipped""#, true), ("payload./aps/alert/title:Order*", true),
    (#"payload./aps/alert/title:"*r s*""#, true), (#"payload./aps/alert/title:"order shipped""#, false),
    (#"payload./aps/alert/title:"Order shipped ""#, false), ("payload./aps/alert/title:Order", false),
    (#"payload./aps/alert/body:"Für \"dich\" \* nur""#, true), (#"payload./aps/alert/body:"F* nur""#, true),
    (#"payload./aps/sound:"""#, true), ("payload./aps/sound:*", true), ("payload./aps/sound:0", false),
    // Numbers by value; digits also match a string of digits, but quoted digits match only the string.
    ("payload./aps/badge:4", true), ("payload./aps/badge:4.0", true), ("payload./aps/badge:0.4e1", true),
    ("payload./aps/badge:5", false), ("payload./aps/badge:>3", true), ("payload./aps/badge>3", true),
    ("payload./aps/badge:>4", false), ("payload./aps/badge:>=4", true), ("payload./aps/badge:<4", false),
    ("payload./aps/badge:<=4", true), ("payload./aps/badge:<4.5", true), ("payload./aps/badge:3..5", true),
    ("payload./aps/badge:5..9", false), ("payload./aps/badge:4*", true), (#"payload./aps/badge:"4""#, false),
    ("payload./three:3", true), (#"payload./three:"3""#, true), ("payload./three:>2", false),
    ("payload./half:2.5", true), ("payload./minus:-1", true), ("payload./minus:<0", true),
    ("payload./minus:-2..-1", true), ("payload./big:9007199254740993", true),
    ("payload./big:9007199254740992", false),
    ("payload./big:>9007199254740992", true),
    // true, false, null.
    ("payload./yes:true", true), ("payload./yes:false", false), (#"payload./yes:"true""#, false),
    ("payload./yes:1", false), ("payload./nothing:null", true), ("payload./nothing:*", true),
    (#"payload./nothing:"""#, false), (#"payload./nothing:"null""#, false),
    // Present and missing members.
    ("payload./aps:*", true), ("payload./aps/alert:*", true), ("payload./aps/alert:Order*", false),
    ("payload./gone:*", false), ("!payload./gone:*", true), ("payload./gone/further:*", false),
    ("payload./aps/badge/x:*", false), ("!payload./gone:3", true), ("payload./gone:!3", true),
    // Pointers: lists, escapes, names with any characters, the later of two members.
    ("payload./list/0:1", true), ("payload./list/1:zwei", true), ("payload./list/2/x:0", true),
    ("payload./list/3:*", false), ("payload./list/-:*", false), ("payload./list/00:*", false),
    ("payload./a~1b:1", true),
    ("payload./m~0n:2", true), ("payload./:5", true), (#"payload."/a b:c":x"#, true), ("payload./twice:2", true),
    ("payload./twice:1", false), ("payload./Grüße:Köln", true), ("payload./APS:*", false),
    // Conditions on one pointer are alternatives; another pointer is another field.
    ("payload./aps/badge:3 payload./aps/badge:4", true), ("payload./aps/badge:4 payload./three:4", false),
    ("!payload./aps/badge:3 !payload./aps/badge:4", false),
    // Text anywhere, in the decoded payload and in the headers, ignoring case.
    (#"text:"order shipped""#, true), ("text:ORDER", true), ("text:für", true), ("text:FüR", true),
    (#"text:"\"dich\"""#, true), (#"text:"\* nur""#, true), ("text:köln", true), ("text:score-7", true),
    ("text:apns-collapse-id", true), ("text:com.acme", true), ("text:order*zwei", true), ("text:zwei*order", false),
    ("text:missing", false), ("!text:missing", true), ("text:*", true), ("text:SECRETSECRET", false),
    ("text:missing text:order", true), ("text:shippedx", false),
  ]

  @Test(arguments: payloads)
  func queryMatchesPushMembers(query: String, expected: Bool) throws {
    #expect(try Self.matches(query) == expected)
    if !query.contains(" payload.") && !query.contains(" text:") && !query.contains(" !") {
      #expect(try Self.matches(query.hasPrefix("!") ? String(query.dropFirst()) : "!" + query) != expected)
    }
  }

  /// Queries of several conditions, and whether they match `record`.
  static let combinations: [(query: String, expected: Bool)] = [
    ("status:200 topic:com.acme.*", true), ("status:410 topic:com.acme.*", false),
    ("status:410 status:200", true), ("status:410 topic:com.acme.* status:200", true),
    ("status:200 !status:200", false), ("status:2* !status:201", true), ("!status:200 !status:201", false),
    ("!status:201 !status:202", true), ("status:200 !topic:com.acme.*", false),
    // Alternatives within a field are combined before fields are: (410 or 200) and (x or com.acme.app).
    ("status:410 topic:x status:200 topic:com.acme.app", true), ("status:410 topic:x status:200 topic:y", false),
    ("type:alert push_type:voip", true), ("larger:1K size_gt:100", true), ("larger:100 smaller:200", false),
    (
      #"status:200 topic:com.acme.* !type:background is:retry larger:0.2K text:"order shipped" payload./aps/badge:>3"#,
      true
    ),
    (
      #"status:200 topic:com.acme.* !type:alert is:retry larger:0.2K text:"order shipped" payload./aps/badge:>3"#,
      false
    ),
  ]

  @Test(arguments: combinations)
  func conditionsAreCombined(query: String, expected: Bool) throws {
    #expect(try Self.matches(query) == expected)
  }

  @Test func numbersOutOfRangeAreStillPresent() throws {
    let huge = PushFixture { $0.body = Array(#"{"huge":1e400,"small":1e-400}"#.utf8) }.record
    #expect(try Self.matches("payload./huge:* payload./huge:1e400", huge))
    #expect(try !Self.matches("payload./huge:>0", huge))
    #expect(try Self.matches("payload./small:0 payload./small:<1", huge))
  }

  @Test func anyValueOfARepeatedHeaderCounts() throws {
    let twice = PushFixture { $0.headers += [("x-note", "first"), ("x-note", "second")] }.record
    #expect(try Self.matches("header.x-note:first header.x-note:x", twice))
    #expect(try Self.matches("header.x-note:second", twice))
    #expect(try !Self.matches("!header.x-note:second", twice))
    #expect(try !Self.matches("header.x-note:third", twice))
  }

  @Test func findingsAreMatched() throws {
    let silent = PushFixture {
      $0.headers = [("apns-topic", "com.acme.app")]
      $0.body = Array("{}".utf8)
    }.record
    #expect(try Self.matches("finding:missing-push-type finding:x", silent))
    #expect(try Self.matches("finding:would-not-*", silent))
    #expect(try !Self.matches("!finding:would-not-show", silent))
    #expect(try !Self.matches("finding:x", silent))
    // The rulebook of the context decides.
    let lenient = FilterContext(rulebook: Rulebook(mode: .lenient))
    #expect(try !Filter(query: "finding:missing-push-type", in: lenient).matches(silent))
  }

  // MARK: - Bodies that are not JSON

  @Test(arguments: [
    #"{"aps":{"badge":4},"#, #"{"aps":{"badge":4}} x"#, "{\"aps\":{\"badge\":4},\"x\":\"\u{1}\"}", "[1,", "\"",
    "{\"aps\":",
  ])
  func whatIsNotJSONHasNoValues(body: String) throws {
    let record = PushFixture { $0.body = Array(body.utf8) }.record
    #expect(try !Self.matches("payload./aps/badge:4", record))
    #expect(try Self.matches("!payload./aps/badge:4", record))
    #expect(try !Self.matches("payload./aps/badge:*", record))
    #expect(try Self.matches("!payload./aps/badge:*", record))
  }

  @Test func truncatedBodyHasNoValues() throws {
    let record = PushFixture {
      $0.body = Array(#"{"a":1}"#.utf8)
      $0.bodySize = 9000
    }.record
    #expect(try !Self.matches("payload./a:1", record))
    #expect(try Self.matches("text:a size:9000", record))
  }

  @Test func emptyBodyHasNoValues() throws {
    let record = PushFixture { $0.body = [] }.record
    #expect(try !Self.matches("payload./a:*", record))
    #expect(try Self.matches("!payload./a:* size:0 text:acme", record))
  }

  // MARK: - Both forms

  /// Pushes with many differences.
  static let records: [Record] = {
    var records = [record, FilterTests.record]
    for (number, topic) in ["com.acme.app", "com.acme.app.voip", "org.other"].enumerated() {
      for status in [200, 410, 503] {
        records.append(
          PushFixture {
            $0.headers = [("apns-topic", topic), ("apns-push-type", number == 0 ? "alert" : "background")]
            $0.sentResponse = Record.SentResponse(status: status)
            $0.body = Array(#"{"aps":{"badge":\#(number + status)},"name":"n \#(number)"}"#.utf8)
            $0.attempt = Int32(number + 1)
            $0.now += Int64(number) * 1000
            $0.outcome = status == 200 ? .accepted : .rejected
          }.record)
      }
    }
    return records
  }()

  @Test(arguments: [
    ("status=410&topic=com.acme.*&!push_type=background", "status:410 topic:com.acme.* !type:background"),
    ("status=410&status=503", "status:410 status:503"), ("status=!410&status=!503", "!status:410 status:!503"),
    ("status=>=410", "status>=410"), ("status=200..410&attempt=>1", "status:200..410 attempt:>1"),
    ("push_type=alert&type=voip", "type:alert push_type:voip"),
    ("payload./aps/badge=>400", "payload./aps/badge:>400"), ("payload./aps/badge=410", "payload./aps/badge:410"),
    ("payload./name=n 1", #"payload./name:"n 1""#), ("!payload./name=*", "!payload./name:*"),
    ("since=2026-01-31T12:00:01Z", "since:2026-01-31T12:00:01Z"), ("until=-59s", "until:-59s"),
    ("size_lt=40", "smaller:40"), ("size=30..1K", "size:30..1K"), ("is=retry&!is=pending", "is:retry !is:pending"),
    ("text=n 1", #"text:"n 1""#), ("header.apns-topic=*.app", "header.apns-topic:*.app"),
    ("finding=would-not-show", "finding:would-not-show"),
    ("q=status:410 topic:org*&is=retry", "status:410 topic:org* is:retry"),
    ("q=status:410&status=503", "status:410 status:503"), ("q=status:410&q=status:503", "status:410 status:503"),
    ("id=9d*&token=AB*&collapse=S*", "apns_id:9d* device_token:AB* collapse_id:S*"),
  ])
  func queryAndParametersAreEquivalent(parameters: String, query: String) throws {
    let one = try Selection(FilterTests.parameters(parameters), in: Self.context).filter
    let other = try Filter(query: query, in: Self.context)
    let found = Self.records.map(one.matches)
    #expect(found == Self.records.map(other.matches))
    #expect(found.contains(true) && found.contains(false), "the pair says nothing about the forms")
  }

  // MARK: - Inspecting a filter

  @Test(
    arguments: [
      ("", nil), ("status:200", nil), ("token:AB12", ["ab12"]), ("token:AB12 token:ff status:200", ["ab12", "ff"]),
      ("token:AB*", nil), ("token:AB token:c*", nil), ("!token:AB", nil), ("token:ab !token:cd", ["ab"]),
    ] as [(String, [String]?)])
  func devicesOfAFilter(query: String, tokens: [String]?) throws {
    #expect(try Filter(query: query).deviceTokens == tokens)
  }

  // MARK: - Hostile

  @Test func manyWildcardsAreFast() throws {
    let record = PushFixture { $0.body = Array(String(repeating: "a", count: 5000).utf8) }.record
    let stars = String(repeating: "a*", count: 200)
    for query in ["text:\(stars)b", "topic:\(stars)b", "token:*\(stars)b", "header.apns-topic:\(stars)b"] {
      let filter = try Filter(query: query)
      for _ in 0..<200 { #expect(!filter.matches(record)) }
    }
  }

  @Test func deepPayloadsAndLongPointersAreFast() throws {
    for open in ["[", "{\"a\":"] {
      let record = PushFixture { $0.body = Array(String(repeating: open, count: 5000).utf8.prefix(5120)) }.record
      let pointer = String(repeating: open == "[" ? "/0" : "/a", count: 32)
      let query = (0..<50).map { "payload.\(pointer.dropLast($0 % 30 * 2)):\($0)" }.joined(separator: " ")
      let filter = try Filter(query: query)
      for _ in 0..<20 { #expect(!filter.matches(record)) }
    }
  }

  @Test func randomQueriesEndInAFilterOrAnError() {
    let pieces = [
      "status", ":", "=", "!", "\"", "\\", "*", " ", ">", "<", "..", "payload./", "header.", "text", "4", "-5m", "é",
      "\n", "is",
      "retry", "/", "~", "q",
    ]
    var random = SystemRandomNumberGenerator()
    for _ in 0..<5000 {
      var query = ""
      for _ in 0..<Int.random(in: 0...12, using: &random) { query += pieces.randomElement(using: &random) ?? "" }
      do {
        _ = try Filter(query: query, in: Self.context).matches(Self.record)
      } catch {
        let column = error.place?.column ?? 0
        #expect(column >= 1 && column <= query.unicodeScalars.count, "\(query)")
        #expect(!error.hint.isEmpty)
      }
    }
  }
}
