import Foundation

/// A page of the documentation, for tests that compare its tables with the code.
package struct MarkdownPage {
  private let lines: [Substring]

  /// The lines that begin with a number sign.
  package var headings: [Substring] { lines.filter { $0.hasPrefix("#") } }

  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Reads a page.
  ///
  /// - Parameter name: The file name without extension.
  package init(_ name: String) throws {
    let file = Self.root.appending(path: "Documentation/\(name).md")
    lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
  }

  /// Returns the rows of the first table under a heading, each as its cells by the name of the column.
  ///
  /// - Parameter heading: The heading with its number signs, such as `## Rules`.
  package func table(under heading: String) throws -> [[String: String]] {
    let start = try found(lines.firstIndex { $0 == heading }, heading)
    let section = lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
    let table = section.drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }.map { line in
      line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    let names = try found(table.first, heading)
    return try table.dropFirst(2).map { cells in
      guard cells.count == names.count else { throw Unreadable(place: "\(heading): \(cells)") }
      return Dictionary(uniqueKeysWithValues: zip(names, cells))
    }
  }

  /// Returns the text of a file of the package.
  ///
  /// - Parameter path: The path from the root of the package.
  package static func packageFile(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// A heading or a table that the page does not have.
  struct Unreadable: Error {
    let place: String
  }

  private func found<Value>(_ value: Value?, _ place: String) throws -> Value {
    guard let value else { throw Unreadable(place: place) }
    return value
  }

  /// Returns the Swift and Python files in a folder of the package, each with its path and text.
  package static func sourceTexts(in folder: String) throws -> [(path: String, text: String)] {
    let base = root.appending(path: folder)
    let paths = try FileManager.default.subpathsOfDirectory(atPath: base.path)
    return try paths.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".py") }.map {
      ("\(folder)/\($0)", String(decoding: try TemporaryFolder.bytes(at: base.appending(path: $0).path), as: UTF8.self))
    }
  }
}
