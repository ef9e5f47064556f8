import ArgumentParser
import NIOHTTP1

/// `apns-mock findings`
struct Findings: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "findings", abstract: "What the provider does wrong, with the pushes that prove it.",
    discussion: """
      By kinds, with what to do about each on a terminal; otherwise a line each, its columns separated by tabs, or with \
      --json the answer of the server. The filter says whose findings: those of the pushes that it matches.
      """)

  @OptionGroup var filter: FilterArguments
  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let answer = try await client.request(.GET, "/api/v1/findings?\(filter.query())")
    let summary = try answer.decoded(FindingsPage.self)
    if output.json {
      StandardStream.output.write(answer.body + [UInt8(ascii: "\n")])
    } else {
      FindingsTable(summary.items).print()
    }
    if summary.items.isEmpty { StandardStream.error.line("nothing is wrong with these pushes") }
    if !summary.complete {
      StandardStream.error.line(
        "\(summary.evicted) older pushes were dropped to keep the inbox in bounds: some may be missing")
    }
  }
}

/// What `GET /findings` tells.
struct FindingsPage: Decodable {
  var items: [Item]
  var evicted: Int
  var complete: Bool

  struct Item: Decodable {
    var finding: String
    var count: Int
    var advice: String
    var records: [Case]
  }

  struct Case: Decodable {
    var seq: Int
    var evidence: [Int]
    var explanation: String
  }
}

/// Findings in columns: a kind in each row, with its newest case.
struct FindingsTable {
  private let items: [FindingsPage.Item]

  init(_ items: [FindingsPage.Item]) { self.items = items }

  private var table: Table {
    Table(
      header: ["FINDING", "COUNT", "NEWEST", "EVIDENCE", "EXPLANATION"],
      rows: items.map { item in
        let newest = item.records.first
        return [
          item.finding, String(item.count), newest.map { String($0.seq) } ?? "-",
          newest.map { $0.evidence.map(String.init).joined(separator: ",") } ?? "-", newest?.explanation ?? "-",
        ].map { $0.onOneLine }
      })
  }

  /// A line each, its columns separated by tabs, without a header: for programs.
  var lines: String { table.lines }

  /// With what to do about each kind below: for people.
  func aligned(coloured: Bool) -> String {
    guard !items.isEmpty else { return "" }
    return table.aligned(coloured: coloured)
      + items.map { "\n\($0.finding): \($0.advice.onOneLine)\n" }.joined()
  }

  /// Writes itself to standard output, for whoever looks at it.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(coloured: output.takesColours) : lines).utf8))
  }
}
