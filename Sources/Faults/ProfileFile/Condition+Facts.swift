import FaultModel

extension ConditionKey {
  /// The subject of the key; nil for `payload`, `header`, `jwt`, `q` and `not`.
  var subject: Condition.Subject? {
    switch self {
    case .deviceToken: .deviceToken
    case .topic: .topic
    case .pushType: .pushType
    case .priority: .priority
    case .collapseID: .collapseID
    case .apnsID: .apnsID
    case .size: .size
    case .client: .client
    case .address: .address
    case .age: .age
    case .idle: .idle
    case .listener: .listener
    case .serverName: .serverName
    case .certificate: .certificate
    case .attempt: .attempt
    case .status: .status
    case .reason: .reason
    case .payload, .header, .providerToken, .query, .not: nil
    }
  }
}

extension ProviderTokenKey {
  /// The subject of the key.
  var subject: Condition.Subject {
    switch self {
    case .age: .tokenAge
    case .teamID: .teamID
    case .keyID: .keyID
    }
  }
}

extension Condition.Subject {
  /// Returns whether traffic at an injection point can have this value.
  func isKnown(at injectionPoint: InjectionPoint) -> Bool {
    switch self {
    case .client, .address, .listener, .connection: true
    case .age, .idle: injectionPoint == .connection
    case .serverName: injectionPoint != .accept
    case .certificate: injectionPoint != .accept && injectionPoint != .tls
    case .status, .reason: injectionPoint == .response
    default: injectionPoint == .request || injectionPoint == .response
    }
  }

  /// Whether the value is part of the response.
  var isInResponse: Bool { self == .status || self == .reason }

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

  /// The kinds of match that the subject supports.
  var forms: [MatchKey] {
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
  var wholeRange: ClosedRange<Double>? {
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
  /// Returns whether no value of the subject is within the bounds.
  static func isEmpty(above: Double?, below: Double?, of subject: Subject) -> Bool {
    if let range = subject.wholeRange {
      let least = max(above.map { $0.rounded(.down) + 1 } ?? range.lowerBound, range.lowerBound)
      let most = min(below.map { $0.rounded(.up) - 1 } ?? range.upperBound, range.upperBound)
      return least > most
    }
    guard let above, let below else { return false }
    return above >= below
  }
}
