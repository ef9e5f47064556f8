internal import APNSMockNotation
import APNSMockFaultModel
internal import APNSMockRules

extension Condition.Subject {
  /// Returns whether traffic at an injection point can have this value.
  func isKnown(at injectionPoint: InjectionPoint) -> Bool {
    switch self {
    case .client, .address, .listener, .environment, .connection: true
    case .age, .idle: injectionPoint == .connection
    case .serverName: injectionPoint != .accept
    case .certificate: injectionPoint != .accept && injectionPoint != .tls
    case .status, .reason: injectionPoint == .response
    default: injectionPoint == .request || injectionPoint == .response
    }
  }

  /// The hint for a rule at an injection point where the value is not known.
  var injectionPointHint: String {
    "use at: \(InjectionPoint.allCases.filter(isKnown).map(\.rawValue).joinedWithOr)"
  }

  /// The plural name of values that are often written as numbers, for hints; nil for other subjects.
  var pluralName: String? {
    switch self {
    case .deviceToken: "device tokens"
    case .collapseID: "collapse ids"
    case .keyID: "key ids"
    case .teamID: "team ids"
    default: nil
    }
  }

  /// Whether the values are durations.
  var isDuration: Bool { self == .tokenAge || self == .age || self == .idle }

  /// The kind of match, with the values that can be compared with.
  var matcher: Condition.Matcher {
    switch self {
    case .pushType: .text(PushType.allCases.map(\.text))
    case .reason: .text(Reason.allCases.map(\.text))
    case .environment: .text(PushEnvironment.allCases.map(\.rawValue))
    case .kind: .text(RequestKind.allCases.map(\.rawValue))
    case .address: .address
    case .priority: .integer(0...255)
    case .listener: .integer(0...65_535)
    case .attempt: .integer(1...Int(Int32.max))
    case .status: .integer(200...599)
    case .size: .size
    case .tokenAge, .age, .idle: .duration
    case .payload: .json
    default: .text([])
    }
  }

  /// The keys of a requirement that the subject supports.
  var matchKeys: [MatchKey] {
    switch self {
    case .priority, .size, .listener, .attempt, .status: [.equals, .oneOf, .present, .above, .below]
    case .tokenAge: [.above, .below, .present]
    case .age, .idle: [.above, .below]
    case .address: [.equals, .glob, .oneOf]
    case .payload: MatchKey.allCases
    default: [.equals, .prefix, .glob, .oneOf, .present]
    }
  }

  /// The range of the values if they are whole numbers; otherwise nil.
  var integerRange: ClosedRange<Double>? {
    switch self {
    case .priority: 1...10
    case .size, .listener: 0...Double.greatestFiniteMagnitude
    case .attempt: 1...Double.greatestFiniteMagnitude
    case .status: 200...599
    default: nil
    }
  }
}

extension Condition {
  /// The kinds of match for a value of the traffic.
  enum Matcher: Sendable {
    /// Equality, `prefix`, `glob`, `in`, `present`. The associated words are examples of values.
    case text([String])
    /// Equality, `glob`, `in` with addresses and blocks.
    case address
    /// Equality, `in`, `gt`, `lt`, `present`.
    case integer(ClosedRange<Int>)
    /// Equality, `in`, `gt`, `lt`, `present` with a number of bytes.
    case size
    /// `gt`, `lt`, `present`.
    case duration
    /// A JSON scalar, with all kinds of match.
    case json

    /// A value to compare with, or a requirement that is written as a map.
    var form: SchemaForm {
      let requirement = SchemaForm.reference(name)
      return switch self {
      case .text(let words): .either(.text(examples: words), requirement)
      case .address: .either(.text(examples: ["192.0.2.7", "10.0.0.0/8", "10.0.*"]), requirement)
      case .integer(let range): .either(.integer(range), requirement)
      case .size: .either(.size, requirement)
      case .duration: requirement
      case .json: .either(.scalar, requirement)
      }
    }

    /// The name of the requirement's definition in the JSON Schema.
    var name: String {
      switch self {
      case .text: "match_text"
      case .address: "match_address"
      case .integer, .size: "match_number"
      case .duration: "match_duration"
      case .json: "match_json"
      }
    }
  }

  /// Returns whether no value of the subject is within the bounds.
  static func isEmpty(above: Double?, below: Double?, of subject: Subject) -> Bool {
    if let range = subject.integerRange {
      let least = max(above.map { $0.rounded(.down) + 1 } ?? range.lowerBound, range.lowerBound)
      let most = min(below.map { $0.rounded(.up) - 1 } ?? range.upperBound, range.upperBound)
      return least > most
    }
    guard let above, let below else { return false }
    return above >= below
  }
}
