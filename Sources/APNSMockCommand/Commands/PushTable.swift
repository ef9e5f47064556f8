/// A page of the inbox, with the members that the table shows.
struct PushPage: Decodable {
  var items: [Push]
  var matched: Int
  var evicted: Int

  struct Push: Decodable {
    var seq: Int
    var received_at: String?
    var outcome: String
    var request: Request
    var apns: Fields
    var served: Served

    struct Request: Decodable {
      var device_token: String?
    }

    struct Fields: Decodable {
      var id: String?
      var topic: String?
      var push_type: String?
    }

    struct Served: Decodable {
      var status: Int?
      var reason: String?
    }
  }
}

/// A table of pushes.
struct PushTable {
  private static let header = ["SEQ", "RECEIVED", "STATUS", "REASON", "TYPE", "TOPIC", "DEVICE", "APNS-ID"]
  private let rows: [[String]]

  init(_ pushes: [PushPage.Push]) {
    rows = pushes.map { push in
      [
        String(push.seq), push.received_at ?? "-", push.served.status.map(String.init) ?? push.outcome,
        push.served.reason ?? "-", push.apns.push_type ?? "-", push.apns.topic ?? "-", push.request.device_token ?? "-",
        push.apns.id ?? "-",
      ].map { $0.onOneLine }
    }
  }

  /// One line per row with columns separated by tabs and no header, for programs.
  var lines: String { Table(header: Self.header, rows: rows).lines }

  /// Returns the aligned table with a header, shortened device tokens, and rejected pushes in red, for people.
  func aligned(coloured: Bool) -> String {
    Table(header: Self.header, rows: rows.map(Self.shortened))
      .aligned(coloured: coloured) { $0[2] == "200" ? nil : .red }
  }

  /// Prints the table: aligned on a terminal, else as `lines`.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(coloured: output.takesColours) : lines).utf8))
  }

  private static func shortened(_ row: [String]) -> [String] {
    var row = row
    if row[1].count > 12 { row[1] = String(row[1].dropFirst(11).dropLast()) }
    if row[6].count > 12 { row[6] = "\(row[6].prefix(6))…\(row[6].suffix(4))" }
    return row
  }
}
