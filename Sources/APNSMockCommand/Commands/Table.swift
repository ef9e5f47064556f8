/// Rows of text in columns. No cell holds a tab or a line break.
struct Table {
  /// The columns' names, for people.
  let header: [String]
  /// As many cells in each as the header has.
  let rows: [[String]]

  /// A line each, its columns separated by tabs, without a header: for programs.
  var lines: String {
    rows.map { $0.joined(separator: "\t") + "\n" }.joined()
  }

  /// With a header, in columns of equal width: for people.
  ///
  /// - Parameter colour: that of a row, where it stands out.
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

  /// Writes itself to standard output, for whoever looks at it.
  func print() {
    let output = StandardStream.output
    output.write(Array((output.isTerminal ? aligned(coloured: output.takesColours) : lines).utf8))
  }
}

/// What makes text stand out on a terminal (ECMA-48, SGR).
enum Colour: Int {
  case bold = 1
  case red = 31
  case green = 32

  /// `text` in this colour.
  func around(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

extension String {
  fileprivate var trimmedEnd: Substring {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return text
  }
}
