extension ConditionKey {
  /// What it looks at; nil for those that are maps of their own.
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
  /// What it looks at.
  var subject: Condition.Subject {
    switch self {
    case .age: .tokenAge
    case .teamID: .teamID
    case .keyID: .keyID
    }
  }
}

extension Condition.Subject {
  /// Whether there can be anything to look at.
  func isKnown(at moment: Moment) -> Bool {
    switch self {
    case .client, .address, .listener, .connection: true
    case .age, .idle: moment == .connection
    case .serverName: moment != .accept
    case .certificate: moment != .accept && moment != .tls
    case .status, .reason: moment == .response
    default: moment == .request || moment == .response
    }
  }

  /// Whether it is part of the answer.
  var isAnswer: Bool { self == .status || self == .reason }

  /// Whether letters are compared without case.
  var foldsCase: Bool {
    switch self {
    case .deviceToken, .apnsID, .serverName: true
    default: false
    }
  }

  /// A text to compare with.
  func folded(_ text: String) -> String { foldsCase ? text.lowercased() : text }

  /// What its values are called where they are often written as numbers.
  var thing: String? {
    switch self {
    case .deviceToken: "device tokens"
    case .collapseID: "collapse ids"
    case .keyID: "key ids"
    case .teamID: "team ids"
    default: nil
    }
  }

  /// Whether its values are durations.
  var isDuration: Bool { self == .tokenAge || self == .age || self == .idle }

  /// What can be asked of it.
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

  /// The whole numbers it can be, if it is a whole number.
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
  /// Whether no value of the subject lies within the bounds.
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
