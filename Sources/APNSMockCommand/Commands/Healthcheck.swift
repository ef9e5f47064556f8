import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock healthcheck`
struct Healthcheck: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "healthcheck", abstract: "Check whether a server is ready.",
    discussion: "Exit code 0 if it is ready, 4 if it is not ready or unreachable, 3 if --wait timed out.")

  @Flag(name: .long, help: "Wait until the server is ready.")
  var wait = false

  @Option(name: .long, help: "The time limit for --wait, or without it for the response.")
  var timeout = "30s"

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard let duration = WrittenDuration.duration(timeout), duration > .zero else {
      throw ValidationError("--timeout: \"\(timeout)\" is not a duration such as 500ms, 30s or 2m")
    }
  }

  func run() async throws {
    let patience = WrittenDuration.duration(timeout) ?? .seconds(30)
    let clock = ContinuousClock()
    let end = clock.now + patience
    while true {
      do {
        try await ask(patience: wait ? min(.seconds(1), patience) : patience)
        return output.print(text: "ready") { $0.member("ready", true) }
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
  private func ask(patience: Duration) async throws {
    var client = try RunningServer(server, environment: Environment.variables).client
    client.timeout = patience
    let status = try await client.request(.GET, "/readyz").status
    guard status == 200 else {
      throw CommandFailure(.unreachable, "the server on \(client.endpoint) is not ready (status \(status))")
    }
  }
}
