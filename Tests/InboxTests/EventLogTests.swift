import Foundation
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// The event stream: order, filters, resuming, and gaps for slow readers.
@Suite(.timeLimit(.minutes(5))) struct EventLogTests {
  /// A reader that keeps the events it read, and describes each by its kind and its `seq` or JSON.
  private struct Subscriber {
    let reader: EventReader
    var position: Int
    var received: [EventReader.SerializedEvent] = []

    init?(_ log: EventLog, after lastID: Int? = nil) {
      guard let reader = log.addReader(after: lastID) else { return nil }
      self.reader = reader
      position = reader.start
    }

    /// Reads all available events.
    mutating func read(_ selection: Selection = Selection()) {
      while let events = reader.read(after: &position, selection, rulebook: PushFixture.rulebook) { received += events }
    }

    /// Reads until `count` events have been received.
    mutating func read(until count: Int, _ selection: Selection = Selection()) async {
      for await _ in reader.signals {
        read(selection)
        if received.count >= count { return }
      }
    }

    var lines: [String] {
      received.map { event in
        let object = (try? JSONSerialization.jsonObject(with: Data(event.data))) as? [String: Any] ?? [:]
        let detail = object["seq"] ?? object["name"] ?? object["missed"] ?? ""
        return "\(event.name) \(detail is NSNull ? "" : detail)".trimmingCharacters(in: .whitespaces)
      }
    }
  }

  private static func record(_ log: EventLog, _ name: String) {
    log.append(.rule) { $0.member("name", name) }
  }

  @Test func eventsAreInOrder() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    inbox.append(WaitingTests.record())
    Self.record(log, "before")
    var subscriber = try #require(Subscriber(log))
    inbox.append(WaitingTests.record())
    Self.record(log, "one")
    await subscriber.read(until: 2)
    let held = inbox.append(WaitingTests.record(outcome: .pending))
    await subscriber.read(until: 3)
    inbox.finish(held, with: WaitingTests.end(.accepted))
    await subscriber.read(until: 4)
    inbox.removeAll()
    inbox.append(WaitingTests.record())
    await subscriber.read(until: 6)
    #expect(subscriber.lines == ["push 2", "rule one", "push 3", "push.updated 3", "reset", "push 4"])
    let ids = subscriber.received.map(\.id)
    #expect(ids == Array(ids[0]..<ids[0] + 6))
  }

  /// A push is passed on once, when it has ended; what a slow reader cannot keep up with is counted.
  @Test func pushesArePassedOnWhenTheyHaveEnded() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox, limits: EventLog.Limits(events: 3))
    let reader = try #require(log.addReader())
    inbox.append(WaitingTests.record())
    let held = inbox.append(WaitingTests.record(outcome: .pending))
    var ended: [Int] = []
    var missed = 0
    await reader.forEachEndedPush(missed: { missed += $0 }) { record in
      ended.append(record.seq)
      switch record.seq {
      case 1: inbox.finish(held, with: WaitingTests.end(.accepted))
      case 2:
        // The reader is slow while ten pushes arrive, of which the log keeps three.
        for _ in 0..<10 { inbox.append(WaitingTests.record()) }
        await reader.finish()
      default: break
      }
    }
    #expect(ended == [1, 2, 10, 11, 12])
    #expect(missed == 7)
  }

  @Test func filtersApplyToPushesOnly() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    var subscriber = try #require(Subscriber(log))
    let selection = try Selection(FilterTests.parameters("topic=a&status=200"))
    for topic in ["a", "b", "a"] { inbox.append(WaitingTests.record(topic)) }
    let held = inbox.append(WaitingTests.record("a", outcome: .pending))
    inbox.finish(held, with: WaitingTests.end(.accepted))
    Self.record(log, "end")
    while subscriber.lines.last != "rule end" { await subscriber.read(until: subscriber.received.count + 1, selection) }
    // The pending push matched only after it had its status; whether it is reported when added or when finished is a
    // race.
    #expect(Array(subscriber.lines.prefix(2)) == ["push 1", "push 3"])
    let held4 = subscriber.lines.dropFirst(2).dropLast()
    #expect(!held4.isEmpty && held4.allSatisfy { ["push 4", "push.updated 4"].contains($0) })
  }

  @Test func resumesAfterAPosition() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    var first: Subscriber? = Subscriber(log)
    inbox.append(WaitingTests.record())
    await first?.read(until: 1)
    let last = try #require(first?.received.last?.id)
    first = nil
    #expect(log.readerCount == 0)
    for _ in 0..<3 { inbox.append(WaitingTests.record()) }
    var second = try #require(Subscriber(log, after: last))
    await second.read(until: 3)
    #expect(second.lines == ["push 2", "push 3", "push 4"])
    #expect(second.received.map(\.id) == [last + 1, last + 2, last + 3])
  }

  @Test(arguments: [-5, 1000, .max, .min])
  func reportsAGapForAnUnknownPosition(position: Int) async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    var other = try #require(Subscriber(log))
    inbox.append(WaitingTests.record())
    await other.read(until: 1)
    var subscriber = try #require(Subscriber(log, after: position))
    await subscriber.read(until: 1)
    #expect(subscriber.lines.first == "gap")
    inbox.append(WaitingTests.record())
    await subscriber.read(until: subscriber.received.count + 1)
    #expect(subscriber.lines.last == "push 2")
    #expect(subscriber.lines.count { $0 == "gap" } == 1)
  }

  /// After a restart of the server, or with several servers behind a load balancer.
  @Test func reportsAGapForAPositionInAnotherLog() async throws {
    let inbox = Inbox()
    let (log, other) = (EventLog(inbox), EventLog(inbox))
    var former = try #require(Subscriber(log))
    var present = try #require(Subscriber(other))
    inbox.append(WaitingTests.record())
    await former.read(until: 1)
    for _ in 0..<5 { inbox.append(WaitingTests.record()) }
    await present.read(until: 6)
    var resumed = try #require(Subscriber(other, after: former.received[0].id))
    await resumed.read(until: 1)
    #expect(resumed.lines.first == "gap")
  }

  @Test func stopsRecordingWithoutReaders() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox, limits: EventLog.Limits(retention: .milliseconds(1)))
    var first: Subscriber? = Subscriber(log)
    inbox.append(WaitingTests.record())
    await first?.read(until: 1)
    let last = try #require(first?.received.last?.id)
    first = nil
    try await eventually("the log stops listening") { inbox.notifier.listenerCount == 0 }
    inbox.append(WaitingTests.record())
    var second = try #require(Subscriber(log, after: last))
    await second.read(until: 1)
    inbox.append(WaitingTests.record())
    await second.read(until: 2)
    #expect(second.lines == ["gap", "push 3"])
  }

  @Test func slowReaderGetsAGapInsteadOfABacklog() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox, limits: EventLog.Limits(events: 10))
    var slow = try #require(Subscriber(log))
    var quick = try #require(Subscriber(log))
    for number in 1...100 {
      inbox.append(WaitingTests.record())
      await quick.read(until: number)
    }
    #expect(quick.lines == (1...100).map { "push \($0)" })
    slow.read()
    #expect(slow.lines == ["gap"] + (91...100).map { "push \($0)" })
    // After the id of the gap, all events are available.
    var again = try #require(Subscriber(log, after: slow.received[0].id))
    again.read()
    #expect(again.lines == (91...100).map { "push \($0)" })
  }

  @Test func largePushesCountByTheirSize() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox, limits: EventLog.Limits(bytes: 20_000))
    var slow = try #require(Subscriber(log))
    var quick = try #require(Subscriber(log))
    for number in 1...20 {
      inbox.append(PushFixture { $0.body = Array(repeating: 0x20, count: 4000) }.record)
      await quick.read(until: number)
    }
    slow.read()
    #expect(slow.lines.first == "gap")
    #expect(slow.lines.last == "push 20")
    #expect(slow.lines.count <= 6)
  }

  @Test func recordsEvictedBeforeReadingAreAGap() async throws {
    let inbox = Inbox(maxRecords: 2)
    let log = EventLog(inbox)
    var subscriber = try #require(Subscriber(log))
    var batch = (0..<10).map { _ in WaitingTests.record() }
    inbox.append(&batch)
    await subscriber.read(until: 3)
    #expect(subscriber.lines == ["gap 8", "push 9", "push 10"])
  }

  /// Server events beyond the limit of a round are a gap, also if no push arrived with them.
  @Test func droppedServerEventsAreAGap() throws {
    let log = EventLog(Inbox())
    var subscriber = try #require(Subscriber(log))
    var changes = InboxChanges()
    changes.serverEvents = [ServerEvent(kind: .rule, json: Array(#"{"name":"a"}"#.utf8))]
    changes.droppedEvents = 900
    log.inboxDidChange(changes)
    subscriber.read(Selection())
    #expect(subscriber.lines == ["rule a", "gap 900"])
  }

  @Test func manyReadersAndWritersAtOnce() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox, limits: EventLog.Limits(events: 100_000))
    let (writers, each) = (4, 75)
    let all = (1...writers * each).map { "push \($0)" }
    await withTaskGroup { group in
      for _ in 0..<16 {
        guard var subscriber = Subscriber(log) else { continue }
        group.addTask {
          await subscriber.read(until: all.count)
          #expect(subscriber.lines == all)
        }
      }
      for _ in 0..<writers {
        group.addTask { for _ in 0..<each { inbox.append(WaitingTests.record()) } }
      }
    }
    #expect(log.readerCount == 0)
  }

  @Test func stoppingTheServerEndsTheStream() async throws {
    let inbox = Inbox()
    let log = EventLog(inbox)
    let reader = try #require(log.addReader())
    inbox.endWaiting()
    for await _ in reader.signals {}
    #expect(log.addReader() == nil)
  }

  @Test func recordsNothingWithoutReaders() {
    let log = EventLog(Inbox())
    log.append(.rule) { _ in Issue.record("recorded without readers") }
  }
}

