import ArgumentParser

/// `apns-mock device start-activity`
struct DeviceStartActivity: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "start-activity", abstract: "Start a Live Activity, as the app does, and print its device token.",
    discussion: """
      A push with the event start to the app's push-to-start token (device install --push-type liveactivity_start) also starts \
      one; device notifications --follow --event activity.started prints its token.
      """)

  @OptionGroup var app: InstallationArguments
  @OptionGroup var flags: AdminFlags

  func run() async throws {
    try flags.printTokens(try await flags.perform("start-activity", on: app.id) { app.write(to: &$0) })
  }
}

/// `apns-mock device rotate-activity-token`
struct DeviceRotateActivityToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate-activity-token",
    abstract: "Give a Live Activity a new device token and print it; pushes to the former one are rejected with 410.")

  @Argument(help: "The device token of the Live Activity.")
  var token: String

  @OptionGroup var flags: AdminFlags

  func run() async throws { try flags.printTokens(try await flags.perform("rotate-activity-token", on: token)) }
}

/// `apns-mock device end-activity`
struct DeviceEndActivity: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "end-activity",
    abstract: "End a Live Activity: pushes to its token are rejected with 410 ExpiredToken.")

  @Argument(help: "The device token of the Live Activity.")
  var token: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.perform("end-activity", on: token)
    flags.print(response, text: "\(token) expired".onOneLine)
  }
}
