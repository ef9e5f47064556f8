import APNSRules
package import Notation

/// The terms of a rule's query about one field. At least one of the wanted values must match, if there are any, and
/// none of the negated ones.
package struct FieldQuery: Sendable, Equatable {
  /// A requirement on the field's value.
  package enum Test: Sendable {
    case text(TextPattern)
    case number(ClosedRange<Int64>)
    case value(QueryValueTest)
  }

  /// The field's name as first written.
  package let name: String
  /// The terms in the order written.
  package private(set) var terms: [QueryTerm] = []
  package private(set) var wanted: [Test] = []
  package private(set) var unwanted: [Test] = []

  package init(name: String) { self.name = name }

  /// Returns whether both have the same text.
  package static func == (one: FieldQuery, other: FieldQuery) -> Bool {
    one.name == other.name && one.terms == other.terms
  }

  package mutating func add(_ term: QueryTerm, _ test: Test) throws(FilterError) {
    terms.append(term)
    if term.isNegated {
      unwanted.append(test)
    } else {
      wanted.append(test)
      let range = QueryValue.rangeInstead(
        of: wanted.compactMap { if case .number(let numbers) = $0 { numbers } else { nil } },
        wanted.compactMap { if case .value(.within(let bounds)) = $0 { bounds } else { nil } })
      if let range { throw FilterError(field: term.name, value: term.value.text, rangeInstead: range) }
    }
  }

  /// Returns whether the field meets the terms, given a function that evaluates each test.
  package func holds(_ test: (Test) -> Bool) -> Bool {
    !unwanted.contains(where: test) && (wanted.isEmpty || wanted.contains(where: test))
  }

  /// Returns whether a text, or its absence, meets the terms.
  package func holds(for text: String?) -> Bool {
    holds { test in
      guard case .text(let pattern) = test, let text else { return false }
      return pattern.matches(text)
    }
  }

  /// Returns whether a number, or its absence, meets the terms.
  package func holds(for number: Int64?) -> Bool {
    holds { test in
      guard let number else { return false }
      return switch test {
      case .number(let range): range.contains(number)
      case .text(let pattern): pattern.matches(String(number))
      case .value: false
      }
    }
  }

  /// The wanted and unwanted values in words.
  package var words: String {
    terms.map { ($0.isNegated ? "not " : "") + Explanation.quoted($0.value.text) }.joined(separator: " or ")
      .replacing(" or not ", with: ", not ")
  }
}

/// A field of the inbox's query language that a rule's query can use, because it is known when a request is
/// complete. The raw values are the field names.
package enum QueryField: String, CaseIterable, Sendable {
  case deviceToken = "device_token"
  case topic
  case pushType = "push_type"
  case priority
  case apnsID = "apns_id"
  case collapseID = "collapse_id"
  case attempt
  case connection
  case listener
  case keyID = "key_id"
  case teamID = "team_id"
  case size
  case sizeGreater = "size_gt"
  case sizeLess = "size_lt"
  case text

  /// The short names of fields.
  package static let aliases: [String: QueryField] = [
    "token": .deviceToken, "type": .pushType, "id": .apnsID, "collapse": .collapseID, "larger": .sizeGreater,
    "smaller": .sizeLess,
  ]

  /// The inbox's fields that a rule's query cannot use, because they are known only after the response or refer to a
  /// position in the inbox. The values suggest a replacement.
  package static let others: [String: String] = [
    "status": "write when: {status: …} with at: response",
    "reason": "write when: {reason: …} with at: response",
    "is": "write attempt:1 for is:first, attempt:>1 for is:retry",
    "rule": "", "profile": "", "finding": "", "outcome": "", "accepted": "", "push_key": "", "since": "", "until": "",
    "after": "", "before": "",
  ]

  /// The names that a rule's query can use, in the order in which messages list them.
  package static let names = allCases.map(\.rawValue) + ["larger", "smaller", "payload./pointer", "header.name"]

  /// The subject that the field examines.
  package var subject: Condition.Subject {
    switch self {
    case .deviceToken: .deviceToken
    case .topic: .topic
    case .pushType: .pushType
    case .priority: .priority
    case .apnsID: .apnsID
    case .collapseID: .collapseID
    case .attempt: .attempt
    case .connection: .connection
    case .listener: .listener
    case .keyID: .keyID
    case .teamID: .teamID
    case .size, .sizeGreater, .sizeLess: .size
    case .text: .text
    }
  }

  /// Returns the test for a value; nil if the field cannot have this value.
  package func test(_ value: QueryValue) -> FieldQuery.Test? {
    switch self {
    case .priority, .attempt, .listener:
      value.digitsPattern.map { .text($0) } ?? value.wholeNumbers().map { .number($0) }
    case .size: value.sizes().map { .number($0) }
    case .sizeGreater: value.sizes(.above).map { .number($0) }
    case .sizeLess: value.sizes(.below).map { .number($0) }
    case .text: value.anywherePattern.map { .text($0) }
    default: .text(TextPattern(pieces: value.pieces, foldsCase: subject.foldsCase))
    }
  }

  /// The allowed values in words.
  package var forms: String {
    switch self {
    case .priority, .attempt, .listener: QueryValue.numberForms
    case .size: QueryValue.sizeForms + QueryValue.sizeBounds
    case .sizeGreater, .sizeLess: QueryValue.sizeForms
    default: "a string"
    }
  }
}

