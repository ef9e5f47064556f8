import ArgumentParser
import NIOHTTP1

/// `apns-mock findings`
struct Findings: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "findings", abstract: "List the provider's errors, with the pushes that prove them.",
    discussion: """
      Prints a table by finding, with advice, on a terminal; otherwise one line per finding with columns separated by \
      tabs, or with --json the server's response. A filter selects the pushes whose findings are listed.
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
    if summary.items.isEmpty { StandardStream.error.line("no findings for these pushes") }
    if !summary.complete {
      StandardStream.error.line(
        "\(summary.evicted) older pushes were evicted because the inbox is full: findings may be missing")
    }
  }
}

/// The response of `GET /findings`.
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

/// A table of findings: one row per kind, with its newest case.
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

  /// One line per row with columns separated by tabs and no header, for programs.
  var lines: String { table.lines }

  /// Returns the aligned table followed by the advice for each kind, for people.
  func aligned(coloured: Bool) -> String {
    guard !items.isEmpty else { return "" }
    return table.aligned(coloured: coloured)
      + items.map { "\n\($0.finding): \($0.advice.onOneLine)\n" }.joined()
  }

  /// Prints the table: aligned on a terminal, else as `lines`.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(coloured: output.takesColours) : lines).utf8))
  }
}
