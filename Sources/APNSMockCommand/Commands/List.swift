import ArgumentParser
import NIOHTTP1

/// `apns-mock ls`
struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the most recent pushes in chronological order.",
    discussion:
      "Prints a table on a terminal; otherwise one line per push: columns separated by tabs, or with --json the record."
  )

  @OptionGroup var filter: FilterArguments

  @Option(name: .long, help: "The maximum number of pushes, 1 to 1000.")
  var limit = 50

  @Option(name: .long, help: "List the first pushes after this seq instead of the most recent ones.")
  var after: Int?

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard (1...1000).contains(limit) else { throw ValidationError("--limit must be 1 to 1000") }
  }

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let order = after.map { [("after", String($0)), ("order", "asc")] } ?? [("order", "desc")]
    let query = filter.query(and: order + [("limit", String(limit))])
    let answer = try await client.request(.GET, "/api/v1/pushes?\(query)")
    let page = try answer.decoded(PushPage.self)
    if output.json {
      let records = JSONLayout.elements(of: "items", in: answer.body)
      for record in after == nil ? records.reversed() : records {
        StandardStream.output.write(record + [UInt8(ascii: "\n")])
      }
    } else {
      PushTable(after == nil ? page.items.reversed() : page.items).print()
    }
    if page.matched > page.items.count {
      StandardStream.error.line("\(page.items.count) of \(page.matched) pushes; --limit and --after list others")
    }
    if page.evicted > 0 {
      StandardStream.error.line("\(page.evicted) older pushes were evicted because the inbox is full")
    }
  }
}
