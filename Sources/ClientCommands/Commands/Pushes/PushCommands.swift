import ArgumentParser
import APNSMockInbox
import MockAPNS
import HTTPTypes
import APNSMockNotation

/// `apns-mock ls`
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the most recent pushes in chronological order.",
    discussion:
      "Prints a table on a terminal; otherwise one line per push: columns separated by tabs, or with --json the record."
  )

  @OptionGroup var filter: FilterArguments

  @Option(name: .long, help: .value("number", "The maximum number of pushes, 1 to 1000."))
  var limit = 50

  @Option(name: .long, help: .value("seq", "List the first pushes after this seq instead of the most recent ones."))
  var after: PushArgument?

  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard (1...1000).contains(limit) else { throw ValidationError("--limit must be 1 to 1000") }
  }

  func run() async throws {
    // Requests of about a second, so that a long search shows how far it is.
    var items: [Push] = []
    var objects: [ArraySlice<UInt8>] = []
    var page: PushPage
    var cursor = after.map { ("after", $0.name.description) }
    repeat {
      let parameters = [
        ("order", after == nil ? "desc" : "asc"), ("limit", String(limit - items.count)), ("within", "1s"),
      ]
      let query = filter.query(and: parameters + (cursor.map { [$0] } ?? []))
      let response = try await flags.request(.get, "/pushes?\(query)")
      page = try response.decoded(PushPage.self)
      page.matched = page.matched.map { items.count + $0 }
      items += page.items
      objects += response.items
      cursor = page.next.map { (after == nil ? "before" : "after", $0.description) }
      if items.count < limit, page.next != nil, StandardStream.error.isTerminal {
        let share = percent(page).map { "searched \($0) %, " } ?? ""
        StandardStream.error.line("\(share)\(items.count.counted("push", "matches", "match")) so far")
      }
    } while items.count < limit && page.next != nil
    func chronological<Element>(_ items: [Element]) -> [Element] { after == nil ? items.reversed() : items }
    flags.output.print(Push.table(chronological(items)), objects: chronological(objects))
    if page.next != nil {
      let all = page.matched.map { "\($0)" } ?? "many"
      StandardStream.error.line("\(items.count) of \(all) pushes; --limit and --after list others")
    }
    if page.evicted > 0 {
      StandardStream.error.line(
        "\(page.evicted.counted("push", "was", "were")) evicted, or not kept because of --record or a failing store")
    }
  }
}

extension ListCommand {
  /// Returns the share of the inbox that was searched up to the next page; nil in a view of several servers.
  private func percent(_ page: PushPage) -> Int? {
    guard case .seq(let next) = page.next, let firstSeq = page.firstSeq, let last = page.lastSeq else { return nil }
    var first = firstSeq
    if case .seq(let after) = after?.name { first = max(first, after + 1) }
    return 100 * (after == nil ? last - next + 1 : next - first + 1) / max(1, last - first + 1)
  }
}

/// `apns-mock rm`
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove pushes from the inbox.")

  @OptionGroup var filter: FilterArguments

  @Flag(name: .long, help: "Remove all pushes; required if there is no filter.")
  var all = false

  @OptionGroup var flags: AdminFlags

  private struct Response: Decodable {
    var deleted: Int
  }

  func validate() throws {
    guard all == filter.isEmpty else {
      throw ValidationError(
        all ? "--all excludes a filter" : "Specify a filter, as in topic:com.example.app, or --all")
    }
  }

  func run() async throws {
    let query = filter.query(and: all ? [("all", "true")] : [])
    let deleted = try await flags.request(.delete, "/pushes?\(query)").decoded(Response.self).deleted
    flags.output.print(text: "\(deleted) removed") { $0.member("deleted", deleted) }
  }
}

