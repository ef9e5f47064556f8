import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Broadcasts and channel management in the inbox: unless a condition names `kind`, only pushes are meant.
@Suite struct RequestKindTests {
  typealias Fixture = VerificationFixture

  /// A push, a broadcast, a request of channel management, and a push.
  static func inbox() -> Inbox {
    let inbox = Inbox()
    inbox.append(Fixture.push())
    inbox.append(PushFixture.broadcast())
    inbox.append(PushFixture.channel())
    inbox.append(Fixture.push(topic: "com.other"))
    return inbox
  }

  @Test(arguments: [
    ("/3/device/ab", RequestKind.push), ("/4/broadcasts/apps/com.acme.app", .broadcast),
    ("/1/apps/com.acme.app/channels", .channel), ("/1/apps/com.acme.app/all-channels", .channel), ("/1/apps", .push),
    ("/4/broadcasts", .push), ("", .push), ("/", .push), ("/3/broadcasts/", .push),
  ])
  func kindFollowsFromThePath(path: String, kind: RequestKind) {
    #expect(PushFixture { $0.path = path }.record.kind == kind)
  }

  /// Queries, and the records of `inbox` that they select.
  static let queries: [(query: String, seqs: [Int])] = [
    ("", [1, 4]), ("kind=*", [1, 2, 3, 4]), ("kind=broadcast", [2]), ("!kind=channel", [1, 2, 4]),
    ("kind=broadcast&kind=channel", [2, 3]), ("q=kind:broadcast", [2]), ("accepted=true", [1, 4]),
    ("topic=*", [1, 4]), ("!topic=*", []), ("!topic=*&kind=*", []), ("topic=com.acme.app&kind=*", [1, 2, 3]),
    ("scope=topic:com.acme.*", [1]),
    ("scope=kind:*", [1, 2, 3, 4]), ("scope=kind:channel&accepted=true", [3]),
    ("scope=topic:com.*&kind=broadcast", [2]),
    ("kind=push&scope=kind:*", [1, 4]), ("after=1&kind=*", [2, 3, 4]), ("device_token=ab*&kind=*", [1, 4]),
  ]

  @Test(arguments: queries) func onlyPushesAreSelectedByDefault(query: String, seqs: [Int]) async throws {
    let inbox = Self.inbox()
    let snapshot = inbox.snapshot()
    let page = try PageQuery(FilterTests.parameters(query))
    #expect(try snapshot.page(page).items.map(\.seq) == seqs)
    #expect(try await snapshot.pageInSlices(page).items.map(\.seq) == seqs)
    let selection = try Selection(FilterTests.parameters(query))
    #expect(try (1...4).filter { try inbox.record(seq: $0).map(selection.contains) == true } == seqs)
    let wait = try await inbox.wait(for: WaitQuery(FilterTests.parameters(query + "&count==\(seqs.count)")))
    #expect(wait.isSatisfied, "\(wait.message)")
    var export = InboxExport(snapshot, selection, as: .lines, rulebook: PushFixture.rulebook)
    var lines = 0
    while let piece = try export.next() { lines += piece.count { $0 == UInt8(ascii: "\n") } }
    #expect(lines == seqs.count)
    #expect(try inbox.remove(selection) == seqs.count)
    #expect(inbox.snapshot().count == 4 - seqs.count)
  }

  @Test func allKindsAreKeptWithoutASelection() async throws {
    let inbox = Self.inbox()
    #expect(inbox.snapshot().count == 4)
    let other = Inbox()
    #expect(try await other.append(imported: inbox) == 1...4)
    #expect(other.snapshot().records.count == 4)
    // Chunks that were rebuilt know their kinds as well.
    #expect(try inbox.remove(try Selection(FilterTests.parameters("topic=com.other"))) == 1)
    #expect(try inbox.snapshot().page(PageQuery()).items.map(\.seq) == [1])
  }

  @Test func eventsAreOfPushes() throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    let reader = try #require(log.addReader())
    inbox.append(PushFixture.broadcast())
    let push = inbox.append(PushFixture().record)
    let records = try [1, push].compactMap { try inbox.record(seq: $0) }
    log.inboxDidChange(InboxChanges(records: records, through: push))
    for (query, count) in [("", 1), ("kind=*", 2)] {
      var position = reader.start
      let selection = try Selection(FilterTests.parameters(query))
      let events = reader.read(after: &position, selection, rulebook: PushFixture.rulebook)
      #expect(events?.count == count)
    }
  }

  /// Requests of channel management differ by method, path and channel, not by a device.
  @Test func otherRequestsHaveTheirOwnKeys() {
    let keys = [
      PushFixture.broadcast(), PushFixture.broadcast { $0.headers[2].1 = "b3RoZXI=" },
      PushFixture.broadcast { $0.path = "/4/broadcasts/apps/com.other" }, PushFixture.channel(""),
      PushFixture.channel("") { $0.method = "GET" },
      PushFixture.channel("") { $0.headers = [("apns-channel-id", "QQ==")] },
    ].map(\.pushKey)
    #expect(Set(keys).count == keys.count)
    #expect(PushFixture.broadcast().pushKey == PushFixture.broadcast().pushKey)
  }

  // MARK: - Verification

  @Test(arguments: [
    ("'expect':[{'count':2}]", true), ("'expect':[{'match':{'kind':'broadcast'},'count':1}]", true),
    ("'expect':[{'match':'kind:*','count':4}]", true), ("'expect':[{'count':4}],'scope':'kind:*'", true),
    ("'expect':[{'count':1}],'scope':'kind:broadcast'", true),
    ("'expect':[{'match':{'kind':'push'},'count':2}],'scope':'kind:*'", true),
    ("'expect':[{'match':{'push_type':'alert'}}],'no_others':true", true),
    ("'expect':[{'match':{'push_type':'alert'}}],'no_others':true,'scope':'kind:*'", false),
    ("'expect':[{'match':{'kind':'*'}}],'no_others':true,'scope':'kind:*'", true),
  ])
  func verificationIsAboutPushes(document: String, isPassed: Bool) async throws {
    let report = try await Fixture.report("{\(document)}", in: Self.inbox())
    #expect(report.isPassed == isPassed, "\(report.text)")
  }

  @Test(arguments: [("", true), (",'scope':'kind:*'", false)])
  func nothingLostIsAboutPushes(scope: String, isPassed: Bool) async throws {
    let inbox = Self.inbox()
    inbox.append(
      PushFixture.broadcast {
        ($0.outcome, $0.accepted) = (.rejected, false)
        $0.sentResponse = Record.SentResponse(status: 503, reason: .serviceUnavailable)
        $0.generatedID = "another"
      })
    let report = try await Fixture.report("{'nothing_lost':true\(scope)}", in: inbox)
    #expect(report.isPassed == isPassed, "\(report.text)")
  }

  @Test func nearMissesAreOfTheSameKinds() async throws {
    let inbox = Self.inbox()
    let ofPushes = try await Fixture.report("{'expect':[{'match':{'topic':'x','accepted':true}}]}", in: inbox)
    #expect(ofPushes.expectations[0].nearest.map(\.seq) == [4, 1])
    let ofAll = try await Fixture.report("{'expect':[{'match':{'kind':'broadcast','status':500}}]}", in: inbox)
    #expect(ofAll.expectations[0].nearest.map(\.seq) == [2, 4, 3], "also those that meet no condition")
  }
}
