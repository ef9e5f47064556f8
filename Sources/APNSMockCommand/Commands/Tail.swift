import ArgumentParser
import Notation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock tail`
struct Tail: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail", abstract: "Show pushes as they come, until the server stops.",
    discussion: """
      A line each, its columns separated by tabs, or with --json its record. A push that is held comes again when it \
      has ended. With --all, what happens to connections, rules, profile and inbox comes as well. A lost connection is \
      made again, and nothing is missed that the server still knows; the exit code is 4 when it stays away.
      """)

  @OptionGroup var filter: FilterArguments

  @Flag(name: .long, help: "Show all events, each a line: its name and a JSON object.")
  var all = false

  @Option(name: .long, help: "How long to try again after the connection was lost.")
  var retry = "30s"

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  /// How long the first pause between two tries is, and the longest; each is twice as long as the one before.
  private static let pauses = (first: Duration.milliseconds(100), longest: Duration.seconds(2))

  func validate() throws {
    guard let patience = WrittenDuration.duration(retry), patience >= .zero else {
      throw ValidationError("--retry: \"\(retry)\" is no duration: give one such as 500ms, 30s or 2m")
    }
  }

  func run() async throws {
    let patience = WrittenDuration.duration(retry) ?? .zero
    var text = EventStreamText()
    var pause = Self.pauses.first
    var givesUpAt: ContinuousClock.Instant?
    while true {
      do {
        let isOver = try await follow(&text) {
          if givesUpAt != nil { StandardStream.error.line("connected again") }
          givesUpAt = nil
          pause = Self.pauses.first
        }
        if isOver { return }
      } catch let failure as CommandFailure where failure.status == .unreachable && text.lastID != nil {
        let now = ContinuousClock.now
        if givesUpAt == nil {
          StandardStream.error.line("\(failure.description); trying again for \(retry)")
        }
        let end = givesUpAt ?? now + patience
        guard now < end else { throw failure }
        givesUpAt = end
        try await Task.sleep(until: min(now + pause, end), clock: .continuous)
        pause = min(pause * 2, Self.pauses.longest)
      }
    }
  }

  /// Follows until the stream ends.
  ///
  /// - Parameter begins: is called when the server has begun to answer.
  /// - Returns: whether that is the end: the server has said so, or nobody reads what is shown.
  /// - Throws: `CommandFailure`, with status `unreachable` if the connection does not come about or is lost.
  private func follow(_ text: inout EventStreamText, begins: () -> Void) async throws -> Bool {
    // Found anew each time: a server that was started again has other ports in its port file.
    let client = try RunningServer(server, environment: Environment.variables).client
    let place = text.lastID.map { [("last_event_id", $0)] } ?? []
    text.beginAnew()
    var hasBegun = false
    var isOver = false
    let isWhole = try await client.stream("/api/v1/events?\(filter.query(and: place))") { bytes in
      if !hasBegun { begins() }
      hasBegun = true
      for event in text.take(bytes) {
        if event.name == "end" { isOver = true }
        guard show(event) else { return false }
      }
      return true
    }
    if isOver { StandardStream.error.line("the server stops") }
    if isWhole, !isOver { throw client.unreachable("the stream of events ended") }
    return true
  }

  /// - Returns: whether somebody reads it.
  private func show(_ event: EventStreamText.Event) -> Bool {
    let isPush = event.name.hasPrefix("push")
    if event.name == "gap" {
      StandardStream.error.line("some pushes are missing here; apns-mock ls shows what is in the inbox")
    }
    if all { return StandardStream.output.write(Array("\(event.name)\t".utf8) + event.data + [UInt8(ascii: "\n")]) }
    guard isPush else { return true }
    if output.json { return StandardStream.output.write(event.data + [UInt8(ascii: "\n")]) }
    guard let push = try? JSONDecoder().decode(PushPage.Push.self, from: Data(event.data)) else { return true }
    return StandardStream.output.write(Array(PushTable([push]).lines.utf8))
  }
}
