import ArgumentParser
import NIOHTTP1

/// `apns-mock ls`
struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List pushes: the newest, oldest of them first.",
    discussion:
      "A table on a terminal; otherwise a line each, its columns separated by tabs, or with --json its record.")

  @OptionGroup var filter: FilterArguments

  @Option(name: .long, help: "How many at most, 1 to 1000.")
  var limit = 50

  @Option(name: .long, help: "Only those after this seq, from there on instead of the newest.")
  var after: Int?

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard (1...1000).contains(limit) else { throw ValidationError("--limit is 1 to 1000") }
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
      StandardStream.error.line("\(page.items.count) of \(page.matched) pushes; --limit and --after show others")
    }
    if page.evicted > 0 {
      StandardStream.error.line("\(page.evicted) older pushes were dropped to keep the inbox in bounds")
    }
  }
}
