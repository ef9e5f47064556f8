import ArgumentParser

/// Which pushes a command is about: fields with their values, as the admin API filters.
struct FilterArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Which pushes: topic=com.example.app status=400 '!push_type=alert' …",
      discussion: "The same field twice means either, different ones mean both; ! before a field negates it; * globs.",
      valueName: "field=value"))
  var fields: [String] = []

  /// The query string for these fields and `further` ones.
  ///
  /// - Throws: `CommandFailure` for an argument without an equals sign. Whether a field exists, the server knows.
  func query(and further: [(String, String)] = []) throws -> String {
    let pairs = try fields.map { field in
      let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, !parts[0].isEmpty else {
        throw CommandFailure(.usage, "\"\(field)\" is no filter: write FIELD=VALUE, as in topic=com.example.app")
      }
      return (String(parts[0]), String(parts[1]))
    }
    return (pairs + further).map { "\($0.percentEncoded)=\($1.percentEncoded)" }.joined(separator: "&")
  }
}