/// `apns-mock export`
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Export the inbox: all pushes, or those that match a query.")

  @OptionGroup var filter: FilterArguments

  @Option(
    name: .long,
    help: .value("format", "The format: ndjson for one record per line, json for an array, har (HTTP Archive), csv."),
    completion: .list(InboxExport.Format.allCases.map(\.rawValue)))
  var format = InboxExport.Format.lines.rawValue

  @Option(name: .long, help: .value("file", "The output file. (default: standard output)"), completion: .file())
  var output: String?

  @OptionGroup var server: ServerFlags

  func validate() throws {
    guard InboxExport.Format(rawValue: format) != nil else {
      throw ValidationError("--format must be ndjson, json, har or csv, not \"\(format)\"")
    }
  }

  func run() async throws {
    let client = try server.client()
    let path = "/api/v1/export?\(filter.query(and: [("format", format)]))"
    guard let output else {
      try await client.stream(path) { StandardStream.output.write($0) }
      return
    }
    let file = try Files.replacement(of: output, isPrivate: true)
    try await client.stream(path) { bytes in
      try Files.writing { () throws(FileError) in try file.append(bytes) }
      return true
    }
    try Files.writing { () throws(FileError) in try file.commit() }
  }
}

/// `apns-mock import`
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Add the pushes of an export to the inbox of a running server.",
    discussion: """
      The pushes get new seq values and keep their times. If any record is invalid, nothing is imported. To look at an \
      export without a server, use view.
      """)

  @Argument(
    help: .value("file", "The export, one record per line or an array; - for standard input."), completion: .file())
  var file: String

  @OptionGroup var flags: AdminFlags

  private struct Response: Decodable {
    var imported: Int
    var firstSeq: Int?
    var lastSeq: Int?
  }

  func run() async throws {
    // A server imports no larger one.
    let export = try Files.contents(of: file, limit: 2 << 30)
    var client = try flags.client()
    // The server reads some 20 MB of an export per second.
    client.timeout += .seconds(export.count / 1_000_000)
    let response = try await client.request(.post, "/api/v1/import", body: export, type: "application/x-ndjson")
    let result = try response.decoded(Response.self)
    let range = result.firstSeq.flatMap { first in result.lastSeq.map { ": seq \(first) to \($0)" } } ?? ""
    flags.print(response, text: "\(result.imported.counted("push")) imported\(range)")
  }
}

/// A page of the inbox, with the members that commands show.
struct PushPage: Decodable {
  var items: [Push]
  var next: PushName?
  /// Nil if counting them would take long.
  var matched: Int?
  var evicted: Int
  /// No record has a smaller seq than the first, or a larger one than the last. In a page of a query with a time limit.
  var firstSeq: Int?
  var lastSeq: Int?
}

/// A push in a response of the admin API.
struct Push: Decodable {
  var seq: PushName
  var receivedAt: String?
  var outcome: String
  var request: Request
  var apns: Fields
  var served: Served

  struct Request: Decodable {
    var deviceToken: String?
  }

  struct Fields: Decodable {
    var id: String?
    var topic: String?
    var pushType: String?
  }

  struct Served: Decodable {
    var status: Int?
    var reason: String?
  }

  /// Returns a table of pushes, with the rejected ones in red.
  static func table(_ pushes: [Push]) -> Table<Push> {
    Table(
      rows: pushes,
      columns: [
        .init("SEQ", \.seq.description),
        .init("RECEIVED", shortened: { $0.count > 12 ? String($0.dropFirst(11).dropLast()) : $0 }, \.receivedAt),
        .init("STATUS") { $0.served.status.map(String.init) ?? $0.outcome },
        .init("REASON", \.served.reason),
        .init("TYPE", \.apns.pushType),
        .init("TOPIC", \.apns.topic),
        .init("DEVICE", shortened: { $0.count > 12 ? "\($0.prefix(6))…\($0.suffix(4))" : $0 }, \.request.deviceToken),
        .init("APNS-ID", \.apns.id),
      ],
      color: { $0.served.status.map { (200..<300).contains($0) } == true ? nil : .red })
  }
}

extension PushName: Decodable {
  /// Reads a number, or a text such as `load_1:4711`.
  package init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if let seq = try? value.decode(Int.self) {
      self = .seq(seq)
    } else if let origin = RecordOrigin(try value.decode(String.self)) {
      self = .ofServer(origin)
    } else {
      throw DecodingError.dataCorruptedError(in: value, debugDescription: "no push")
    }
  }
}

/// A push as an argument: its seq, or in a view of several servers the server and the seq.
struct PushArgument: ExpressibleByArgument {
  let name: PushName

  init?(argument: String) {
    guard
      let name = Int(argument).flatMap({ $0 < 0 ? nil : PushName.seq($0) })
        ?? RecordOrigin(argument).map(PushName.ofServer)
    else {
      return nil
    }
    self.name = name
  }
}
