import ArgumentParser
import Inbox
import NIOHTTP1
import Notation

/// `apns-mock wait`
struct Wait: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wait", abstract: "Wait until so many pushes are there.",
    discussion: """
      Prints them as ls does, or with --json the server's answer. Exit code 0 if they are there, 3 if they did not come \
      or too many did, 5 if pushes were dropped before they could be looked at, so that nobody knows.
      """)

  @OptionGroup var filter: FilterArguments

  @Option(name: .long, help: "How many: 3 for three or more, ==3 for three and no more, 0 for none.")
  var count = "1"

  @Option(name: .long, help: "How long to wait at most, up to 5m. (default: 10s)")
  var timeout: String?

  @Option(name: .long, help: "How long the number must stay the same before it counts. (default: 0s)")
  var settle: String?

  @Option(name: .long, help: "Only pushes after this seq. (default: all since the last reset)")
  var after: Int?

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  private struct Answer: Decodable {
    var satisfied: Bool
    var items: [PushPage.Push]
    var matched: Int
    var message: String
    var nearest: [Miss]
    var complete: Bool

    struct Miss: Decodable {
      var seq: Int
      var met: [String]
      var missed: [String]
    }
  }

  func validate() throws {
    for (flag, text) in [("--timeout", timeout), ("--settle", settle)] {
      guard let text else { continue }
      guard let duration = WrittenDuration.duration(text), duration >= .zero, duration <= WaitQuery.maxTimeout else {
        throw ValidationError("\(flag): \"\(text)\" is no duration up to 5m: give one such as 500ms, 30s or 2m")
      }
    }
  }

  func run() async throws {
    var client = try RunningServer(server, environment: Environment.variables).client
    client.timeout += WaitQuery.maxTimeout
    // `--count ==3` and `--count==3` both mean count==3.
    var query = [("count", count.hasPrefix("==") ? String(count.dropFirst()) : count)]
    if let timeout { query.append(("timeout", timeout)) }
    if let settle { query.append(("settle", settle)) }
    if let after { query.append(("after", String(after))) }
    let answer = try await client.request(.GET, "/api/v1/pushes/wait?\(filter.query(and: query))")
    if answer.status == 503 {
      throw CommandFailure(.unreachable, "the server on \(client.endpoint) stopped before the wait was over")
    }
    let result = try answer.decoded(Answer.self)
    if output.json { output.print(json: answer.body) } else { PushTable(result.items).print() }
    guard result.satisfied else {
      throw CommandFailure(result.complete ? .timedOut : .inconclusive, words(of: result))
    }
    StandardStream.error.line(result.message)
  }

  private func words(of answer: Answer) -> String {
    let nearest = answer.nearest.map { miss in
      "nearest: seq \(miss.seq) has \(miss.met.joined(separator: ", ")), but not \(miss.missed.joined(separator: ", "))"
    }
    return ([answer.message] + nearest).joined(separator: "\n")
  }
}
