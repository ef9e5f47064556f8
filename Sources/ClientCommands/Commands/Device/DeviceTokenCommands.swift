import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock device register`
struct DeviceRegister: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "register", abstract: "Register a device token: pushes to it are accepted.",
    discussion: """
      Pushes with another topic are rejected with 400 DeviceTokenNotForTopic, pushes in the other environment with 400 \
      BadDeviceToken. A token that belongs to a device keeps its topic and environment.
      """)

  @Argument(help: "The device token in hexadecimal.")
  var token: String

  @Option(name: .long, help: .value("topic", "The exact apns-topic of the token. (default: any)"))
  var topic: String?

  @Option(name: .long, help: .value("environment", "sandbox or production. (default: both)"), completion: .environment)
  var environment: String?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    try await flags.setToken(token, state: "online") { writer in
      if let topic { writer.member("topic", topic) }
      if let environment { writer.member("environment", environment) }
    }
  }
}

/// `apns-mock device unregister`
struct DeviceUnregister: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unregister", abstract: "Unregister a device token: pushes to it are rejected with 410 Unregistered.",
    discussion: "A token that is registered keeps its topic and environment.")

  @Argument(help: "The device token in hexadecimal.")
  var token: String

  @Option(
    name: .long, parsing: .unconditional,
    help: .value(
      "time", "The timestamp of the 410, such as 2026-01-31T12:00:00Z, or -2h. (default: now, by the server's clock)"))
  var since: String?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let time = try await flags.time(since, of: "--since")
    let known = try await flags.request(.get, "/devices/\(token.percentEncoded)")
    let former = known.status == 200 ? try known.decoded(Registration.self) : Registration()
    try await flags.setToken(token, state: "unregistered") { writer in
      if let topic = former.topic { writer.member("topic", topic) }
      if let environment = former.environment { writer.member("environment", environment) }
      if let time { writer.member("since", TimeArgument.text(time)) }
    }
  }

  /// The properties of a registered token that stay.
  private struct Registration: Decodable {
    var topic: String?
    var environment: String?
  }
}

extension AdminFlags {
  /// Returns a time in milliseconds since 1970; a duration is from now by the server's clock. Nil if there is no text.
  ///
  /// - Parameter flag: The flag for errors.
  /// - Throws: `CommandFailure` for a text that is not a time.
  fileprivate func time(_ text: String?, of flag: String) async throws -> Int64? {
    guard let text else { return nil }
    let clock = try await request(.get, "/clock").decoded(ClockState.self)
    guard let now = TimestampFormat.milliseconds(clock.now), let time = TimeArgument.milliseconds(text, now: now) else {
      throw CommandFailure(.usage, "\(flag): \"\(text)\" is not a time: \(TimeArgument.allowed)")
    }
    return time
  }

  /// Sets the state of a device token and prints it.
  ///
  /// - Parameter members: Writes further members of the request's body.
  /// - Throws: `CommandFailure`, also if the server rejects the request.
  fileprivate func setToken(
    _ token: String, state: String, _ members: (inout JSONWriter) -> Void
  ) async throws {
    let body = JSONWriter.object { writer in
      writer.member("state", state)
      members(&writer)
    }
    let response = try await request(.put, "/devices/\(token.percentEncoded)", body: body)
    let set = try response.decoded(TokenState.self)
    print(response, text: "\(set.token): \(set.state) since \(set.since)".onOneLine)
  }
}

private struct TokenState: Decodable {
  var token: String
  var state: String
  var since: String
}
