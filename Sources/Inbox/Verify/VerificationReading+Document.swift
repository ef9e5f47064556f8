internal import Faults
internal import Notation

extension Verification {
  /// The maximum number of expectations.
  static let maxExpectations = 100

  /// Parses a verification document.
  ///
  /// - Parameter json: A JSON object; see the documentation of `POST /api/v1/verify`.
  /// - Throws: `VerificationFailure` with all problems of the document.
  public init(json: [UInt8], in context: FilterContext = FilterContext()) throws(VerificationFailure) {
    if let problem = json.withUnsafeBytes({ JSONText.problem(in: $0) }) {
      throw VerificationFailure(problems: [
        VerificationProblem(pointer: "", message: "the document is not JSON: \(problem)", hint: "Send an object.")
      ])
    }
    var reading = VerificationReading(context)
    let verification = reading.verification(VerificationReading.Located(value: JSONValue(json[...]), pointer: ""))
    guard reading.problems.isEmpty else { throw VerificationFailure(problems: reading.problems) }
    self = verification
  }
}

/// The members of a document.
private enum DocumentKey: String, CaseIterable {
  case expect, order
  case allowsNoOthers = "no_others"
  case allowsNoLost = "nothing_lost"
  case refusedFindings = "no_findings"
  case timeout, settle, after
}

extension VerificationReading {
  /// Parses the whole document. The result is valid only if there are no problems.
  mutating func verification(_ place: Located) -> Verification {
    var verification = Verification()
    guard let members = members(place, what: "a verification", of: DocumentKey.self) else { return verification }
    if let place = members[.timeout] {
      verification.timeout = duration(place, most: WaitQuery.maxTimeout) ?? .zero
    }
    if let place = members[.settle] { verification.settle = duration(place, most: WaitQuery.maxTimeout) ?? .zero }
    if let place = members[.settle], verification.settle > verification.timeout {
      fail(
        place, "it is longer than the timeout, which is \(WrittenDuration.text(verification.timeout))",
        hint: "Make the timeout longer.")
    }
    if let place = members[.after] { verification.after = whole(place, in: 0...Int.max) ?? 0 }
    // The snapshot is only for conditions on existing records; a wait also counts later ones.
    if verification.timeout > .zero { context.snapshot = nil }
    if let place = members[.expect] { verification.expectations = expectations(place) }
    if let place = members[.order] { verification.order = order(place, among: verification.expectations) }
    if let place = members[.allowsNoOthers] { verification.allowsNoOthers = flag(place) ?? false }
    if let place = members[.allowsNoLost] { verification.allowsNoLost = flag(place) ?? false }
    if let place = members[.refusedFindings] { verification.refusedFindings = findings(place) }
    let criteria: [DocumentKey] = [.expect, .allowsNoOthers, .allowsNoLost, .refusedFindings]
    if criteria.allSatisfy({ members[$0] == nil }), problems.isEmpty {
      fail(
        place, "there are no expectations",
        hint: #"Add at least one: {"expect": [{"match": {"topic": "com.example.app"}, "count": {"exactly": 1}}]}."#)
    }
    return verification
  }

  private mutating func expectations(_ place: Located) -> [Expectation] {
    guard let elements = list(place, what: "a list of expectations") else { return [] }
    guard elements.count <= Verification.maxExpectations else {
      fail(
        place, "there are \(elements.count) expectations",
        hint: "At most \(Verification.maxExpectations) are allowed in one document.")
      return []
    }
    var expectations: [Expectation] = []
    for (index, element) in elements.enumerated() {
      // Keep an invalid expectation with its name, because `order` may refer to it.
      let expectation = expectation(element, number: index + 1)
      if expectations.contains(where: { $0.name == expectation.name }) {
        fail(
          element, "there is another expectation called \(ShownText.quoted(expectation.name))",
          hint: "Use unique names.")
      }
      expectations.append(expectation)
    }
    return expectations
  }

  private mutating func order(_ place: Located, among expectations: [Expectation]) -> [Int]? {
    guard let elements = list(place, what: "a list of names") else { return nil }
    let names = expectations.map(\.name)
    var order: [Int] = []
    for element in elements where !isFull {
      guard let name = text(element, what: "the name of an expectation") else { continue }
      guard let index = names.firstIndex(of: name) else {
        let list = names.prefix(20).map(ShownText.shortened).joined(separator: ", ")
        fail(
          element, "no expectation is called \(ShownText.quoted(name))",
          hint: names.isEmpty ? "There is none." : "\(Self.guess(name, among: names))Those that are: \(list).")
        continue
      }
      if order.contains(index) {
        fail(
          element, "\(ShownText.quoted(name)) is listed twice",
          hint: "The order applies to the first push of each; remove one of them.")
      }
      order.append(index)
    }
    return order.isEmpty ? nil : order
  }

  private mutating func findings(_ place: Located) -> Set<Finding.Kind>? {
    switch place.value {
    case .flag(true): return Set(Finding.Kind.allCases)
    case .flag(false): return nil
    case .list: return words(place, of: Finding.Kind.self, what: "finding").map(Set.init)
    default:
      wrong(place, "true, or a list of findings")
      return nil
    }
  }
}
