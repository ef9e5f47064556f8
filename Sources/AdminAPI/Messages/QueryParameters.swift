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

  /// Removes and returns the parameter `name` as one of the cases of `type`; nil if it is absent.
  ///
  /// - Throws: `Problem` (400) for any other value.
  mutating func remove<Choice: RawRepresentable<String> & CaseIterable>(
    _ name: String, _ type: Choice.Type
  ) throws(Problem) -> Choice? {
    try remove(name).map { text throws(Problem) in try Choice.choice(text, of: name) }
  }

  /// Checks that no parameter is left that was not removed.
  ///
  /// - Parameters:
  ///   - names: The names of all parameters.
  ///   - others: Those that are read elsewhere.
  /// - Throws: `Problem` (400).
  func end(_ names: [String], leaving others: [String] = [], hint: String? = nil) throws(Problem) {
    guard let name = all.first(where: { !others.contains($0.name) })?.name else { return }
    let guess = Spelling.suggestion(for: name, among: names)
    throw .badRequest(
      "the query has an unknown parameter \"\(name.prefix(80))\"",
      hint: guess + (hint ?? "The parameters are \(names.dropLast().joined(separator: ", ")) and \(names.last ?? "")."))
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

extension RawRepresentable<String> where Self: CaseIterable {
  /// Returns the case with the raw value `text`.
  ///
  /// - Parameter name: The parameter or member that has the value.
  /// - Throws: `Problem` (400) for any other text.
  static func choice(_ text: String, of name: String) throws(Problem) -> Self {
    guard let choice = Self(rawValue: text) else {
      throw .unknownValue(text, of: name, among: Self.allCases.map(\.rawValue))
    }
    return choice
  }
}
