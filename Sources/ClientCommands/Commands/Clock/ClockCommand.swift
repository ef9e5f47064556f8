import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock clock`
struct ClockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clock",
    abstract: "Show or change the server's clock, which determines the age of tokens and all timestamps of APNs.",
    subcommands: [ClockShow.self, ClockFreeze.self, ClockAdvance.self, ClockReal.self],
    defaultSubcommand: ClockShow.self)
}

/// The options of the clock commands. Each command sends one request and prints the resulting state of the clock.
struct ClockFlags: ParsableArguments {
  @OptionGroup var flags: AdminFlags

  func send(_ method: HTTPRequest.Method, _ path: String, _ body: [UInt8]? = nil) async throws {
    let state = try await flags.request(method, path, body: body).decoded(ClockState.self)
    flags.output.print(text: "\(state.now) \(state.mode)") { writer in
      writer.member("mode", state.mode)
      writer.member("now", state.now)
      writer.member("offset_ms", state.offsetMs)
      writer.member("rejects_new_tokens", state.rejectsNewTokens)
    }
    guard state.rejectsNewTokens, !flags.output.json else { return }
    StandardStream.error.line(
      "a provider token signed now gets 403 ExpiredProviderToken, until apns-mock clock real; to test the renewal of "
        + "tokens without moving the clock: apns-mock profile use expired-jwt-403")
  }

  /// Returns a JSON object with string members.
  static func body(_ members: KeyValuePairs<String, String>) -> [UInt8] {
    JSONWriter.object { writer in
      for (name, value) in members { writer.member(name, value) }
    }
  }
}

/// `apns-mock clock show`
struct ClockShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the time and mode of the server's clock.")

  @OptionGroup var flags: ClockFlags

  func run() async throws { try await flags.send(.get, "/clock") }
}

/// `apns-mock clock freeze`
struct ClockFreeze: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "freeze", abstract: "Stop the server's clock at its current time or a given one.")

  @Argument(help: "A time such as 2026-01-31T12:00:00Z (RFC 3339). (default: the clock's current time)")
  var time: String?

  @OptionGroup var flags: ClockFlags

  func validate() throws {
    if let time, TimestampFormat.milliseconds(time) == nil {
      throw ValidationError("\"\(time)\" is not a time such as 2026-01-31T12:00:00Z (RFC 3339)")
    }
  }

  func run() async throws {
    let body = time.map { ClockFlags.body(["mode": "frozen", "now": $0]) } ?? ClockFlags.body(["mode": "frozen"])
    try await flags.send(.put, "/clock", body)
  }
}

/// `apns-mock clock advance`
struct ClockAdvance: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "advance", abstract: "Advance the server's clock; a negative duration sets it back.",
    usage: "apns-mock clock advance <duration> [<options>]",
    discussion: """
      After more than an hour, a provider that signs a new token gets 403 ExpiredProviderToken, until apns-mock clock \
      real. To test that it renews its token: apns-mock profile use expired-jwt-403
      """)

  // An array, because the parser does not accept a single argument that begins with a dash, such as `-5m`.
  @Argument(
    parsing: .allUnrecognized, help: ArgumentHelp("A duration such as 90s, 20m, 1h30m or -5m.", valueName: "duration"))
  var arguments: [String]

  // The unrecognized arguments include a terminator.
  private var durations: [String] { arguments.filter { $0 != "--" } }

  @OptionGroup var flags: ClockFlags

  func validate() throws {
    if let invalid = durations.first(where: { DurationFormat.duration($0) == nil }) {
      throw ValidationError("\"\(invalid)\" is not a duration such as 90s, 20m, 1h30m or -5m")
    }
    guard durations.count == 1 else { throw ValidationError("Specify one duration, not \(durations.count)") }
  }

  func run() async throws { try await flags.send(.post, "/clock/advance", ClockFlags.body(["by": durations[0]])) }
}

/// `apns-mock clock real`
struct ClockReal: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "real", abstract: "Set the server's clock to the machine's time.")

  @OptionGroup var flags: ClockFlags

  func run() async throws { try await flags.send(.put, "/clock", ClockFlags.body(["mode": "real"])) }
}
