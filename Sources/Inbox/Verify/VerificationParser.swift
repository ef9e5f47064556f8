internal import FaultModel
internal import Notation
internal import PushQuery

/// Parses the values of a verification document and collects all problems.
///
/// Each method returns nil for an invalid value after adding a problem; the caller continues with the next value, so
/// that one pass finds all problems.
struct VerificationParser {
  /// A value and its position in the document.
  struct Located {
    let value: JSONValue
    /// A JSON pointer.
    let pointer: String

    /// Returns a value below this one.
    func member(_ name: String, _ value: JSONValue) -> Located {
      let name = name.replacing("~", with: "~0").replacing("/", with: "~1")
      return Located(value: value, pointer: "\(pointer)/\(name)")
    }

    /// A description of the value's type, for messages.
    var kind: String {
      switch value {
      case .null: "null"
      case .flag(let flag): String(flag)
      case .number(let text): "the number \(ReportText.shortened(text))"
      case .text(let text): "the string \(ReportText.quoted(text))"
      case .list: "a list"
      case .object: "an object"
      }
    }
  }

  /// The maximum number of problems that are reported.
  private static let limit = 50

  var context: FilterContext
  private(set) var problems: [VerificationProblem] = []

  /// Whether the maximum number of problems is reached. Callers then stop, because each misspelled word is compared
  /// with all known names.
  var isFull: Bool { problems.count >= Self.limit }

  init(_ context: FilterContext) { self.context = context }

  // MARK: - Problems

  mutating func fail(_ node: Located, _ message: String, hint: String) { fail(at: node.pointer, message, hint: hint) }

  mutating func fail(at pointer: String, _ message: String, hint: String) {
    guard !isFull else { return }
    problems.append(VerificationProblem(pointer: pointer, message: message, hint: hint))
  }

  mutating func fail(_ node: Located, _ error: FilterError) { fail(node, error.message, hint: error.hint) }

  /// Adds a problem that states the expected value.
  mutating func wrong(_ node: Located, _ wanted: String) {
    fail(node, "expected \(wanted), not \(node.kind)", hint: "Change it to \(wanted), or omit it.")
  }

  // MARK: - Structure

  /// Returns the members of an object. A duplicate name is a problem.
  mutating func entries(_ node: Located, what: String) -> [(name: String, node: Located)]? {
    guard case .object(let object) = node.value else {
      wrong(node, what)
      return nil
    }
    var names: Set<String> = []
    var entries: [(name: String, node: Located)] = []
    for (name, value) in object.entries {
      let member = node.member(name, value)
      guard names.insert(name).inserted else {
        fail(member, "\(ReportText.quoted(name)) is specified twice", hint: "Remove one of them.")
        continue
      }
      entries.append((name, member))
    }
    return entries
  }

  /// Returns the members of an object that has known names only; null counts as absent.
  mutating func members<Key: RawRepresentable<String> & CaseIterable & Hashable>(
    _ node: Located, what: String, of type: Key.Type = Key.self
  ) -> [Key: Located]? {
    guard let entries = entries(node, what: "an object") else { return nil }
    let names = Key.allCases.map(\.rawValue)
    var members: [Key: Located] = [:]
    for (name, member) in entries where !isFull {
      if let key = Key(rawValue: name) {
        if member.value != .null { members[key] = member }
      } else {
        let guess = Spelling.suggestion(for: name, among: names)
        fail(
          member, "\(what) has no \(ReportText.quoted(name))",
          hint: "\(guess)Expected one of \(names.joined(separator: ", ")).")
      }
    }
    return members
  }

  /// Returns the elements of a list.
  mutating func list(_ node: Located, what: String) -> [Located]? {
    guard case .list(let list) = node.value else {
      wrong(node, what)
      return nil
    }
    return list.elements.enumerated().map { node.member(String($0), $1) }
  }

  /// Returns the elements of a list, or the single value given instead of a list.
  mutating func listOrOne(_ node: Located) -> [Located] {
    guard case .list = node.value else { return [node] }
    return list(node, what: "a list") ?? []
  }

  // MARK: - Values

  mutating func text(_ node: Located, what: String) -> String? {
    guard case .text(let text) = node.value, !text.isEmpty else {
      wrong(node, what)
      return nil
    }
    return text
  }

