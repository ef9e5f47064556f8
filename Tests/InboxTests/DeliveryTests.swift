import APNSMockRules
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// The delivery of pushes in records, events, waits and verifications.
@Suite struct DeliveryTests {
  typealias Fixture = VerificationFixture

  /// A record in a chunk is one cache line; see `PackedResult`.
  @Test func aRecordHasTheSizeOfACacheLine() { #expect(MemoryLayout<Record>.size == 64) }

  @Test(arguments: Decision.allCases, Ending.allCases)
  func aResultKeepsItsStates(decision: Decision, ending: Ending) {
    for delivery in DeliveryState.allCases + [nil] {
      for response in [
        Record.SentResponse(), Record.SentResponse(status: 1023, reason: .idleTimeout, latencyNanoseconds: 7),
      ] {
        var record = PushFixture().record
        let result = Record.Result(
          decision, ending, sentResponse: response, finishedAt: PushFixture.noon, delivery: delivery)
        record.finish(with: result)
        #expect(record.end == AttemptEnd(decision, ending))
        #expect(record.outcome == result.outcome)
        #expect(record.sentResponse == response)
        #expect(record.delivery == delivery)
      }
    }
  }

  @Test func deliveryChangesInPlace() throws {
    let inbox = Inbox()
    let seq = inbox.append(PushFixture().record)
    let before = inbox.snapshot()
    inbox.setDeliveries([(seq, .storedOffline), (99, .delivered)])
    #expect(try inbox.record(seq: seq)?.delivery == .storedOffline)
    #expect(try inbox.record(seq: seq)?.outcome == .accepted)
    #expect(try before.records.record(seq)?.delivery == nil)
    #expect(try inbox.record(seq: 99) == nil)
    inbox.removeAll()
    inbox.setDeliveries([(seq, .delivered)])
    #expect(try inbox.record(seq: seq) == nil)
  }

  @Test func deliveriesChangeTogether() async throws {
    let inbox = Inbox(maxRecords: 3)
    let log = EventLog(inbox)
    for _ in 1...4 { inbox.append(PushFixture().record) }
    let reader = try #require(log.addReader())
    // The first is evicted; the last does not exist.
    inbox.setDeliveries([
      (1, .delivered), (2, .storedOffline), (3, .discardedExpired), (2, .delivered), (99, .delivered),
    ])
    #expect(try (1...4).map { try inbox.record(seq: $0)?.delivery } == [nil, .delivered, .discardedExpired, nil])
    var position = reader.start
    var names: [String] = []
    for await _ in reader.signals {
      names += reader.read(after: &position, Selection(), rulebook: PushFixture.rulebook)?.map(\.name) ?? []
      if names.count >= 3 { break }
    }
    #expect(names == ["push.updated", "push.updated", "push.updated"])
  }

  @Test func finishingKeepsTheDelivery() throws {
    let inbox = Inbox()
    let seq = inbox.append(PushFixture { $0.outcome = .pending }.record)
    inbox.setDeliveries([(seq, .received)])
    inbox.finish(seq, with: WaitingTests.end(.accepted))
    #expect(try inbox.record(seq: seq)?.delivery == .received)
    var end = WaitingTests.end(.rejected)
    end.delivery = .delivered
    inbox.finish(seq, with: end)
    #expect(try inbox.record(seq: seq)?.delivery == .delivered)
  }

  @Test func changesAreReported() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    let seq = inbox.append(PushFixture().record)
    let reader = try #require(log.addReader())
    inbox.setDeliveries([(seq, .delivered)])
    var position = reader.start
    for await _ in reader.signals {
      guard let events = reader.read(after: &position, Selection(), rulebook: PushFixture.rulebook) else { continue }
      #expect(events.map(\.name) == ["push.updated"])
      #expect(String(decoding: events[0].data, as: UTF8.self).contains(#""delivery":"Delivered to Device""#))
      return
    }
  }

  // MARK: - Queries

