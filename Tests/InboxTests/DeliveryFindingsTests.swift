import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Findings about the delivery of pushes, and about broadcasts and channels.
@Suite struct DeliveryFindingsTests {
  static let new: Set<Finding.Kind> = [
    .pastExpiration, .expirationInMilliseconds, .notStored, .overwrittenInStorage, .overwrittenBeforeAck,
    .backgroundBudget, .channelRequestForm,
    .broadcastWithoutExpiration,
  ]

  /// Returns the findings of the kinds that this suite is about.
  static func findings(in inbox: Inbox) -> [Finding] {
    // Only a store cannot be read.
    let report = try? inbox.findings(by: PushFixture.rulebook, in: .allKinds)
    return report?.findings.filter { new.contains($0.kind) } ?? []
  }

  static func findings(on record: Record) -> [Finding] {
    let inbox = Inbox()
    inbox.append(record)
    let findings = findings(in: inbox)
    // Filters find what is reported.
    for kind in new {
      let matches = record.hasFinding(by: PushFixture.rulebook, in: nil) { $0 == kind }
      #expect(matches == findings.contains { $0.kind == kind })
    }
    return findings
  }

  private static let noon = PushFixture.noon / 1000

  @Test(
    arguments: [
      (nil, []), ("0", []), ("300", [.pastExpiration]), ("\(noon)", [.pastExpiration]), ("\(noon + 1)", []),
      ("\(noon - 3600)", [.pastExpiration]), ("\(Int64.max)", []),
    ] as [(String?, [Finding.Kind])])
  func pastExpiration(expiration: String?, kinds: [Finding.Kind]) {
    let record = PushFixture { if let expiration { $0.headers.append(("apns-expiration", expiration)) } }.record
    #expect(Self.findings(on: record).map(\.kind) == kinds)
  }

  @Test(
    arguments: [
      ("\(noon)000", "milliseconds"), ("\(noon - 86_400)999", "milliseconds"),
      ("\(noon + 300_000_000)000", "milliseconds"), ("\(noon)000000", "microseconds"),
      ("\(noon)123456789", "nanoseconds"), ("\(noon + 86_400)", nil), ("\(noon * 2)", nil),
      ("9999999999", nil), ("\(Int64.max)", nil), ("99999999999999999999", nil), ("0", nil),
    ] as [(String, String?)])
  func expirationInSmallerUnits(expiration: String, unit: String?) {
    let record = PushFixture { $0.headers.append(("apns-expiration", expiration)) }.record
    let findings = Self.findings(on: record)
    #expect(findings.map(\.kind) == (unit == nil ? [] : [.expirationInMilliseconds]))
    guard let unit else { return }
    #expect(findings[0].explanation.hasPrefix("apns-expiration \(expiration) is 20"))
    #expect(findings[0].explanation.contains(" in \(unit), "))
    #expect(findings[0].explanation.hasSuffix(": send \(expiration.prefix(10))"))
  }

  @Test func relativeExpirationIsExplained() {
    let record = PushFixture { $0.headers.append(("apns-expiration", "300")) }.record
    #expect(
      Self.findings(on: record).map(\.explanation) == [
        "apns-expiration 300 is 1970-01-01T00:05:00.000Z: it is a UNIX time, not a duration in seconds"
      ])
  }

  @Test(
    arguments: [
      ("0", .discardedExpired, [.notStored]), ("0", .delivered, []), ("0", nil, []),
      ("300", .discardedExpired, [.pastExpiration, .notStored]), ("\(noon + 60)", .discardedExpired, []),
      ("0", .discardedDisabled, []),
    ] as [(String, DeliveryState?, [Finding.Kind])])
  func notStored(expiration: String, delivery: DeliveryState?, kinds: [Finding.Kind]) {
    let record = PushFixture {
      $0.headers.append(("apns-expiration", expiration))
      $0.delivery = delivery
    }.record
    #expect(Self.findings(on: record).map(\.kind) == kinds)
  }

  @Test(arguments: [Finding.Kind.overwrittenInStorage, .overwrittenBeforeAck, .backgroundBudget])
  func serverReportsDeliveries(kind: Finding.Kind) async throws {
    let inbox = Inbox()
    for topic in ["a", "a", "b"] { inbox.append(WaitingTests.record(topic)) }
    inbox.addFinding(kind, seq: 1, by: 2)
    inbox.addFinding(kind, seq: 1, by: 2)
    inbox.addFinding(kind, seq: 3)
    inbox.addFinding(kind, seq: 9)
    #expect(Self.findings(in: inbox).map(\.kind) == [kind, kind])
    #expect(Self.findings(in: inbox).map(\.evidence) == [[1, 2], [3]])
    #expect(Self.findings(in: inbox)[0].explanation.contains("push 2"))
    let context = FilterContext(rulebook: PushFixture.rulebook, inbox: inbox)
    var page = PageQuery()
    page.selection.filter = try Filter(query: "finding:\(kind.rawValue)", in: context)
    #expect(try inbox.snapshot().page(page).items.map(\.seq) == [1, 3])
    // Resetting a scope forgets its pushes and keeps the others.
    _ = try await inbox.resetInSlices(try Selection(FilterTests.parameters("scope=topic:b")))
    #expect(Self.findings(in: inbox).map(\.seq) == [1])
    inbox.removeAll()
    #expect(inbox.analyzer.seqs.isEmpty)
  }

  @Test func deliveriesAreBounded() {
    let inbox = Inbox()
    var batch = (0..<20_000).map { _ in PushFixture.broadcast() }
    inbox.append(&batch)
    for seq in 1...20_000 {
      inbox.analyzer.addDelivery(FindingEvidence(.backgroundBudget, with: [], .kind), to: seq)
    }
    let seqs = inbox.analyzer.seqs
    #expect(seqs.count <= 16_384)
    #expect(seqs.max() == 20_000)
  }

  @Test(arguments: [
    (#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#, false),
    (#"{"message-storage-policy":"1","push-type":"LiveActivity"}"#, true),
    (#"{"message-storage-policy":0,"push-type":"liveactivity"}"#, true), ("", false), ("no JSON", false),
  ])
  func channelRequestForm(body: String, isReported: Bool) {
    #expect(Self.findings(on: PushFixture.channel(body)).map(\.kind) == (isReported ? [.channelRequestForm] : []))
  }

  @Test(arguments: [("liveactivity", false), ("LiveActivity", true), ("Liveactivity", true)])
  func broadcastForm(type: String, isReported: Bool) {
    let record = PushFixture.broadcast { $0.headers[0].1 = type }
    #expect(Self.findings(on: record).map(\.kind) == (isReported ? [.channelRequestForm] : []))
  }

  @Test(arguments: [(nil, true), ("tomorrow", false)] as [(String?, Bool)])
  func broadcastWithoutExpiration(expiration: String?, isReported: Bool) {
    let record = PushFixture.broadcast {
      $0.headers = [("apns-push-type", "liveactivity"), ("apns-channel-id", "QQ==")]
      if let expiration { $0.headers.append(("apns-expiration", expiration)) }
      $0.verdict = {
        Verdict(
          facts: $0, credential: .none, token: nil, passed: [], failed: (.expiration, .badExpirationDate, "missing"))
      }
    }
    #expect(Self.findings(on: record).map(\.kind) == (isReported ? [.broadcastWithoutExpiration] : []))
  }
}
