/// A table with one line per row.
struct Table<Row> {
  /// A column of the table.
  struct Column {
    let title: String
    /// Returns the text of a row's cell; nil if the row has no value.
    let text: (Row) -> String?
    /// Shortens a cell's text for people.
    let shortened: (String) -> String

    init(
      _ title: String, shortened: @escaping (String) -> String = { $0 }, _ text: @escaping (Row) -> String?
    ) {
      self.title = title
      self.text = text
      self.shortened = shortened
    }

    /// Returns the text of a row's cell, without tabs and line breaks.
    fileprivate func cell(_ row: Row) -> String { (text(row) ?? "-").onOneLine }
  }

  let rows: [Row]
  let columns: [Column]
  /// Returns the color of a row on a terminal; nil for the terminal's default.
  var color: (Row) -> Color? = { _ in nil }

  /// One line per row with columns separated by tabs and no header, for programs.
  var lines: String {
    rows.map { row in columns.map { $0.cell(row) }.joined(separator: "\t") + "\n" }.joined()
  }

  /// Returns the table with a header and aligned columns, for people.
  func aligned(colored: Bool) -> String {
    let cells = rows.map { row in columns.map { $0.shortened($0.cell(row)) } }
    let widths = columns.indices.map { column in
      max(columns[column].title.count, cells.map { $0[column].count }.max() ?? 0)
    }
    func line(_ cells: [String], _ color: Color?) -> String {
      var text = zip(cells, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
        .joined(separator: "  ")[...]
      while text.last == " " { text.removeLast() }
      return (colored ? color : nil).map { $0.around(String(text)) } ?? String(text)
    }
    let lines = [line(columns.map(\.title), .bold)] + zip(cells, rows).map { line($0, color($1)) }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Prints the table: aligned on a terminal, else as `lines`.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(colored: output.supportsColor) : lines).utf8))
  }
}

/// A text style on a terminal (ECMA-48, SGR).
enum Color: Int {
  case bold = 1
  case red = 31
  case green = 32

  /// Returns `text` in this style.
  func around(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}
