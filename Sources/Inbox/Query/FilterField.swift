internal import FaultModel
internal import Notation

/// The named fields of a filter; the raw values are the names in queries.
enum FilterField: String, CaseIterable, Sendable {
  case deviceToken = "device_token"
  case topic
  case status
  case reason
  case outcome
  case accepted
  case pushType = "push_type"
  case priority
  case apnsID = "apns_id"
  case collapseID = "collapse_id"
  case pushKey = "push_key"
  case attempt
  case rule
  case profile
  case finding
  case connection
  case listener
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
  enum Kind {
    /// Text, literal or with `*`.
    case text(foldsCase: Bool)
    /// A substring, compared without case.
    case anywhere
    /// One of a fixed set of words, or a `*` pattern over them.
    case word([String])
    /// An integer, a bound, a range, or a `*` pattern over its digits.
    case number
    /// `true` or `false`.
    case flag
    /// A time: RFC 3339, or a duration before now.
    case time
    /// A number of bytes, with or without a unit.
    case size
  }

  var kind: Kind {
    switch self {
    // Device tokens and IDs are hexadecimal, and clients differ in the case of the digits.
    case .deviceToken, .apnsID, .pushKey: .text(foldsCase: true)
    case .topic, .reason, .pushType, .collapseID, .rule, .profile, .finding, .connection, .keyID, .teamID:
      .text(foldsCase: false)
    case .text: .anywhere
    case .outcome: .word(Record.Outcome.allCases.map(\.rawValue))
    case .is: .word(FilterState.allCases.map(\.rawValue))
    case .status, .priority, .listener, .attempt: .number
    case .accepted: .flag
    case .since, .until: .time
    case .size, .sizeGreater, .sizeLess: .size
    }
  }

  /// Short names for use in queries.
  static let aliases: [(name: String, field: FilterField)] = [
    ("token", .deviceToken), ("type", .pushType), ("id", .apnsID), ("collapse", .collapseID), ("larger", .sizeGreater),
    ("smaller", .sizeLess),
  ]

  /// Creates a field from its name or its short name; nil if there is none.
  init?(named name: String) {
    if let field = FilterField(rawValue: name) ?? Self.aliases.first(where: { $0.name == name })?.field {
      self = field
    } else {
      return nil
    }
  }

  /// The names of all fields in the order in which they are listed for users, followed by the cursors.
  static let names = allCases.map(\.rawValue) + ["payload./pointer", "header.name", "after", "before"]
}

/// States of a record other than its outcome; the raw values are the values of `is`.
enum FilterState: String, CaseIterable, Sendable {
  /// An earlier attempt of the same push exists.
  case retry
  /// No earlier attempt of the same push exists.
  case first
  /// The push is delayed and has no response yet.
  case pending
  /// The push was accepted again after an earlier attempt of the same push was accepted.
  case duplicate
}

/// The part of a record that a condition refers to.
enum FilterSubject: Sendable, Equatable {
  /// A field of the record.
  case field(FilterField)
  /// The value at a JSON pointer into the payload.
  case payload(JSONPointer)
  /// The values of a header field, by its lowercase name.
  case header(String)

  /// The maximum number of reference tokens in a pointer.
  static let maxDepth = JSONPointer.maxQueryDepth

  /// Parses the name of a condition.
  ///
  /// - Parameter further: Names that are allowed here in addition to the fields, for the error's hint.
  /// - Throws: `FilterError` if the name is unknown or has an invalid pointer.
  init(_ name: String, further: [String]) throws(FilterError) {
    if name.hasPrefix("payload.") {
      try self.init(pointer: name.dropFirst("payload.".count), name: name)
    } else if name.hasPrefix("header."), name.utf8.count > "header.".utf8.count {
      self = .header(name.dropFirst("header.".count).lowercased())
    } else if let field = FilterField(named: name) {
      self = .field(field)
    } else {
      throw FilterError(unknownField: name, further: further)
    }
  }

  /// Parses a JSON pointer into the payload.
  ///
  /// - Parameter name: The name of the condition, for errors.
  /// - Throws: `FilterError` if the pointer is invalid.
  init(pointer text: Substring, name: String, allowsRoot: Bool = false) throws(FilterError) {
    self = .payload(try JSONPointer(query: text, field: name, allowsRoot: allowsRoot))
  }

  /// The relative cost of evaluation; cheap conditions are evaluated first.
  var effort: Int {
    switch self {
    case .field(.text): 3
    case .field(.finding): 4
    case .field: 0
    case .header: 1
    case .payload: 2
    }
  }
}

