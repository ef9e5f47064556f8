import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

struct RecordArenaTests {
  private func record(_ body: String, in arena: RecordArena) -> Record {
    let push = PushFixture { $0.body = Array(body.utf8) }
    return Record(
      request: push.request, verdict: Verdict(factsOnly: push.request), hasVerdict: false, generatedID: [],
      connection: push.connection, receivedAt: 0,
      result: Record.Result(
        outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(status: 200), finishedAt: 0),
      in: arena)
  }

  @Test func recordsOfOneArenaKeepTheirContent() {
    let arena = RecordArena()
    // Ten times the capacity of the largest slab; some records are larger than the first slab.
    let bodies = (0..<2000).map { String(repeating: "\($0),", count: 1 + $0 % 1000) }
    let records = bodies.map { record($0, in: arena) }
    for (record, body) in zip(records, bodies) {
      #expect(record.body == Array(body.utf8.prefix(HTTPRequest.bodyLimit)))
    }
  }

  @Test func slabIsFreedWithItsLastRecord() {
    let arena = RecordArena()
    weak let slab = arena.slab(withCapacityFor: 1).takeRetainedValue()
    var first: Record? = record("{}", in: arena)
    #expect(slab != nil)
    // The arena continues with another slab.
    while slab === arena.slab(withCapacityFor: 1000).takeRetainedValue() {
      _ = record(String(repeating: "x", count: 900), in: arena)
    }
    #expect(slab != nil)
    #expect(first?.body == Array("{}".utf8))
    first = nil
    #expect(slab == nil)
  }

  @Test func remainingRecordsDoNotKeepOtherSlabs() throws {
    let arena = RecordArena()
    weak let slab = arena.slab(withCapacityFor: 1).takeRetainedValue()
    let inbox = Inbox()
    for number in 0..<8 { inbox.append(record("{\"n\":\(number)}", in: arena)) }
    while slab === arena.slab(withCapacityFor: 1000).takeRetainedValue() {
      _ = record(String(repeating: "x", count: 900), in: arena)
    }
    var allButTheLast = Selection()
    allButTheLast.before = 8
    #expect(try inbox.remove(allButTheLast) == 7)
    #expect(slab == nil)
    #expect(try inbox.record(seq: 8)?.body == Array("{\"n\":7}".utf8))
  }

  /// Pushes that are rejected one after the other share the connection, the token and the verdict, so that these take
  /// no further memory.
  @Test func sharedContentIsStoredOnce() throws {
    let arena = RecordArena()
    let slab = arena.slab(withCapacityFor: 1).takeRetainedValue()
    let push = PushFixture { $0.deviceToken = "none" }
    let verdict = try #require(push.record.verdict)
    #expect(verdict.reason == .badDeviceToken && verdict.token != nil)
    for _ in 0..<10 {
      _ = Record(
        request: push.request, verdict: verdict, generatedID: [], connection: push.connection, receivedAt: 0,
        result: Record.Result(outcome: .rejected, accepted: false, sentResponse: Record.SentResponse(), finishedAt: 0),
        in: arena)
    }
    #expect(slab.referents.count == 3)
  }

  private static let busy = Injection(
    profile: "flaky", rule: "busy", action: .close, continues: false, draw: 0.1, probability: 0.5, ordinal: 2)
  private static let late = Injection(rule: "late", action: .delay(.fixed(.seconds(1))), continues: true)

  /// The wire outcome with which a record begins, and the one with which it ends.
  @Test(
    arguments: [
      (nil, nil), (nil, WireDetails(injections: [busy])), (nil, WireDetails(reset: "CANCEL")),
      (WireDetails(injections: [busy]), nil), (WireDetails(injections: [busy]), WireDetails(injections: [busy])),
      (WireDetails(injections: [busy]), WireDetails(injections: [late])),
      (WireDetails(injections: [busy]), WireDetails(injections: [busy, late])),
      (WireDetails(injections: [busy]), WireDetails(injections: [busy], reset: "CANCEL", endedAt: 7)),
      (WireDetails(injections: [busy, late]), WireDetails(injections: [busy])), (WireDetails(reset: "CANCEL"), nil),
    ] as [(WireDetails?, WireDetails?)])
  func lastWireDetailsReplacesTheFirst(first: WireDetails?, last: WireDetails?) {
    let arena = RecordArena()
    let push = PushFixture { $0.wireDetails = first }
    var record = Record(
      request: push.request, verdict: Verdict(factsOnly: push.request), hasVerdict: false, generatedID: [],
      connection: push.connection, receivedAt: 0,
      result: Record.Result(
        outcome: .pending, accepted: false, sentResponse: Record.SentResponse(), wireDetails: first, finishedAt: nil),
      in: arena)
    expect(record, tells: first)
    #expect(record.body == push.body && record.request.headers.count == push.request.headers.count)
    record.finish(
      with: Record.Result(
        outcome: .unanswered, accepted: false, sentResponse: Record.SentResponse(), wireDetails: last, finishedAt: 1)
    )
    expect(record, tells: last)
    record.move(to: RecordArena())
    expect(record, tells: last)
    #expect(record.body == push.body && record.request.headers.count == push.request.headers.count)
  }

  private func expect(_ record: Record, tells wireDetails: WireDetails?) {
    let told = record.wireDetails
    #expect((told == nil) == (wireDetails == nil))
    #expect(told.map { Array($0.injections) } == wireDetails.map { Array($0.injections) })
    #expect(told?.reset == wireDetails?.reset && told?.endedAt == wireDetails?.endedAt)
  }

  /// The injections of a rule that does the same to each push share their contents; no record takes memory of its own
  /// for them.
  @Test func injectionsOfARuleShareTheirAction() {
    let arena = RecordArena()
    let slab = arena.slab(withCapacityFor: 1).takeRetainedValue()
    let push = PushFixture()
    let records = (0..<10).map { _ in
      Record(
        request: push.request, verdict: Verdict(factsOnly: push.request), hasVerdict: false, generatedID: [],
        connection: push.connection, receivedAt: 0,
        result: Record.Result(
          outcome: .rejected, accepted: false, sentResponse: Record.SentResponse(status: 503),
          wireDetails: WireDetails(injections: [Self.busy]), finishedAt: 0), in: arena)
    }
    #expect(slab.referents.count == 2)
    #expect(records.allSatisfy { $0.wireDetails?.injections.first == Self.busy })
  }

  @Test func slabKeepsReferencesOfItsRecordsOnly() throws {
    weak var connection: ConnectionFacts?
    weak var other: ConnectionFacts?
    weak var token: ProviderToken?
    do {
      let inbox = Inbox()
      do {
        let arena = RecordArena()
        let first = PushFixture()
        let second = PushFixture { $0.deviceToken = "none" }
        connection = first.connection
        other = second.connection
        for push in [first, second, first] {
          let record = push.record
          token = token ?? record.verdict?.token
          inbox.append(
            Record(
              request: push.request, verdict: try #require(record.verdict), generatedID: [],
              connection: push.connection, receivedAt: 0,
              result: Record.Result(
                outcome: .accepted, accepted: true, sentResponse: Record.SentResponse(), finishedAt: 0),
              in: arena))
        }
      }
      #expect(connection != nil && token != nil && other != nil)
      let records = try (1...3).compactMap { try inbox.record(seq: $0) }
      #expect(records.map { $0.verdict?.reason } == [nil, .badDeviceToken, nil])
      #expect(records[1].verdict.map { records[1].detail(of: $0).contains("none") } == true)
      #expect(records[0].connection === connection && records[0].verdict?.token === token)
    }
    #expect(connection == nil && token == nil && other == nil)
  }
}
