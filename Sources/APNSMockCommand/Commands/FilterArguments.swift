import ArgumentParser

/// Selects the pushes a command applies to, by the words of a query or the admin API's fields and values.
struct FilterArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "A query: status:410 topic:com.example.* '!type:background' is:retry 'text:\"order shipped\"' …",
      discussion: """
        Conditions on the same field are alternatives; conditions on different fields must all match. ! before a field \
        negates it; * is a wildcard. Numbers can be '>3', '<=3' and 3..9. Fields include payload./aps/badge and \
        header.apns-id. An argument such as topic=com.example.app matches the literal value.
        """,
      valueName: "field:value"))
  var words: [String] = []

  /// Whether no condition is specified.
  var isEmpty: Bool { words.allSatisfy { $0.allSatisfy(\.isWhitespace) } }

  /// Returns the URL query for these words and `further` parameters. The server parses the words.
  func query(and further: [(String, String)] = []) -> String {
    var pairs: [(String, String)] = []
    var query: [String] = []
    for word in words {
      if let sign = word.firstIndex(where: { "=:<>\"".contains($0) }), word[sign] == "=", sign > word.startIndex,
        !word.contains(where: \.isWhitespace)
      {
        pairs.append((String(word[..<sign]), String(word[word.index(after: sign)...])))
      } else {
        query.append(word)
      }
    }
    if !query.isEmpty { pairs.append(("q", query.joined(separator: " "))) }
    return (pairs + further).map { "\($0.percentEncoded)=\($1.percentEncoded)" }.joined(separator: "&")
  }
}