extension FilterError {
  /// Creates an error about an unknown field. The hint has the most similar name and all fields.
  ///
  /// - Parameter further: Names that are allowed here in addition to the fields.
  init(unknownField field: String, further: [String]) {
    let names = FilterField.names + further
    // Limit the length: a longer word is not a typo, and the comparison takes time.
    let guess =
      Spelling.nearest(to: String(field.prefix(40)), among: names + FilterField.aliases.map(\.name))
      .map { "did you mean \($0)? " } ?? ""
    let short = FilterField.aliases.map { "\($0.name) for \($0.field.rawValue)" }.joined(separator: ", ")
    self.init(
      name: field, message: "unknown field \"\(Self.shown(field))\"",
      hint: "\(guess)The fields are \(names.joined(separator: ", ")). In short: \(short).")
  }
}

/// A test on the value of a filter subject.
enum FilterTest: Sendable {
  case text(TextPattern)
  case number(ClosedRange<Int64>)
  case flag(Bool)
  case states([FilterState])
  case value(QueryValueTest)

  /// Creates the test that `value` describes.
  ///
  /// - Parameter name: The name of the subject as written.
  /// - Throws: `FilterError` if the value is not valid for the subject.
  init(_ subject: FilterSubject, name: String, value: QueryValue, in context: FilterContext) throws(FilterError) {
    if value.text.isEmpty && !value.isQuoted {
      throw FilterError(fieldWithoutValue: name)
    }
    let test: FilterTest?
    let allowed: String
    switch subject {
    case .field(let field): (test, allowed) = try Self.test(field, name: name, value: value, in: context)
    case .payload, .header:
      test = QueryValueTest(value).map { .value($0) }
      allowed = QueryValue.anyForms
    }
    guard let test else { throw FilterError(field: name, value: value.text, hint: "It is \(allowed).") }
    self = test
  }

  /// Returns the test for a field, nil if the value is invalid, and a description of the valid values.
  private static func test(
    _ field: FilterField, name: String, value: QueryValue, in context: FilterContext
  ) throws(FilterError) -> (FilterTest?, String) {
    switch field.kind {
    case .text(let foldsCase):
      return (.text(TextPattern(pieces: value.pieces, foldsCase: foldsCase)), "a string")
    case .anywhere:
      return (value.anywherePattern.map { .text($0) }, "a string")
    case .word(let words):
      return (try word(field, name: name, value: value, words: words, in: context), words.joined(separator: ", "))
    case .number:
      return (
        value.digitsPattern.map { .text($0) } ?? value.wholeNumbers().map { .number($0) }, QueryValue.numberForms
      )
    case .flag:
      return (["true": .flag(true), "false": .flag(false)][value.text], "true or false")
    case .time:
      guard let time = try time(value.text, name: name, in: context) else {
        return (nil, "a time such as 2026-01-31T12:00:00.000Z (RFC 3339), or so long ago as -5m")
      }
      return (.number(field == .since ? time...Int64.max : Int64.min...(time - 1)), "")
    case .size:
      switch field {
      case .sizeGreater: return (value.sizes(.above).map { .number($0) }, QueryValue.sizeForms)
      case .sizeLess: return (value.sizes(.below).map { .number($0) }, QueryValue.sizeForms)
      default: return (value.sizes().map { .number($0) }, QueryValue.sizeForms + QueryValue.sizeBounds)
      }
    }
  }

  private static func word(
    _ field: FilterField, name: String, value: QueryValue, words: [String], in context: FilterContext
  ) throws(FilterError) -> FilterTest {
    let pattern = TextPattern(pieces: value.pieces, foldsCase: false)
    let remaining = words.filter(pattern.matches)
    guard !remaining.isEmpty else {
      let guess = Spelling.nearest(to: value.text, among: words).map { "Did you mean \($0)? " } ?? ""
      throw FilterError(
        field: name, value: value.text, hint: "\(guess)It is one of \(words.joined(separator: ", ")).")
    }
    guard field == .is else { return .text(pattern) }
    let states = remaining.compactMap(FilterState.init)
    if states == [.duplicate], context.snapshot == nil {
      throw FilterError(
        field: name, value: value.text,
        hint: "It applies only to pushes in the inbox; a wait cannot use it.")
    }
    return .states(states)
  }

  /// Returns milliseconds since 1970; nil if the text is not a valid time.
  private static func time(_ text: String, name: String, in context: FilterContext) throws(FilterError) -> Int64? {
    if text.hasPrefix("-"), let duration = DurationFormat.duration(text) {
      guard let now = context.now else {
        throw FilterError(field: name, value: text, hint: "Here it is a time such as 2026-01-31T12:00:00.000Z.")
      }
      let (seconds, attoseconds) = duration.components
      let (time, overflow) = now.addingReportingOverflow(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
      return overflow || time == .min ? nil : time
    }
    // A plus sign in a query string decodes to a space, as in the zone +02:00.
    return TimestampFormat.milliseconds(text) ?? TimestampFormat.milliseconds(text.replacing(" ", with: "+"))
  }
}
