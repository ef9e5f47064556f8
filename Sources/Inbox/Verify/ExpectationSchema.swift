internal import APNSMockNotation
internal import APNSMockPushQuery

extension Expectation {
  /// The schema of an expectation.
  static let schema = MapSchema(
    "Expectation", Expectation(name: ""),
    .defaulted("name", \.name, .text, default: "its number", "The name in the report."),
    .custom(
      "match", \.selection, .either(.text(), .json),
      "Fields of a filter with one value or several, `payload` by JSON pointers, and `headers`; or a query.",
      parse: { parser, node, expectation in parser.parseMatch(node, &expectation.selection) }),
    .ending("outcome", "The outcome of the push, one or several."),
    .ending("accepted", "Whether APNs accepted the push."),
    .ending("status", "The status of the response, one or several."),
    .ending("reason", "The reason of the response, one or several."),
    .ending("delivery", "The last state of the delivery, one or several."),
    .defaulted("allow_none", \.allowsNone, .flag, "Whether the expectation is met if no push matches."),
    .optional("count", \.count, .count, default: "at least one", "The number of pushes."),
    .optional("retries", \.retries, .map(RetryPolicy.schema), "The required retries."))

  /// Parses an expectation. If it is invalid, records the errors and returns what is valid.
  ///
  /// - Parameter number: The position of the expectation in the list, from 1.
  init(_ node: SchemaNode, number: Int, _ parser: SchemaParser) {
    self.init(name: "expectation \(number)")
    guard let map = Self.schema.parseKeys(node, parser) else { return }
    _ = map.parse(into: &self)
    if name.isEmpty { map.fail(at: \.name, "the name is empty", hint: "omit it, or give the expectation a name") }
    if !map.has(\.count), !map.has(\.retries) { count = CountBounds(minimum: 1) }
  }
}

extension Field<Expectation> {
  /// A condition on how a push must end to count.
  fileprivate static func ending(_ name: String, _ summary: String) -> Field {
    .custom(
      name, \.self, .either(.scalar, .list(.scalar)), summary,
      parse: { parser, node, expectation in
        var words: [String] = []
        for element in parser.parseListOrValue(node) ?? [] where !parser.problems.isFull {
          guard let value = parser.parseFilterValue(element) else { continue }
          let term = QueryTerm(name: name, value: value)
          parser.catching(element) { context throws(FilterError) in try expectation.ending.add(term, in: context) }
          let shown = ReportText.shortened(term.value.text)
          words.append((term.isNegated ? "not " : "") + (name == "outcome" ? shown : "\(name) \(shown)"))
        }
        if !words.isEmpty { expectation.endingWords.append(words.joinedWithOr) }
        return !words.isEmpty
      })
  }
}

extension Schema<CountBounds> {
  private typealias Bounds = (exactly: Int?, minimum: Int?, maximum: Int?)
  private static let number = Schema<Int>.integer(0...1_000_000)

