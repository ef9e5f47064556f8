import ArgumentParser
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock tail`
struct TailCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail", abstract: "Print pushes as they arrive, until the server stops.",
    discussion: """
      Prints one line per push: columns separated by tabs, or with --json the record. A delayed push is printed again \
      when it completes. --all also prints events of connections, rules, profile and inbox. After a connection loss, the \
      command reconnects and prints missed pushes that are still in the inbox; the exit code is 4 if it cannot reconnect.
      """)

  @OptionGroup var filter: FilterArguments

  @Flag(name: .long, help: "Print all events, one per line: the name and a JSON object.")
  var all = false

  @Option(name: .long, help: .value("duration", "How long to try to reconnect after a connection loss."))
  var retry = "30s"

  @OptionGroup var flags: AdminFlags

  /// The first and the longest pause between two attempts to connect; each pause is twice as long as the previous one.
  private static let pauses = (first: Duration.milliseconds(100), longest: Duration.seconds(2))

  func validate() throws {
    try DurationArgument.check(retry, flag: "--retry", allowsZero: true)
  }

  func run() async throws {
    let timeLimit = DurationFormat.duration(retry) ?? .zero
    var parser = EventStreamParser()
    var pause = Self.pauses.first
    var givesUpAt: ContinuousClock.Instant?
    while true {
      do {
        let isOver = try await printEvents(&parser) {
          if givesUpAt != nil { StandardStream.error.line("reconnected") }
          givesUpAt = nil
          pause = Self.pauses.first
        }
        if isOver { return }
      } catch let failure as CommandFailure where failure.status == .unreachable && parser.lastID != nil {
        let now = ContinuousClock.now
        if givesUpAt == nil {
          StandardStream.error.line("\(failure.description); trying to reconnect for \(retry)")
        }
        let end = givesUpAt ?? now + timeLimit
        guard now < end else { throw failure }
        givesUpAt = end
        try await Task.sleep(until: min(now + pause, end), clock: .continuous)
        pause = min(pause * 2, Self.pauses.longest)
      }
    }
  }

  /// Prints events until the stream ends.
  ///
  /// - Parameter begins: Called when the first part of the response arrives.
  /// - Returns: Whether the command is finished: the server is stopping, or standard output has no reader.
  /// - Throws: `CommandFailure`, with status `unreachable` if the connection fails or is lost.
  private func printEvents(_ parser: inout EventStreamParser, begins: () -> Void) async throws -> Bool {
    // Looked up each time: a restarted server has other ports in its port file.
    let client = try flags.client()
    let position = parser.lastID.map { [("last_event_id", $0)] } ?? []
    parser.restart()
    var hasBegun = false
    var isOver = false
    let isWhole = try await client.stream("/api/v1/events?\(filter.query(and: position))") { bytes in
      if !hasBegun { begins() }
      hasBegun = true
      for event in parser.parse(bytes) {
        if event.name == "end" { isOver = true }
        guard print(event) else { return false }
      }
      return true
    }
    if isOver { StandardStream.error.line("the server is stopping") }
    if isWhole, !isOver { throw client.unreachable("the stream of events ended") }
    return true
  }

  /// Prints an event.
  ///
  /// - Returns: Whether standard output still has a reader.
  private func print(_ event: EventStreamParser.Event) -> Bool {
    let isPush = event.name.hasPrefix("push")
    if event.name == "gap" {
      StandardStream.error.line("some pushes were missed; to list the inbox: apns-mock ls")
    }
    if all { return StandardStream.output.write(Array("\(event.name)\t".utf8) + event.data + [UInt8(ascii: "\n")]) }
    guard isPush else { return true }
    if flags.output.json { return StandardStream.output.write(event.data + [UInt8(ascii: "\n")]) }
    guard let push = try? JSONDecoder.adminAPI.decode(Push.self, from: Data(event.data)) else { return true }
    return StandardStream.output.write(Array(Push.table([push]).lines.utf8))
  }
}

/// A parser of event streams (HTML Standard, section 9.2).
struct EventStreamParser {
  /// One event.
  struct Event: Equatable {
    /// The event's type.
    var name = "message"
    /// The event's data.
    var data: [UInt8] = []
  }

  /// The id of the last complete event, which identifies the position to resume at.
  private(set) var lastID: String?

  private var line: [UInt8] = []
  private var event = Event()
  private var hasData = false
  private var id: String?

  /// Prepares for a new stream that continues after the last complete event; discards a partial event.
  mutating func restart() {
    let lastID = lastID
    self = EventStreamParser()
    self.lastID = lastID
  }

  /// Parses the next bytes and returns the events they complete.
  mutating func parse(_ bytes: [UInt8]) -> [Event] {
    var events: [Event] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      if line.isEmpty {
        if hasData { events.append(event) }
        lastID = id ?? lastID
        id = nil
        event = Event()
        hasData = false
      } else {
        parseLine()
      }
      line.removeAll(keepingCapacity: true)
    }
    return events
  }

  private mutating func parseLine() {
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[min(colon + 1, line.endIndex)...]
    if value.first == UInt8(ascii: " ") { value.removeFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "id": id = String(decoding: value, as: UTF8.self)
    case "event": event.name = String(decoding: value, as: UTF8.self)
    case "data":
      if hasData { event.data.append(UInt8(ascii: "\n")) }
      event.data += value
      hasData = true
    default: break
    }
  }
}
