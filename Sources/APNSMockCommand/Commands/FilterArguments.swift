import ArgumentParser

/// Which pushes a command is about: the words of a query, or fields with their values as the admin API has them.
struct FilterArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Which pushes: status:410 topic:com.example.* '!type:background' is:retry 'text:\"order shipped\"' …",
      discussion: """
        The same field twice means either, different ones mean both; ! before a field negates it; * globs. Numbers can \
        be '>3', '<=3' and 3..9. payload./aps/badge and header.apns-id are fields too. The value of an argument such as \
        topic=com.example.app is taken as it is.
        """,
      valueName: "field:value"))
  var words: [String] = []

  /// Whether nothing is said.
  var isEmpty: Bool { words.allSatisfy { $0.allSatisfy(\.isWhitespace) } }

  /// The query string for these words and `further` parameters. What the words mean, the server knows.
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