/// The inbox exported as text.
@Suite struct InboxExportTests {
  private static func text(_ inbox: Inbox, _ selection: Selection, _ format: InboxExport.Format) -> String {
    var export = InboxExport(inbox.snapshot(), selection, as: format, rulebook: PushFixture.rulebook)
    var text: [UInt8] = []
    while let piece = try? export.next() { text += piece }
    return String(decoding: text, as: UTF8.self)
  }

  @Test(arguments: [0, 1, 255, 256, 257, 600])
  func exportWritesEachRecordOnce(count: Int) throws {
    let inbox = Inbox()
    for _ in 0..<count { inbox.append(WaitingTests.record()) }
    let lines = Self.text(inbox, Selection(), .lines).split(separator: "\n")
    #expect(lines.count == count)
    let array = try JSONSerialization.jsonObject(with: Data(Self.text(inbox, Selection(), .array).utf8))
    let seqs = (array as? [[String: Any]])?.map { $0["seq"] as? Int }
    #expect(seqs == (0..<count).map { $0 + 1 })
    for (index, line) in lines.enumerated() {
      #expect(line.hasPrefix("{\"seq\":\(index + 1),"))
    }
  }

  @Test(arguments: [
    ("topic=b", [2, 4]), ("after=3", [4, 5]), ("before=3", [1, 2]), ("after=1&before=4", [2, 3]), ("topic=x", []),
    ("after=5", []), ("after=9223372036854775807", []), ("before=0", []), ("after=4&before=2", []),
  ])
  func exportWritesSelectedRecords(query: String, seqs: [Int]) throws {
    let inbox = Inbox()
    for number in 1...5 { inbox.append(WaitingTests.record(number % 2 == 0 ? "b" : "a")) }
    let text = Self.text(inbox, try Selection(FilterTests.parameters(query)), .lines)
    let found = text.split(separator: "\n").map { Int($0.dropFirst(7).prefix { $0.isNumber }) }
    #expect(found == seqs)
  }

  @Test func skipsEvictedRecords() throws {
    let inbox = Inbox(maxRecords: 3)
    let record = WaitingTests.record()
    for _ in 0..<50_000 { inbox.append(record) }
    var walk = InboxIterator(inbox.snapshot(), Selection())
    #expect(try walk.next()?.map(\.seq) == [49_998, 49_999, 50_000])
    #expect(try walk.next()?.count == nil)
  }
}
