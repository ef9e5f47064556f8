/// A table of text. Cells must not contain tabs or line breaks.
struct Table {
  /// The column names, for people.
  let header: [String]
  /// The rows, each with as many cells as the header.
  let rows: [[String]]

  /// One line per row with columns separated by tabs and no header, for programs.
  var lines: String {
    rows.map { $0.joined(separator: "\t") + "\n" }.joined()
  }

  /// Returns the table with a header and aligned columns, for people.
  ///
  /// - Parameter colour: Returns the colour of a row; nil for the terminal's default.
  func aligned(coloured: Bool, colour: ([String]) -> Colour? = { _ in nil }) -> String {
    let shown = [header] + rows
    let widths = header.indices.map { column in shown.map { $0[column].count }.max() ?? 0 }
    return shown.enumerated().map { number, row in
      let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
      let line = String(cells.joined(separator: "  ").trimmedEnd)
      guard coloured, let colour = number == 0 ? .bold : colour(row) else { return line + "\n" }
      return colour.around(line) + "\n"
    }.joined()
  }

  /// Prints the table: aligned on a terminal, else as `lines`.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(coloured: output.takesColours) : lines).utf8))
  }
}

/// A text style on a terminal (ECMA-48, SGR).
enum Colour: Int {
  case bold = 1
  case red = 31
  case green = 32

  /// Returns `text` in this style.
  func around(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

extension String {
  fileprivate var trimmedEnd: Substring {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return text
  }
}

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
