import ArgumentParser
import APNSMockInbox
import HTTPTypes

/// `apns-mock wait`
struct WaitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wait", abstract: "Wait for a number of pushes.",
    discussion: """
      Prints the pushes as ls does, or with --json the server's response. Exit code 0 if the pushes arrived, 3 if too few \
      or too many did, 5 if the result is unknown because pushes were evicted.
      """)

  @OptionGroup var filter: FilterArguments

  @Option(
    name: .long, help: .value("number", "The number of pushes: 3 for three or more, ==3 for exactly three, 0 for none.")
  )
  var count = "1"

  @Option(name: .long, help: .value("duration", "The time limit, up to 5m. (default: 10s)"))
  var timeout: String?

  @Option(name: .long, help: .value("duration", "How long the number must stay unchanged. (default: 0s)"))
  var settle: String?

  @Option(name: .long, help: .value("seq", "Only pushes after this seq. (default: all since the last reset)"))
  var after: PushArgument?

  @OptionGroup var scope: ScopeFlag
  @OptionGroup var flags: AdminFlags

  private struct Response: Decodable {
    var satisfied: Bool
    var items: [Push]
    var message: String
    var text: String
    var complete: Bool
  }

  func validate() throws {
    for (flag, text) in [("--timeout", timeout), ("--settle", settle)] {
      try DurationArgument.check(text, flag: flag, allowsZero: true, limit: WaitQuery.maxTimeout)
    }
  }

  func run() async throws {
    var client = try flags.client()
    client.timeout += WaitQuery.maxTimeout
    // `--count ==3` and `--count==3` both mean count==3.
    var query = [("count", count.hasPrefix("==") ? String(count.dropFirst()) : count)]
    if let timeout { query.append(("timeout", timeout)) }
    if let settle { query.append(("settle", settle)) }
    if let after { query.append(("after", after.name.description)) }
    let response = try await client.request(.get, "/api/v1/pushes/wait?\(filter.query(and: query + scope.parameters))")
    if response.isOfStoppingServer {
      throw CommandFailure(.unreachable, "the server on \(client.endpoint) stopped during the wait")
    }
    let result = try response.decoded(Response.self)
    flags.output.print(Push.table(result.items), objects: [response.body])
    guard result.satisfied else {
      throw CommandFailure(result.complete ? .timedOut : .inconclusive, result.text)
    }
    StandardStream.error.line(result.message)
  }
}
