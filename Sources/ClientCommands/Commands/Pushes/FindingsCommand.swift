import APNSMockInbox
import APNSMockNotation
import ArgumentParser
import HTTPTypes

/// `apns-mock findings`
struct FindingsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "findings", abstract: "List the provider's errors, with the pushes that prove them.",
    discussion: """
      Prints a table by finding, with advice, on a terminal; otherwise one line per finding with columns separated by \
      tabs, or with --json the server's response. A filter selects the pushes whose findings are listed.
      """)

  @OptionGroup var filter: FilterArguments
  @OptionGroup var scope: ScopeFlag
  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.request(.get, "/findings?\(filter.query(and: scope.parameters))")
    let page = try response.decoded(FindingsPage.self)
    if flags.output.json {
      flags.output.print(json: response.body)
    } else if !page.items.isEmpty {
      page.table.print()
      if StandardStream.output.isTerminal { StandardStream.output.write(Array(page.advice.utf8)) }
    }
    if page.items.isEmpty { StandardStream.error.line("no findings for these pushes") }
    if !page.complete {
      StandardStream.error.line(
        "\(page.evicted.counted("push", "was", "were")) evicted, or not kept because of --record or a failing store: findings may be missing"
      )
    }
  }
}

/// The response of `GET /findings`.
struct FindingsPage: Decodable {
  var items: [Item]
  var evicted: Int
  var complete: Bool

  /// The findings of one kind.
  struct Item: Decodable {
    var finding: String
    var count: Int
    var advice: String
    /// The newest findings, in descending order.
    var records: [Case]
  }

  struct Case: Decodable {
    var seq: PushName
    var evidence: [PushName]
    var explanation: String
  }

  /// A table with one row per kind, which shows its newest case.
  var table: Table<Item> {
    Table(
      rows: items,
      columns: [
        .init("FINDING", \.finding), .init("COUNT") { String($0.count) },
        .init("NEWEST") { $0.records.first?.seq.description },
        .init("EVIDENCE") { $0.records.first?.evidence.map(\.description).joined(separator: ",") },
        .init("EXPLANATION") { $0.records.first?.explanation },
      ])
  }

  /// The advice for each kind, for people.
  var advice: String { items.map { "\n\($0.finding): \($0.advice.onOneLine)\n" }.joined() }
}
