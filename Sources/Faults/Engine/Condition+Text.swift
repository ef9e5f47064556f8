import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockNotation
internal import APNSMockPushQuery

/// The text form of a condition in explanations.
extension Condition.Test {
  /// The name of the test's subject, in the terms of a profile file.
  var name: String {
    if case .query(let query) = match { return "\(Condition.queryKey) \(query.name)" }
    return subject.name
  }

  /// The maximum number of values shown of a list.
  private static var shown: Int { 5 }

  /// The required value.
  var wanted: String {
    switch match {
    case .equals(let text): return Explanation.quoted(text)
    case .prefix(let text): return "prefix \(Explanation.quoted(text))"
    case .glob(let pattern): return "glob \(Explanation.quoted(pattern.text))"
    case .oneOf(let texts):
      return "one of " + texts.sorted().map { Explanation.quoted($0) }.listed(Self.shown)
    case .within(let blocks):
      return "in " + blocks.map(\.text).listed(Self.shown)
    case .query(let query):
      return query.conditions
        .map { ($0.term.isNegated ? "not " : "") + Explanation.quoted($0.term.value.text) }
        .joined(separator: " or ").replacing(" or not ", with: ", not ")
    case .present(let isPresent): return isPresent ? "any value" : "no value"
    case .between(let above, let below):
      let bounds = [above.map { "> \(written($0))" }, below.map { "< \(written($0))" }]
      return bounds.compactMap { $0 }.joined(separator: " and ")
    }
  }

  private func written(_ number: Double) -> String {
    if subject.isDuration, number.magnitude < 1e12 {
      return DurationFormat.text(.milliseconds(Int64(number * 1000)))
    }
    return Int64(exactly: number).map { String($0) } ?? String(number)
  }
}

extension Condition.Match {
  /// Returns how a value differs from the required one if only by case or white space; otherwise nil.
  func hint(for value: String?) -> String? {
    guard let value else { return nil }
    let wanted: [String] =
      switch self {
      case .equals(let text): [text]
      case .oneOf(let texts): texts.sorted()
      case .prefix, .glob, .within, .present, .between, .query: []
      }
    // Compare scalars, because a line break of two scalars is one character.
    let spaceless = value.unicodeScalars.filter { !$0.properties.isWhitespace }
    for text in wanted {
      if text.lowercased() == value.lowercased() { return "differs by case" }
      if spaceless.elementsEqual(text.unicodeScalars.filter { !$0.properties.isWhitespace }) {
        return "differs by white space"
      }
    }
    return nil
  }
}