extension Condition {
  /// Parses a query into tests, one for each field.
  ///
  /// - Throws: `FilterError` with the position in the text.
  package static func tests(query text: String) throws(FilterError) -> [Test] {
    var groups: [(key: String, subject: Subject, query: FieldQuery)] = []
    var count = 0
    try QueryText.read(text) { term throws(FilterError) in
      let (key, subject, field) = try subject(of: term.name)
      if term.value.text.isEmpty && !term.value.isQuoted { throw FilterError(fieldWithoutValue: term.name) }
      count += 1
      guard count <= QueryText.maxConditions else { throw FilterError(tooManyConditions: term.name) }
      guard let test = field.map({ $0.test(term.value) }) ?? QueryValueTest(term.value).map({ .value($0) }) else {
        throw FilterError(
          field: term.name, value: term.value.text, hint: "It is \(field?.forms ?? QueryValue.anyForms).")
      }
      var index = groups.endIndex
      if let known = groups.firstIndex(where: { $0.key == key }) {
        index = known
      } else {
        groups.append((key, subject, FieldQuery(name: term.name)))
      }
      try groups[index].query.add(term, test)
    }
    return groups.map { Test($0.subject, .query($0.query)) }
  }

  /// Returns the subject of a field and a key that is the same for all names of the field.
  private static func subject(
    of name: String
  ) throws(FilterError) -> (key: String, subject: Subject, field: QueryField?) {
    if name.hasPrefix("payload.") {
      let pointer = name.dropFirst("payload.".count)
      _ = try JSONPointer(query: pointer, field: name)
      return (name, .payload(pointer: String(pointer)), nil)
    }
    if name.hasPrefix("header."), name.utf8.count > "header.".utf8.count {
      let field = name.dropFirst("header.".count).lowercased()
      return ("header." + field, .header(name: field), nil)
    }
    if let field = QueryField(rawValue: name) ?? QueryField.aliases[name] {
      return (field.rawValue, field.subject, field)
    }
    let list = "A rule's query can have \(QueryField.names.joined(separator: ", "))."
    if let instead = QueryField.others[name] {
      throw FilterError(
        name: name, message: "\(name) is not available to rules",
        hint: instead.isEmpty ? list : "\(instead.prefix(1).uppercased() + instead.dropFirst()). \(list)")
    }
    let guess =
      Spelling.nearest(to: String(name.prefix(40)), among: QueryField.names + QueryField.aliases.keys.sorted())
      .map { "Did you mean \($0)? " } ?? ""
    throw FilterError(
      name: name, message: "unknown field \"\(FilterError.shown(name))\"", hint: guess + list)
  }
}