  private static let bounds = Schema.map(
    MapSchema<Bounds>(
      "Count", (nil, nil, nil), .optional("exactly", \.exactly, number, "The number of pushes."),
      .optional("at_least", \.minimum, number, "The smallest number of pushes."),
      .optional("at_most", \.maximum, number, "The largest number of pushes.")
    ) { map, bounds in
      if bounds.exactly != nil, bounds.minimum ?? bounds.maximum != nil {
        map.fail(at: \.exactly, "exactly excludes other bounds", hint: "omit at_least and at_most")
      }
      if let minimum = bounds.minimum, let maximum = bounds.maximum, minimum > maximum {
        map.parser.fail(map.node, "at_least is larger than at_most", hint: "swap them, or use exactly")
      }
      if map.node.members.allSatisfy(\.isEmpty) {
        map.parser.fail(
          map.node, "the number is missing", hint: #"specify exactly, at_least or at_most, as in {"exactly": 1}"#)
      }
      return true
    },
    make: { CountBounds(minimum: $0.exactly ?? $0.minimum ?? 0, maximum: $0.exactly ?? $0.maximum) },
    values: { (nil, $0.minimum, $0.maximum) })

  /// A number, or a map with bounds.
  fileprivate static let count = Schema(
    form: .either(number.form, bounds.form),
    parse: { parser, node in
      if case .map = node.content { return bounds.parse(parser, node) }
      return number.parse(parser, node).map { CountBounds(minimum: $0, maximum: $0) }
    }, write: bounds.write)
}

extension RetryPolicy {
  fileprivate static let schema = MapSchema(
    "RetryPolicy", RetryPolicy(), .optional("min", \.min, .integer(0...1_000_000), "The minimum number of retries."),
    .optional("max", \.max, .integer(0...1_000_000), "The maximum number of retries."),
    .optional("min_first_delay", \.minFirstDelay, .duration(upTo: .seconds(86_400)), "The minimum delay of the first."),
    .optional("max_first_delay", \.maxFirstDelay, .duration(upTo: .seconds(86_400)), "The maximum delay of the first."),
    .defaulted("growing", \.isGrowing, .flag, "Whether each delay must be longer than the previous one."),
    .optional("finally", \.endings, .outcomes, "The outcome of the last attempt, or several.")
  ) { map, policy in
    if let minimum = policy.min, let maximum = policy.max, minimum > maximum {
      map.parser.fail(map.node, "min is larger than max", hint: "swap them")
    }
    if let minimum = policy.minFirstDelay, let maximum = policy.maxFirstDelay, minimum > maximum {
      map.parser.fail(map.node, "min_first_delay is longer than max_first_delay", hint: "swap them")
    }
    if map.node.members.allSatisfy(\.isEmpty) {
      map.parser.fail(
        map.node, "the policy is missing",
        hint: "specify one of \(map.schema.fields.map(\.name).joined(separator: ", "))")
    }
    return true
  }
}

extension Schema<[Record.Outcome]> {
  /// An outcome, or several.
  fileprivate static let outcomes = Schema(
    form: .either(Schema<Record.Outcome>.word.form, .list(Schema<Record.Outcome>.word.form)),
    parse: { parser, node in
      for element in parser.parseListOrValue(node) ?? [] {
        guard let text = element.yaml.text, let hint = QueryField.formerWords[text] else { continue }
        parser.fail(element, "unknown value \"\(text)\"", hint: hint)
        return nil
      }
      return parser.parseWords(node, of: Record.Outcome.self)
    }, write: { _, writer in writer.null() })
}

extension SchemaParser {
  /// Parses a scalar in the form used in a query.
  fileprivate func parseFilterValue(_ node: SchemaNode) -> String? {
    guard case .scalar(let scalar) = node.content else {
      fail(node, "expected a string, a number, true or false, not \(node.kind)")
      return nil
    }
    guard !node.isEmpty else {
      fail(
        node, "null is not a valid value",
        hint: "to match pushes without the field, write ! before the name and the value *")
      return nil
    }
    return scalar.text
  }

  /// Parses a query, or a map of fields. Returns false after recording an error.
  fileprivate func parseMatch(_ node: SchemaNode, _ selection: inout Selection) -> Bool {
    if case .scalar(let scalar) = node.content, scalar.isString {
      return catching(node) { context throws(FilterError) in
        try selection.add(name: "q", value: scalar.text, in: context)
      }
    }
    guard case .map(let entries) = node.content else {
      fail(node, "expected a map of fields, or a query, not \(node.kind)")
      return false
    }
    for entry in entries where !problems.isFull {
      let member = node.member(entry)
      switch entry.key {
      case "payload":
        for entry in parseMembers(of: member) where !problems.isFull {
          catching(member.member(entry)) { _ throws(FilterError) in
            try selection.filter.add(payload: entry.key, equalTo: JSONValue(entry.value))
          }
        }
      case "headers":
        for entry in parseMembers(of: member) where !problems.isFull {
          add("header." + entry.key, member.member(entry), &selection)
        }
      default: add(entry.key, member, &selection)
      }
    }
    return true
  }

  /// Returns the entries of a map of conditions. Null would be a condition that matches everything, and is an error.
  private func parseMembers(of node: SchemaNode) -> [YAMLNode.Entry] {
    guard case .map(let entries) = node.content else {
      fail(node, "expected a map, not \(node.kind)")
      return []
    }
    return entries
  }

  /// Adds a condition on a field, with one value or several.
  private func add(_ name: String, _ node: SchemaNode, _ selection: inout Selection) {
    let additionalNames = ["payload", "headers"]
    // Report a misspelled name whatever its value is.
    let field = name.hasPrefix("!") ? String(name.dropFirst()) : name
    if !["q", "after", "before"].contains(field) {
      let isKnown = catching(node) { _ throws(FilterError) in
        _ = try QuerySubject(field, additionalNames: ["after", "before", "q"] + additionalNames)
      }
      guard isKnown else { return }
    }
    for element in parseListOrValue(node) ?? [] where !problems.isFull {
      guard let value = parseFilterValue(element) else { continue }
      catching(element) { context throws(FilterError) in
        try selection.add(name: name, value: value, additionalNames: additionalNames, in: context)
      }
    }
  }
}