  mutating func flag(_ node: Located) -> Bool? {
    guard case .flag(let flag) = node.value else {
      wrong(node, "true or false")
      return nil
    }
    return flag
  }

  mutating func whole(_ node: Located, in range: ClosedRange<Int>) -> Int? {
    if case .number(let text) = node.value, let number = Int(text), range.contains(number) { return number }
    let limits = range.upperBound == .max ? "" : " to \(range.upperBound)"
    wrong(node, "a whole number from \(range.lowerBound)\(limits)")
    return nil
  }

  /// Parses a duration from zero to `maximum`. The number 0 is allowed; other numbers lack a unit.
  mutating func duration(_ node: Located, maximum: Duration) -> Duration? {
    switch node.value {
    case .number("0"): return .zero
    case .number(let text):
      fail(
        node, "\(ReportText.shortened(text)) has no unit",
        hint: "Durations are strings such as \"500ms\" or \"\(ReportText.shortened(text))s\".")
    case .text(let text):
      if let duration = DurationFormat.duration(text), duration >= .zero, duration <= maximum { return duration }
      fail(
        node, "\(ReportText.quoted(text)) is not a duration up to \(DurationFormat.text(maximum))",
        hint: "Use one such as 500ms, 5s or 2m, at most \(DurationFormat.text(maximum)).")
    default: wrong(node, "a duration such as \"5s\"")
    }
    return nil
  }

  /// Parses one of the words of an enumeration, or a list of them.
  mutating func words<Word: RawRepresentable<String> & CaseIterable & Hashable>(
    _ node: Located, of type: Word.Type, what: String
  ) -> [Word]? {
    let elements = listOrOne(node)
    let words = elements.compactMap { isFull ? nil : word($0, of: type, what: what) }
    if elements.isEmpty { fail(node, "the list is empty", hint: "Add at least one, or omit it.") }
    return words.count == elements.count && !words.isEmpty ? words : nil
  }

  private mutating func word<Word: RawRepresentable<String> & CaseIterable & Hashable>(
    _ node: Located, of type: Word.Type, what: String
  ) -> Word? {
    let names = Word.allCases.map(\.rawValue)
    guard case .text(let text) = node.value, let word = Word(rawValue: text) else {
      var guess = ""
      var former = ""
      if case .text(let text) = node.value, what == "outcome" {
        former = QueryField.formerWords[text].map { $0 + " " } ?? ""
      }
      if case .text(let text) = node.value { guess = Spelling.suggestion(for: text, among: names) }
      fail(
        node, "\(node.kind) is not a valid \(what)",
        hint: "\(former)\(guess)Expected one of \(names.joined(separator: ", "))."
      )
      return nil
    }
    return word
  }
}

extension Verification {
  /// The maximum number of expectations.
  static let maxExpectations = 100

  /// Parses a verification document.
  ///
  /// - Parameter json: A JSON object; see the documentation of `POST /api/v1/verify`.
  /// - Throws: `VerificationFailure` with all problems of the document.
  package init(json: [UInt8], in context: FilterContext = FilterContext()) throws(VerificationFailure) {
    if let problem = json.withUnsafeBytes({ JSONText.problem(in: $0) }) {
      throw VerificationFailure(problems: [
        VerificationProblem(pointer: "", message: "the document is not JSON: \(problem)", hint: "Send an object.")
      ])
    }
    var reading = VerificationParser(context)
    let verification = reading.verification(VerificationParser.Located(value: JSONValue(json[...]), pointer: ""))
    guard reading.problems.isEmpty else { throw VerificationFailure(problems: reading.problems) }
    self = verification
  }
}

/// The members of a document.
private enum DocumentKey: String, CaseIterable {
  case expect, order
  case allowsNoOthers = "no_others"
  case requiresNothingLost = "nothing_lost"
  case refusedFindings = "no_findings"
  case timeout, settle, after, scope
}

