internal import APNSMockRules
package import APNSMockNotation

/// The named fields of a query; the raw values are their names. The inbox's filters and the rules of fault profiles
/// share them.
package enum QueryField: String, CaseIterable, Sendable {
  case deviceToken = "device_token"
  case topic
  case status
  case reason
  case outcome
  case decision
  case ending
  case violation
  case accepted
  case delivery
  case pushType = "push_type"
  case priority
  case apnsID = "apns_id"
  case collapseID = "collapse_id"
  case pushKey = "push_key"
  case attempt
  case rule
  case profile
  case finding
  case run
  case test
  case connection
  case listener
  case environment
  case requestKind = "kind"
  case keyID = "key_id"
  case teamID = "team_id"
  case since
  case until
  case size
  case sizeGreater = "size_gt"
  case sizeLess = "size_lt"
  case `is`
  case text

  /// The type of the values a field is compared with.
  package enum Kind: Sendable {
    /// Text, literal or with `*`.
    case text(foldsCase: Bool)
    /// A substring, compared without case.
    case anywhere
    /// One of a fixed set of words or texts, or a `*` pattern over them.
    case word([String], foldsCase: Bool = false)
    /// An integer, a bound, a range, or a `*` pattern over its digits.
    case number
    /// `true` or `false`.
    case flag
    /// A time: RFC 3339, or a duration before now.
    case time
    /// A number of bytes, with or without a unit.
    case size
  }

  /// The type of the values that the field is compared with.
  package var kind: Kind {
    switch self {
    // Device tokens and IDs are hexadecimal, and clients differ in the case of the digits.
    case .deviceToken, .apnsID, .pushKey: .text(foldsCase: true)
    case .topic, .reason, .pushType, .collapseID, .rule, .profile, .finding, .run, .test, .connection, .keyID, .teamID:
      .text(foldsCase: false)
    case .violation: .text(foldsCase: true)
    case .text: .anywhere
    case .outcome:
      .word([
        "accepted", "rejected", "response_lost", "unanswered", "unprocessed", "incomplete", "malformed", "pending",
        "unknown",
      ])
    case .decision: .word(["accepted", "rejected", "not_processed", "pending", "unknown"])
    case .ending:
      .word([
        "response", "refused", "malformed", "reset", "cancelled", "incomplete", "disconnected", "pending", "unknown",
      ])
    case .delivery: .word(DeliveryState.allCases.map(\.text), foldsCase: true)
    case .environment: .word(PushEnvironment.allCases.map(\.rawValue))
    case .requestKind: .word(RequestKind.allCases.map(\.rawValue))
    case .is: .word(PushState.allCases.map(\.rawValue))
    case .status, .priority, .listener, .attempt: .number
    case .accepted: .flag
    case .since, .until: .time
    case .size, .sizeGreater, .sizeLess: .size
    }
  }

  /// A description of the valid values.
  var validValues: String {
    switch kind {
    case .text, .anywhere: "a string"
    case .word(let words, let foldsCase):
      // These texts contain spaces, so that a query needs quotation marks.
      "one of \((foldsCase ? words.map { "\"\($0)\"" } : words).joined(separator: ", "))"
    case .number: QueryValue.numberForms
    case .flag: "true or false"
    case .time: "a time such as 2026-01-31T12:00:00.000Z (RFC 3339), or a time before now such as -5m"
    case .size: QueryValue.sizeForms + (self == .size ? QueryValue.sizeBounds : "")
    }
  }

  /// Values of a word field that exist no more, with what replaces them.
  package static let formerWords: [String: String] = [
    "faulted": "Use is:faulted for the pushes that a rule affected.",
    "aborted": "Use response_lost, unanswered or incomplete.",
  ]

  /// Short names for use in queries.
  package static let aliases: [(name: String, field: QueryField)] = [
    ("token", .deviceToken), ("type", .pushType), ("id", .apnsID), ("collapse", .collapseID), ("larger", .sizeGreater),
    ("smaller", .sizeLess),
  ]

  /// Creates a field from its name or its short name; nil if there is none.
  package init?(named name: String) {
    guard let field = QueryField(rawValue: name) ?? Self.aliases.first(where: { $0.name == name })?.field else {
      return nil
    }
    self = field
  }

  /// Returns the list of fields that errors show.
  ///
  /// - Parameters:
  ///   - name: The word that is no field.
  ///   - additionalNames: Other names that are allowed.
  package static func list(of fields: [QueryField], for name: String, additionalNames: [String] = []) -> String {
    let names = [Spelling.choices(for: name, among: fields.map(\.rawValue)), "payload./pointer", "header.name"]
    let short = aliases.filter { fields.contains($0.field) }.map { "\($0.name) for \($0.field.rawValue)" }
    return
      "The fields are \((names + additionalNames).joined(separator: ", ")). In short: \(short.joined(separator: ", "))."
  }
}

