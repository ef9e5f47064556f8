import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock healthcheck`
struct HealthcheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "healthcheck", abstract: "Check whether a server is ready.",
    discussion: "Exit code 0 if it is ready, 4 if it is not ready or unreachable, 3 if --wait timed out.")

  @Flag(name: .long, help: "Wait until the server is ready.")
  var wait = false

  @Flag(name: .long, help: "Check whether the server runs, which a standby does without being ready.")
  var live = false

  @Option(name: .long, help: .value("duration", "The time limit for --wait, or without it for the response."))
  var timeout = "30s"

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    try DurationArgument.check(timeout, flag: "--timeout")
  }

  func run() async throws {
    let timeLimit = DurationFormat.duration(timeout) ?? .seconds(30)
    let clock = ContinuousClock()
    let end = clock.now + timeLimit
    while true {
      do {
        try await checkReadiness(timeout: wait ? min(.seconds(1), timeLimit) : timeLimit)
        let state = live ? "live" : "ready"
        return output.print(text: state) { $0.member(state, true) }
      } catch let failure as CommandFailure where failure.status == .unreachable && wait {
        guard clock.now + Self.pause < end else {
          throw CommandFailure(.timedOut, "not ready after \(timeout): \(failure)")
        }
        try await clock.sleep(for: Self.pause)
      }
    }
  }

  private static let pause = Duration.milliseconds(50)

  /// Returns if the server is ready. Looks the server up again each time, because the port file may not exist yet.
  private func checkReadiness(timeout: Duration) async throws {
    var client = try server.client()
    client.timeout = timeout
    let status = try await client.request(.get, live ? "/livez" : "/readyz").status
    guard status == 200 else {
      throw CommandFailure(.unreachable, "the server on \(client.endpoint) is not ready (status \(status))")
    }
  }
}
