import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockPushQuery

extension Condition {
  /// Parses a query into tests, one for each field.
  ///
  /// - Throws: `FilterError` with the position in the text.
  static func tests(query text: String) throws(FilterError) -> [Test] {
    let fields = QueryField.allCases.filter { Subject($0) != nil }
    var groups: [FieldConditions] = []
    var count = 0
    try QueryText.read(text) { term throws(FilterError) in
      let field = QueryField(named: term.name)
      if field.map({ !fields.contains($0) }) ?? ["after", "before"].contains(term.name) {
        throw FilterError(
          name: term.name, message: "\(term.name) is not available to rules",
          hint: (field?.replacementInRules.map { "Write \($0). " } ?? "") + QueryField.list(of: fields, for: term.name))
      }
      let condition = try QueryCondition(term, among: fields)
      count += 1
      guard count <= QueryText.maxConditions else { throw FilterError(tooManyConditions: term.name) }
      let index = groups.firstIndex { $0.subject == condition.subject } ?? groups.endIndex
      if index == groups.endIndex { groups.append(FieldConditions(condition.subject, name: term.name)) }
      try groups[index].add(condition)
    }
    return groups.compactMap { group in Subject(group).map { Test($0, .query(group)) } }
  }
}

extension Condition.Subject {
  /// Creates the subject of a query's conditions; nil for a field that rules cannot query.
  fileprivate init?(_ conditions: FieldConditions) {
    switch conditions.subject {
    case .field(let field): self.init(field)
    case .header(let name): self = .header(name: name)
    case .payload: self = .payload(pointer: String(conditions.name.dropFirst("payload.".count)))
    }
  }

  /// Creates the subject of a field; nil for one that is known only after the response or refers to a position in the
  /// inbox.
  init?(_ field: QueryField) {
    switch field {
    case .deviceToken: self = .deviceToken
    case .topic: self = .topic
    case .pushType: self = .pushType
    case .priority: self = .priority
    case .apnsID: self = .apnsID
    case .collapseID: self = .collapseID
    case .attempt: self = .attempt
    case .connection: self = .connection
    case .listener: self = .listener
    case .environment: self = .environment
    case .requestKind: self = .kind
    case .keyID: self = .keyID
    case .teamID: self = .teamID
    case .size, .sizeGreater, .sizeLess: self = .size
    case .text: self = .text
    case .status, .reason, .outcome, .decision, .ending, .violation, .accepted, .delivery, .pushKey, .rule, .profile,
      .finding, .run, .test, .since, .until, .is:
      return nil
    }
  }
}

extension QueryField {
  /// The condition to write in a rule instead of a field that rules cannot query; nil if there is none.
  fileprivate var replacementInRules: String? {
    switch self {
    case .status: "when: {status: …} with at: response"
    case .reason: "when: {reason: …} with at: response"
    case .is: "attempt:1 for is:first, attempt:>1 for is:retry"
    default: nil
    }
  }
}