/// States of a push other than its outcome; the raw values are the values of the field `is`.
package enum PushState: String, CaseIterable, Sendable {
  /// An earlier attempt of the same push exists.
  case retry
  /// No earlier attempt of the same push exists.
  case first
  /// The push is delayed and has no response yet.
  case pending
  /// The push was accepted again after an earlier attempt of the same push was accepted.
  case duplicate
  /// A fault rule affected the push, or ended its connection.
  case faulted
  /// The push was forwarded, and upstream's answer differs from that of APNs' rules.
  case deviating
}

/// The part of a push that a condition refers to.
package enum QuerySubject: Sendable, Equatable {
  /// A named field.
  case field(QueryField)
  /// The value at a JSON pointer into the payload.
  case payload(JSONPointer)
  /// The values of a header field, by its lowercase name.
  case header(String)

  /// Parses the name of a condition.
  ///
  /// - Parameters:
  ///   - fields: The available fields.
  ///   - additionalNames: Names that are allowed here in addition to the fields, for the error's hint.
  /// - Throws: `FilterError` if the name is unknown or has an invalid pointer.
  package init(
    _ name: String, among fields: [QueryField] = QueryField.allCases, additionalNames: [String] = []
  ) throws(FilterError) {
    if name.hasPrefix("payload.") {
      try self.init(pointer: name.dropFirst("payload.".count), name: name)
    } else if name.hasPrefix("header."), name.utf8.count > "header.".utf8.count {
      self = .header(name.dropFirst("header.".count).lowercased())
    } else if let field = QueryField(named: name), fields.contains(field) {
      self = .field(field)
    } else {
      // Limit the length: a longer word is not a typo, and the comparison takes time.
      let names =
        fields.map(\.rawValue) + additionalNames + QueryField.aliases.filter { fields.contains($0.field) }.map(\.name)
      let guess = Spelling.nearest(to: String(name.prefix(40)), among: names).map { "did you mean \($0)?" }
      throw FilterError(
        name: name, message: "unknown field \"\(FilterError.shown(name))\"",
        hint: guess ?? QueryField.list(of: fields, for: name, additionalNames: additionalNames))
    }
  }

  /// Parses a JSON pointer into the payload.
  ///
  /// - Parameter name: The name of the condition, for errors.
  /// - Throws: `FilterError` if the pointer is invalid or has more than `maxDepth` names.
  package init(pointer text: Substring, name: String, allowsRoot: Bool = false) throws(FilterError) {
    guard text.hasPrefix("/") || allowsRoot, let pointer = JSONPointer(String(text)) else {
      throw FilterError(
        name: name, message: "\"\(text)\" is not a JSON pointer",
        hint: "Write / before each name, as in payload./aps/alert/title; ~1 is a slash in a name, ~0 a tilde.")
    }
    guard pointer.depth <= Self.maxDepth else {
      throw FilterError(
        name: name, message: "the JSON pointer has \(pointer.depth) names", hint: "Use at most \(Self.maxDepth).")
    }
    self = .payload(pointer)
  }

  /// The maximum number of names in a pointer. Payloads have a handful of levels, and each name costs a scan of the
  /// payload.
  package static let maxDepth = 32
}
