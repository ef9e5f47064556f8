import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock clock`
struct Clock: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clock",
    abstract: "Show or move the server's clock, which rules the age of tokens and every time APNs dates.",
    subcommands: [ClockShow.self, ClockFreeze.self, ClockAdvance.self, ClockReal.self],
    defaultSubcommand: ClockShow.self)

  /// What the server says of its clock.
  struct State: Decodable {
    var mode: String
    var now: String
  }
}

/// What the clock commands have in common: each asks the server one thing and prints what the clock then shows.
struct ClockFlags: ParsableArguments {
  @OptionGroup var flags: AdminFlags

  func ask(_ method: HTTPMethod, _ path: String, _ body: [UInt8]? = nil) async throws {
    let state = try await flags.ask(method, path, body: body).decoded(Clock.State.self)
    flags.output.print(text: "\(state.now) \(state.mode)") { writer in
      writer.member("mode", state.mode)
      writer.member("now", state.now)
    }
  }

  /// A JSON object of texts.
  static func body(_ members: KeyValuePairs<String, String>) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { writer in
      for (name, value) in members { writer.member(name, value) }
    }
    return writer.bytes
  }
}

/// `apns-mock clock show`
struct ClockShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show what the server's clock says.")

  @OptionGroup var flags: ClockFlags

  func run() async throws { try await flags.ask(.GET, "/clock") }
}

/// `apns-mock clock freeze`
struct ClockFreeze: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "freeze", abstract: "Stop the server's clock, at the present or at a time.")

  @Argument(help: "A time such as 2026-01-31T12:00:00Z (RFC 3339). (default: what the clock shows)")
  var time: String?

  @OptionGroup var flags: ClockFlags

  func validate() throws {
    if let time, WrittenTime.milliseconds(time) == nil {
      throw ValidationError("\"\(time)\" is no time: give one such as 2026-01-31T12:00:00Z (RFC 3339)")
    }
  }

  func run() async throws {
    let body = time.map { ClockFlags.body(["mode": "frozen", "now": $0]) } ?? ClockFlags.body(["mode": "frozen"])
    try await flags.ask(.PUT, "/clock", body)
  }
}

/// `apns-mock clock advance`
struct ClockAdvance: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "advance", abstract: "Move the server's clock forward, or back by a negative duration.",
    usage: "apns-mock clock advance <duration> [<options>]")

  // An array, because a single argument cannot begin with a dash, as `-5m` does.
  @Argument(
    parsing: .allUnrecognized, help: ArgumentHelp("How far: 90s, 20m, 1h30m or -5m.", valueName: "duration"))
  var words: [String]

  // A terminator is among the unrecognized words.
  private var durations: [String] { words.filter { $0 != "--" } }

  @OptionGroup var flags: ClockFlags

  func validate() throws {
    if let word = durations.first(where: { WrittenDuration.duration($0) == nil }) {
      throw ValidationError("\"\(word)\" is not a duration: give one such as 90s, 20m, 1h30m or -5m")
    }
    guard durations.count == 1 else { throw ValidationError("give one duration, not \(durations.count)") }
  }

  func run() async throws { try await flags.ask(.POST, "/clock/advance", ClockFlags.body(["by": durations[0]])) }
}

/// `apns-mock clock real`
struct ClockReal: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "real", abstract: "Let the server's clock show the machine's time again.")

  @OptionGroup var flags: ClockFlags

  func run() async throws { try await flags.ask(.PUT, "/clock", ClockFlags.body(["mode": "real"])) }
}