  @Test(arguments: [
    ("", "delivery:*", false), ("", "!delivery:*", true), ("Delivered to Device", "delivery:delivered*", true),
    ("Delivered to Device", #"delivery:"delivered to device""#, true),
    ("Delivered to Device (From Storage)", #"delivery:"Delivered to Device""#, false),
    ("Stored - Device Offline", "delivery:stored* delivery:discarded*", true),
    ("Stored - Device Offline", #"!delivery:"Stored - Device Offline""#, false),
  ])
  func deliveryIsQueried(text: String, query: String, expected: Bool) throws {
    let record = PushFixture { $0.delivery = DeliveryState(text: text) }.record
    #expect(try Filter(query: query).matches(record) == expected)
  }

  @Test func invalidValuesAreExplained() {
    let delivery = #expect(throws: FilterError.self) { try Filter(query: #"delivery:"Stored - Offline""#) }
    #expect(delivery?.hint.contains(#""Stored - Device Offline""#) == true, "\(delivery?.hint ?? "")")
    let kind = #expect(throws: FilterError.self) { try Filter(query: "kind:chanel") }
    #expect(kind?.hint == "Did you mean channel? Use one of push, broadcast, channel.")
    let environment = #expect(throws: FilterError.self) { try Filter(query: "environment:prod") }
    #expect(environment?.hint.contains("sandbox, production") == true)
  }

  // MARK: - Waits

  @Test func aWaitSeesAChangedDelivery() async throws {
    let inbox = Inbox()
    let seq = inbox.append(PushFixture { $0.delivery = .storedOffline }.record)
    let delivered = try await WaitingTests.begin("delivery=delivered*&count==1&timeout=1m", in: inbox)
    let stored = try await WaitingTests.begin("delivery=stored*&count=0&timeout=1m", in: inbox)
    inbox.setDeliveries([(seq, .deliveredFromStorage)])
    #expect(try await delivered.value.isSatisfied)
    #expect(try await stored.value.isSatisfied)
  }

  /// A push whose delivery is final cannot leave the count.
  @Test func aFinalDeliveryEndsAnExactWait() async throws {
    let inbox = Inbox()
    for delivery in [DeliveryState.delivered, .discardedExpired] {
      inbox.append(PushFixture { $0.delivery = delivery }.record)
    }
    let result = try await inbox.wait(for: WaitingTests.query("delivery=*&count==1&timeout=1m"))
    #expect(!result.isSatisfied)
  }

  // MARK: - Verification

  @Test(arguments: [
    ("{'delivery':'Delivered to Device'}", false), ("{'delivery':'stored*'}", true),
    ("{'delivery':['Delivered to Device','Stored - Device Offline']}", true),
    ("{'match':{'delivery':'stored - device offline'}}", true), ("{'match':{'!delivery':'*'},'count':0}", true),
    ("{'match':{'environment':'sandbox','kind':'push'}}", true), ("{'match':{'environment':'production'}}", false),
  ])
  func expectationsNameTheDelivery(expectation: String, isPassed: Bool) async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push { $0.delivery = .storedOffline })
    let report = try await Fixture.report("{'expect':[\(expectation)]}", in: inbox)
    #expect(report.isPassed == isPassed, "\(report.text)")
  }

  @Test func nearMissesShowTheDelivery() async throws {
    let inbox = Inbox()
    inbox.append(Fixture.push { $0.delivery = .storedOffline })
    let report = try await Fixture.report(
      "{'expect':[{'name':'x','match':{'topic':'com.acme.app'},'delivery':'Delivered to Device'}]}", in: inbox)
    #expect(
      report.text.hasPrefix(
        """
        ✗ x: expected at least 1 delivery Delivered to Device, found 0
          nearest: seq 1, 1 of 2 criteria, apns-id 9D3220FE-444B-633E-D1F1-5D0DCB4F537A
            topic     ✓ com.acme.app
            delivery  ✗ wanted Delivered to Device, found Stored - Device Offline
        """), "\(report.text)")
  }

  @Test func aVerificationSeesAChangedDelivery() async throws {
    let inbox = Inbox()
    let seq = inbox.append(Fixture.push { $0.delivery = .storedOffline })
    let task = try await VerificationWaitTests.begin(
      """
      {'expect':[{'name':'a','delivery':'delivered*','retries':{'max':0}},\
      {'name':'b','match':'delivery:stored*','count':0}],'timeout':'1m','settle':'20ms'}
      """, in: inbox)
    inbox.setDeliveries([(seq, .deliveredFromStorage)])
    let report = try #require(await task.value)
    #expect(report.isPassed, "\(report.text)")
  }
}
