internal import Faults
internal import Notation

/// What a filter can ask for by a name of its own; the raw values are the names.
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

  /// What kind of values the field is compared with.
  enum Kind {
    /// Text, literal or with `*`.
    case text(foldsCase: Bool)
    /// Text that may stand anywhere in a longer one, without case.
    case anywhere
    /// One of a few words, or a `*` pattern over them.
    case word([String])
    /// A whole number, a bound, a range, or a `*` pattern over its digits.
    case number
    /// `true` or `false`.
    case flag
    /// A time: RFC 3339, or so long ago.
    case time
    /// A number of bytes, with or without a unit.
    case size
  }

  var kind: Kind {
    switch self {
    // Device tokens and ids are hexadecimal: clients differ in how they write the digits.
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

  /// Short names, which people write.
  static let aliases: [(name: String, field: FilterField)] = [
    ("token", .deviceToken), ("type", .pushType), ("id", .apnsID), ("collapse", .collapseID), ("larger", .sizeGreater),
    ("smaller", .sizeLess),
  ]

  /// The field that is called so, by its name or a short one.
  init?(named name: String) {
    if let field = FilterField(rawValue: name) ?? Self.aliases.first(where: { $0.name == name })?.field {
      self = field
    } else {
      return nil
    }
  }

  /// The names of all fields, in the order they are listed to people, and of the cursors that stand beside them.
  static let names = allCases.map(\.rawValue) + ["payload./pointer", "header.name", "after", "before"]
}

/// What a record can be besides its outcome; the raw values are the values of `is`.
enum FilterState: String, CaseIterable, Sendable {
  /// The same push came before.
  case retry
  /// It did not.
  case first
  /// It is held and has no answer yet.
  case pending
  /// APNs took it, as it took the same push before.
  case duplicate
}

/// What a condition looks at.
enum FilterSubject: Sendable, Equatable {
  /// A field of the record.
  case field(FilterField)
  /// The value that a JSON pointer names in the payload.
  case payload(JSONPointer)
  /// The values of a header field, by its name in small letters.
  case header(String)

  /// The largest number of names in a pointer.
  static let maxDepth = JSONPointer.maxQueryDepth

  /// What the name of a condition means.
  ///
  /// - Parameter further: names that may stand here besides those of fields, for the error's hint.
  /// - Throws: `FilterError`.
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

  /// What a JSON pointer into the payload means.
  ///
  /// - Parameter name: the name of the condition.
  /// - Throws: `FilterError`.
  init(pointer text: Substring, name: String, allowsRoot: Bool = false) throws(FilterError) {
    self = .payload(try JSONPointer(query: text, field: name, allowsRoot: allowsRoot))
  }

  /// How much looking at it takes: what is cheap is looked at first.
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
  /// An error about a field that does not exist; the hint has a guess and the fields there are.
  ///
  /// - Parameter further: names that are allowed at this place besides the fields of a filter.
  init(unknownField field: String, further: [String]) {
    let names = FilterField.names + further
    // A longer name is no typing error, and the search takes time.
    let guess =
      Spelling.nearest(to: String(field.prefix(40)), among: names + FilterField.aliases.map(\.name))
      .map { "did you mean \($0)? " } ?? ""
    let short = FilterField.aliases.map { "\($0.name) for \($0.field.rawValue)" }.joined(separator: ", ")
    self.init(
      name: field, message: "there is no field \"\(Self.shown(field))\" to filter by",
      hint: "\(guess)The fields are \(names.joined(separator: ", ")). In short: \(short).")
  }
}
