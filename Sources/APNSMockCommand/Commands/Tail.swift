import ArgumentParser

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `apns-mock tail`
struct Tail: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show pushes as they come, until the server stops.",
    discussion: """
      A line each, its columns separated by tabs, or with --json its record. A push that is held comes again when it \
      has ended. With --all, what happens to connections, rules, profile and inbox comes as well.
      """)

  @OptionGroup var filter: FilterArguments

  @Flag(name: .long, help: "Show all events, each a line: its name and a JSON object.")
  var all = false

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    var text = EventStreamText()
    let isOver = try await client.stream("/api/v1/events?\(filter.query())") { bytes in
      for event in text.take(bytes) where !show(event) { return false }
      return true
    }
    if isOver { StandardStream.error.line("the server stops") }
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
