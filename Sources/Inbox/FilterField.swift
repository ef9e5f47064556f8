/// What a filter can ask for; the raw values are the names.
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
  case rule
  case profile
  case connection
  case listener
  case keyID = "key_id"
  case teamID = "team_id"
  case attempt
  case pushKey = "push_key"
  case since
  case until
  case sizeGreater = "size_gt"
  case sizeLess = "size_lt"
  case `is`

  /// What kind of values the field is compared with.
  enum Kind {
    /// Text, literal or with `*`.
    case text(foldsCase: Bool)
    /// One of a few words, or a `*` pattern over them.
    case word([String])
    /// A whole number, or a `*` pattern over its digits.
    case number
    /// `true` or `false`.
    case flag
    /// A time (RFC 3339).
    case time
    /// A number of bytes, with or without a unit.
    case size
  }

  var kind: Kind {
    switch self {
    // Device tokens and ids are hexadecimal: clients differ in how they write the digits.
    case .deviceToken, .apnsID, .pushKey: .text(foldsCase: true)
    case .topic, .reason, .pushType, .collapseID, .rule, .profile, .connection, .keyID, .teamID: .text(foldsCase: false)
    case .outcome: .word(Record.Outcome.allCases.map(\.rawValue))
    case .is: .word(["retry", "first", "pending"])
    case .status, .priority, .listener, .attempt: .number
    case .accepted: .flag
    case .since, .until: .time
    case .sizeGreater, .sizeLess: .size
    }
  }

  /// The names of all fields, in the order they are listed to people, and of the cursors that stand beside them.
  static let names = allCases.map(\.rawValue) + ["after", "before"]
}
