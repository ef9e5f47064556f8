import EmbeddedFiles

/// The documentation page of a provider library, as it is in the documentation.
struct ClientPage: Sendable {
  /// The name of the page's file without its extension, such as `NodeAPN`.
  let file: String
  /// The page in Markdown.
  let text: String

  /// All pages.
  static let all = EmbeddedFile.clientPages.map { ClientPage(file: $0.name, text: $0.text) }

  /// The library's name: the title of the page.
  var library: String { String(text.prefix { $0 != "\n" }.drop { $0 == "#" || $0 == " " }) }

  /// The section with the code or settings to paste, without its title; empty if the page has none.
  var section: String {
    guard let title = text.firstRange(of: "## What to paste\n") else { return "" }
    let rest = text[title.upperBound...]
    let end = rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex
    return String(rest[..<end].drop { $0 == "\n" })
  }
}
