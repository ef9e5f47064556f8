/// A page of the inbox, as far as the table shows it.
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

/// Pushes in columns.
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

  /// A line each, its columns separated by tabs, without a header: for programs.
  var lines: String {
    rows.map { $0.joined(separator: "\t") + "\n" }.joined()
  }

  /// With a header, in columns of equal width, device tokens shortened: for people.
  func aligned(coloured: Bool) -> String {
    let shown = [Self.header] + rows.map(Self.shortened)
    let widths = Self.header.indices.map { column in shown.map { $0[column].count }.max() ?? 0 }
    return shown.enumerated().map { number, row in
      let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
      let line = String(cells.joined(separator: "  ").trimmedEnd)
      return (coloured ? Self.coloured(line, status: number == 0 ? nil : row[2]) : line) + "\n"
    }.joined()
  }

  private static func shortened(_ row: [String]) -> [String] {
    var row = row
    if row[1].count > 12 { row[1] = String(row[1].dropFirst(11).dropLast()) }
    if row[6].count > 12 { row[6] = "\(row[6].prefix(6))…\(row[6].suffix(4))" }
    return row
  }

  private static func coloured(_ line: String, status: String?) -> String {
    guard let status else { return "\u{1B}[1m\(line)\u{1B}[0m" }
    return status == "200" ? line : "\u{1B}[31m\(line)\u{1B}[0m"
  }
}

extension String {
  fileprivate var trimmedEnd: Substring {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return text
  }
}