extension VerificationParser {
  /// Parses the whole document. The result is valid only if there are no problems.
  mutating func verification(_ node: Located) -> Verification {
    var verification = Verification()
    guard let members = members(node, what: "a verification", of: DocumentKey.self) else { return verification }
    if let node = members[.timeout] {
      verification.timeout = duration(node, maximum: WaitQuery.maxTimeout) ?? .zero
    }
    if let node = members[.settle] { verification.settle = duration(node, maximum: WaitQuery.maxTimeout) ?? .zero }
    if let node = members[.settle], verification.settle > verification.timeout {
      fail(
        node, "it is longer than the timeout, which is \(DurationFormat.text(verification.timeout))",
        hint: "Make the timeout longer.")
    }
    if let node = members[.after] { verification.after = whole(node, in: 0...Int.max) ?? 0 }
    // The snapshot is only for conditions on existing records; a wait also counts later ones.
    if verification.timeout > .zero { context.snapshot = nil }
    if let node = members[.scope] { verification.scope = scope(node) ?? Filter() }
    if let node = members[.expect] { verification.expectations = expectations(node) }
    if verification.scope.namesKind {
      for index in verification.expectations.indices {
        verification.expectations[index].selection.includesAllKinds = true
      }
    }
    if let node = members[.order] { verification.order = order(node, among: verification.expectations) }
    if let node = members[.allowsNoOthers] { verification.allowsNoOthers = flag(node) ?? false }
    if let node = members[.requiresNothingLost] { verification.requiresNothingLost = flag(node) ?? false }
    if let node = members[.refusedFindings] { verification.refusedFindings = findings(node) }
    let criteria: [DocumentKey] = [.expect, .allowsNoOthers, .requiresNothingLost, .refusedFindings]
    if criteria.allSatisfy({ members[$0] == nil }), problems.isEmpty {
      fail(
        node, "there are no expectations",
        hint: #"Add at least one: {"expect": [{"match": {"topic": "com.example.app"}, "count": {"exactly": 1}}]}."#)
    }
    return verification
  }

  private mutating func scope(_ node: Located) -> Filter? {
    guard let query = text(node, what: "a query such as \"topic:com.example.app\"") else { return nil }
    do {
      return try Filter(scope: query, in: context)
    } catch {
      fail(node, error)
      return nil
    }
  }

  private mutating func expectations(_ node: Located) -> [Expectation] {
    guard let elements = list(node, what: "a list of expectations") else { return [] }
    guard elements.count <= Verification.maxExpectations else {
      fail(
        node, "there are \(elements.count) expectations",
        hint: "At most \(Verification.maxExpectations) are allowed in one document.")
      return []
    }
    var expectations: [Expectation] = []
    for (index, element) in elements.enumerated() {
      // Keep an invalid expectation with its name, because `order` may refer to it.
      let expectation = expectation(element, number: index + 1)
      if expectations.contains(where: { $0.name == expectation.name }) {
        fail(
          element, "there is another expectation called \(ReportText.quoted(expectation.name))",
          hint: "Use unique names.")
      }
      expectations.append(expectation)
    }
    return expectations
  }

  private mutating func order(_ node: Located, among expectations: [Expectation]) -> [Int]? {
    guard let elements = list(node, what: "a list of names") else { return nil }
    let names = expectations.map(\.name)
    var order: [Int] = []
    for element in elements where !isFull {
      guard let name = text(element, what: "the name of an expectation") else { continue }
      guard let index = names.firstIndex(of: name) else {
        let list = names.prefix(20).map(ReportText.shortened).joined(separator: ", ")
        fail(
          element, "no expectation is called \(ReportText.quoted(name))",
          hint: names.isEmpty
            ? "There is none." : "\(Spelling.suggestion(for: name, among: names))Those that are: \(list).")
        continue
      }
      if order.contains(index) {
        fail(
          element, "\(ReportText.quoted(name)) is listed twice",
          hint: "The order applies to the first push of each; remove one of them.")
      }
      order.append(index)
    }
    return order.isEmpty ? nil : order
  }

  private mutating func findings(_ node: Located) -> Set<Finding.Kind>? {
    switch node.value {
    case .flag(true): return Set(Finding.Kind.allCases)
    case .flag(false): return nil
    case .list: return words(node, of: Finding.Kind.self, what: "finding").map(Set.init)
    default:
      wrong(node, "true, or a list of findings")
      return nil
    }
  }
}
