import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Testing

@testable import APNSMockInbox

/// Filters over many records: results do not depend on neighboring records or on earlier queries.
@Suite struct FilterWalkTests {
  /// More than two chunks, the last of which is not full.
  static let count = 1100
  static let topics = ["com.acme.app", "com.acme.app.voip", "org.other"]

  /// Pushes that differ in everything a filter can ask for, depending on their numbers.
  static let inbox: Inbox = {
    let inbox = Inbox()
    let tokens = ["MOCKKEY001", "OTHERKEY02"].map { PushFixture.authorization(keyID: $0) }
    let connections = (1...2).map {
      ConnectionFacts(
        id: "c\($0)", listener: $0, environment: $0 == 1 ? .sandbox : .production, client: "", sni: nil, tls: "")
    }
    let certified = ConnectionFacts(
      id: "c3", listener: 0, client: "", sni: nil, tls: "",
      certificate: ProviderCertificate(
        subjectUID: "org.certified", topics: [], development: true, production: false, commonName: nil,
        fingerprint: ""))
    for number in 1...count {
      inbox.append(
        PushFixture {
          $0.deviceToken = String(repeating: "Ab", count: 30) + "00\(10 + number % 7)"
          $0.headers = [("apns-push-type", number % 2 == 0 ? "alert" : "background")]
          if number % 11 != 0 { $0.headers.append(("apns-topic", topics[number % 3])) }
          if number % 4 == 0 { $0.headers.append(("apns-collapse-id", "c\(number % 8)")) }
          if number % 13 == 0 { $0.headers.append(("apns-id", "27cfdc15-e305-27e0-e290-8fc98e115\(899 - number % 2)")) }
          if number % 9 == 0 { $0.headers += [("x-n", "\(number)"), ("x-n", "second")] }
          if number % 5 == 0 { $0.headers.append(("apns-priority", "5")) }
          $0.authorization = number % 11 == 0 ? [] : [tokens[number % 2]]
          $0.connection = number % 11 == 0 ? certified : connections[number % 2]
          $0.generatedID = number % 13 == 0 ? "" : "9D3220FE-444B-633E-D1F1-5D0DCB4F5\(100 + number % 800)"
          $0.body = Array(#"{"aps":{"badge":\#(number % 50)}}"#.utf8)
          $0.outcome = number % 10 == 0 ? .rejected : number % 17 == 0 ? .pending : .accepted
          $0.accepted = number % 3 != 0
          $0.delivery = number % 3 == 0 ? nil : DeliveryState(rawValue: UInt8(number % 10 + 1))
          $0.sentResponse =
            number % 10 == 0
            ? Record.SentResponse(status: 503, reason: .serviceUnavailable) : Record.SentResponse(status: 200)
          $0.attempt = number % 6 == 0 ? 2 : 1
          $0.now += Int64(number) * 1000
          guard number % 10 == 0 else { return }
          $0.wireDetails = WireDetails(injections: [
            Injection(
              profile: number % 20 == 0 ? "flaky" : nil, rule: "r\(number % 30)", action: .delay(.fixed(.seconds(1))),
              continues: true),
            Injection(rule: "last", action: .delay(.fixed(.seconds(1))), continues: false),
          ])
        }.record)
    }
    return inbox
  }()

  /// The provider token of a push with a repeated header field is not read.
  static func hasToken(_ number: Int) -> Bool { number % 11 != 0 && number % 9 != 0 }

  static func page(_ query: String, in inbox: Inbox, _ order: PageQuery.Order = .ascending) throws -> [Int] {
    let snapshot = inbox.snapshot()
    var page = try PageQuery(
      FilterTests.parameters(query), in: FilterContext(now: PushFixture.noon, snapshot: snapshot))
    page.limit = .max
    page.order = order
    return try snapshot.page(page).items.map(\.seq)
  }

  /// Queries, and the numbers of the pushes they match.
  static let queries: [(String, @Sendable (Int) -> Bool)] = [
    ("device_token=\(String(repeating: "aB", count: 30))0013", { $0 % 7 == 3 }),
    ("!device_token=\(String(repeating: "aB", count: 30))0013", { $0 % 7 != 3 }),
    ("device_token=ABAB*13&device_token=*14", { [3, 4].contains($0 % 7) }),
    ("topic=com.acme.app", { $0 % 11 != 0 && $0 % 3 == 0 }), ("topic=org.certified", { $0 % 11 == 0 }),
    ("topic=com.acme.*&!topic=*.voip", { $0 % 11 != 0 && $0 % 3 == 0 }),
    ("!topic=org.*", { $0 % 11 != 0 && $0 % 3 != 2 }),
    ("push_type=alert", { $0 % 2 == 0 }), ("!push_type=alert", { $0 % 2 != 0 }),
    ("collapse_id=c4", { $0 % 8 == 4 }), ("!collapse_id=c4", { $0 % 8 != 4 }), ("!collapse_id=*", { $0 % 4 != 0 }),
    ("apns_id=27CFDC15-e305-27e0-e290-8fc98e115899", { $0 % 26 == 0 }),
    ("apns_id=9d3220fe-444b-633e-d1f1-5d0dcb4f5101", { $0 % 800 == 1 }), ("!apns_id=9D*", { $0 % 13 == 0 }),
    ("connection=c1", { $0 % 11 != 0 && $0 % 2 == 0 }), ("!connection=c1", { $0 % 11 == 0 || $0 % 2 != 0 }),
    ("connection=c1&connection=c3", { $0 % 11 == 0 || $0 % 2 == 0 }),
    ("key_id=OTHERKEY02", { hasToken($0) && $0 % 2 == 1 }), ("!key_id=OTHERKEY02", { !hasToken($0) || $0 % 2 == 0 }),
    ("!team_id=*", { !hasToken($0) }), ("listener=2", { $0 % 11 != 0 && $0 % 2 == 1 }),
    ("status=503", { $0 % 10 == 0 }), ("status=2*&!status=>=500", { $0 % 10 != 0 }), ("!status=2*", { $0 % 10 == 0 }),
    ("reason=Service*", { $0 % 10 == 0 }), ("!reason=*", { $0 % 10 != 0 }),
    ("outcome=rejected&outcome=pending", { $0 % 10 == 0 || $0 % 17 == 0 }), ("!outcome=r*", { $0 % 10 != 0 }),
    ("delivery=received by apns", { $0 % 3 != 0 && $0 % 10 == 0 }), ("!delivery=*", { $0 % 3 == 0 }),
    ("delivery=Discarded*", { $0 % 3 != 0 && $0 % 10 >= 5 }),
    ("delivery=*&!delivery=*(from storage)", { $0 % 3 != 0 && ![2, 6, 9].contains($0 % 10) }),
    ("environment=production", { $0 % 11 != 0 && $0 % 2 == 1 }), ("kind=push", { _ in true }),
    ("!kind=push", { _ in false }),
    ("accepted=true", { $0 % 10 != 0 && $0 % 17 != 0 }), ("!accepted=true", { $0 % 10 == 0 || $0 % 17 == 0 }),
    ("decision=rejected", { $0 % 10 == 0 }), ("ending=response", { $0 % 10 == 0 || $0 % 17 != 0 }),
    ("is=faulted", { $0 % 10 == 0 }), ("priority=5", { $0 % 5 == 0 }),
    ("rule=r0", { $0 % 30 == 0 }), ("rule=last&!rule=r0", { $0 % 10 == 0 && $0 % 30 != 0 }),
    ("!rule=*", { $0 % 10 != 0 }), ("profile=flaky", { $0 % 20 == 0 }), ("!profile=flaky", { $0 % 20 != 0 }),
    ("attempt=2", { $0 % 6 == 0 }), ("attempt=1..1", { $0 % 6 != 0 }), ("is=retry", { $0 % 6 == 0 }),
    ("is=pending&is=retry", { $0 % 6 == 0 || $0 % 10 != 0 && $0 % 17 == 0 }), ("!is=first", { $0 % 6 == 0 }),
    ("since=2026-01-31T12:10:00Z", { $0 >= 600 }), ("until=2026-01-31T12:10:00Z", { $0 < 600 }),
    ("!since=2026-01-31T12:10:00Z", { $0 < 600 }), ("size=19", { $0 % 50 < 10 }), ("size_gt=19", { $0 % 50 >= 10 }),
    ("header.x-n=*", { $0 % 9 == 0 }), ("!header.x-n=*", { $0 % 9 != 0 }), ("header.x-n=9", { $0 == 9 }),
    ("header.x-n=second&header.x-n=3", { $0 % 9 == 0 }), ("header.x-n=>600", { $0 % 9 == 0 && $0 > 600 }),
    ("header.x-n=*&!header.x-n=18", { $0 % 9 == 0 && $0 != 18 }), ("!header.x-n=second", { $0 % 9 != 0 }),
    ("header.x-n=9007199254740993", { _ in false }), ("push_key=*", { _ in true }), ("!push_key=*", { _ in false }),
    ("push_key=*x", { _ in false }),
    ("payload./aps/badge=7&topic=org.other", { $0 % 50 == 7 && $0 % 11 != 0 && $0 % 3 == 2 }),
    ("text=badge\":7}&status=200&push_type=background", { $0 % 50 == 7 }),
    ("topic=com.acme.app&push_type=alert&header.x-n=*", { $0 % 11 != 0 && $0 % 18 == 0 }),
  ]

  @Test(arguments: queries)
  func matchesAreFoundAmongMany(query: String, predicate: @Sendable (Int) -> Bool) throws {
    let expected = (1...Self.count).filter(predicate)
    #expect(try Self.page(query, in: Self.inbox) == expected)
    #expect(try Self.page(query, in: Self.inbox, .descending) == expected.reversed())
    // Parts of chunks and of batches.
    #expect(try Self.page(query + "&after=70&before=1030", in: Self.inbox) == expected.filter { $0 > 70 && $0 < 1030 })
    // Each record alone.
    let filter = try Filter(FilterTests.parameters(query))
    let all = try Self.inbox.snapshot().page(try PageQuery([("limit", "1000")])).items
    #expect(all.filter { filter.matches($0) }.map(\.seq) == expected.filter { $0 <= 1000 })
  }

  // MARK: - Hashes of device tokens

  /// Two devices whose records have the same 16-bit hash.
  @Test func devicesWithTheSameHashAreDistinguished() throws {
    var seen: [UInt16: String] = [:]
    var pair: [String] = []
    for number in 0... {
      let token = "ab12" + String(number, radix: 16)
      if let other = seen.updateValue(token, forKey: RecordChunk.tokenHash(ofDeviceToken: token)) {
        pair = [other, token]
        break
      }
    }
    let inbox = Inbox()
    for number in 0..<200 { inbox.append(PushFixture { $0.deviceToken = pair[number % 2] }.record) }
    let odd = (1...200).filter { $0 % 2 == 1 }
    #expect(try Self.page("device_token=\(pair[0].uppercased())", in: inbox) == odd)
    #expect(try Self.page("!device_token=\(pair[1])", in: inbox) == odd)
  }

  // MARK: - Push keys

  /// Three pushes, the keys of two of which begin with the same four digits.
  @Test func pushKeysWithTheSamePrefixAreDistinguished() throws {
    var seen: [Substring: Record] = [:]
    var records: [Record] = []
    for number in 0... {
      let record = PushFixture { $0.body = Array("\(number)".utf8) }.record
      if let other = seen.updateValue(record, forKey: record.pushKey.text.prefix(4)) {
        records = [other, record]
        break
      }
    }
    records.append(try #require(seen.values.first { $0.pushKey.text.first != records[0].pushKey.text.first }))
    let keys = records.map(\.pushKey.text)
    let inbox = Inbox()
    for number in 0..<600 { inbox.append(records[number % 3]) }
    func seqs(_ predicate: (Int) -> Bool) -> [Int] { (1...600).filter { predicate(($0 - 1) % 3) } }
    for (index, key) in keys.enumerated() {
      let mine = seqs { $0 == index }
      #expect(try Self.page("push_key=\(key)", in: inbox) == mine)
      #expect(try Self.page("push_key=\(key.uppercased())", in: inbox) == mine)
      #expect(try Self.page("push_key=\(key.prefix(15))*", in: inbox) == mine)
      #expect(try Self.page("push_key=*\(key.suffix(9).uppercased())", in: inbox) == mine)
      #expect(try Self.page("push_key=\(key.prefix(3))*\(key.suffix(8))", in: inbox) == mine)
      #expect(try Self.page("!push_key=\(key)", in: inbox) == seqs { $0 != index })
      #expect(try Self.page("!push_key=\(key.prefix(15))*", in: inbox) == seqs { $0 != index })
    }
    #expect(try Self.page("push_key=\(keys[0].prefix(4))*", in: inbox) == seqs { $0 < 2 })
    #expect(try Self.page("push_key=\(keys[0])&push_key=\(keys[2])", in: inbox) == seqs { $0 != 1 })
    #expect(try Self.page("push_key=\(keys[0])&push_key=\(keys[2].prefix(9))*", in: inbox) == seqs { $0 != 1 })
    #expect(try Self.page("push_key=\(keys[0])&!push_key=\(keys[0])", in: inbox) == [])
    // A text that is no push key matches no push, and its negation matches all.
    for text in [String(keys[0].prefix(4)), keys[0] + "0", "+" + keys[0].dropFirst(), keys[0] + keys[0]] {
      #expect(try Self.page("push_key=\(text)", in: inbox) == [])
      #expect(try Self.page("!push_key=\(text)", in: inbox).count == 600)
    }
    #expect(try inbox.remove(try Selection([("push_key", keys[0]), ("before", "301")])) == 100)
    #expect(try Self.page("push_key=\(keys[0])", in: inbox) == seqs { $0 == 0 }.filter { $0 > 300 })
  }

  // MARK: - Duplicates

  @Test func duplicatesAreFoundAmongMany() throws {
    let inbox = Inbox()
    let records = (0..<700).map { number in PushFixture { $0.body = Array("\(number)".utf8) }.record }
    let rejected = PushFixture {
      $0.body = Array("3".utf8)
      $0.outcome = .rejected
    }.record
    for number in 0..<1500 { inbox.append(number % 100 == 99 ? rejected : records[number * number % 700]) }
    var seen: Set<Int> = []
    let expected = (1...1500).filter { seq in
      (seq - 1) % 100 != 99 && !seen.insert((seq - 1) * (seq - 1) % 700).inserted
    }
    #expect(expected.count > 700)
    #expect(try Self.page("is=duplicate", in: inbox) == expected)
    #expect(try Self.page("is=duplicate", in: inbox, .descending) == expected.reversed())
    #expect(try Self.page("!is=duplicate", in: inbox) == (1...1500).filter { !expected.contains($0) })
    #expect(
      try Self.page("is=duplicate&after=100&before=900", in: inbox) == expected.filter { $0 > 100 && $0 < 900 })
  }
}
