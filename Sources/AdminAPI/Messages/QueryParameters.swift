internal import Hummingbird
internal import APNSMockNotation

/// The decoded names and values of a request's query string, in order.
struct QueryParameters {
  private(set) var all: [(name: String, value: String)] = []

  /// - Throws: `Problem` (400) for a broken percent escape, or for NUL, which no value contains and databases do not store.
  init(_ request: Request) throws(Problem) {
    for pair in (request.uri.query ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      all.append((name: try Self.decoded(parts[0]), value: parts.count > 1 ? try Self.decoded(parts[1]) : ""))
    }
  }

  /// Removes and returns the parameter `name`.
  ///
  /// - Throws: `Problem` (400) if it occurs more than once.
  mutating func remove(_ name: String) throws(Problem) -> String? {
    let values = all.filter { $0.name == name }
    all.removeAll { $0.name == name }
    guard values.count <= 1 else {
      throw .badRequest("the query has \(name) \(values.count) times", hint: "Specify it once.")
    }
    return values.first?.value
  }

  /// Removes and returns the Boolean parameter `name`; false if it is absent.
  ///
  /// - Throws: `Problem` (400) for any other value.
  mutating func removeFlag(_ name: String) throws(Problem) -> Bool {
    switch try remove(name) {
    case nil, "0", "false": return false
    case "1", "true": return true
    case let other?:
      throw .badRequest("\(name) cannot be \"\(other.prefix(80))\"", hint: "It must be 1, true, 0, false or omitted.")
    }
  }

  private static func decoded(_ text: Substring) throws(Problem) -> String {
    guard let decoded = PercentEncoding.decode(text, plusIsSpace: true) else {
      throw .badRequest(
        "the query has \"\(text)\", which is not percent-encoded UTF-8",
        hint: "Encode each name and value, a percent sign as %25.")
    }
    guard !decoded.utf8.contains(0) else {
      throw .badRequest("the query contains NUL (%00)", hint: "Send text, without this character.")
    }
    return decoded
  }
}
