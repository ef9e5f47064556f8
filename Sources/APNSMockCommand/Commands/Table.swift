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
