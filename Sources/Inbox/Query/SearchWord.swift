internal import APNSMockNotation
internal import APNSMockPushQuery
internal import APNSMockRules

/// A word of a search. It finds the pushes in which it occurs, and those of which it is a value that people read although it is
/// not in their text: a status, a reason, an outcome, a finding, a rule, an id, its test or its run.
struct SearchWord {
  private let text: String
  private let lowercased: String

  /// Creates a word; nil for a text in quotation marks or a pattern, which only occur in the text.
  init?(_ value: QueryValue) {
    guard !value.isQuoted, value.pieces.count == 1, !value.text.isEmpty else { return nil }
    (text, lowercased) = (value.text, value.text.lowercased())
  }

  /// Returns the conditions on fields of which the word is a value, in any case of its letters.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func terms(in context: FilterContext) throws(StoreUnavailable) -> [QueryTerm] {
    var terms = [
      equal(.reason, among: Reason.allCases.map(\.text)),
      equal(.outcome, among: Record.Outcome.allCases.map(\.rawValue)),
      equal(.environment, among: PushEnvironment.allCases.map(\.rawValue)),
      context.rulebook == nil ? nil : equal(.finding, among: Finding.Kind.allCases.map(\.rawValue)),
    ]
    if let status = Int(text), (100...599).contains(status) {
      terms.append(QueryTerm(name: QueryField.status.rawValue, value: text))
    }
    // These texts have several words.
    if text.utf8.count > 4 {
      terms += DeliveryState.allCases.map(\.text).filter { $0.lowercased().contains(lowercased) }.map {
        literal(.delivery, $0)
      }
    }
    if isIdentifier { terms.append(literal(.apnsID, text)) }
    if text.utf8.first == UInt8(ascii: "c"), text.utf8.count > 1, text.utf8.dropFirst().allSatisfy(Self.isDigit) {
      terms.append(literal(.connection, text))
    }
    // Key and team identifiers have ten characters.
    if text.utf8.count == 10, text.utf8.allSatisfy({ Self.isDigit($0) || (0x41...0x5A).contains($0) }) {
      terms += [literal(.keyID, text), literal(.teamID, text)]
    }
    for (field, name) in context.known?.faultNames(equalTo: lowercased) ?? [] { terms.append(literal(field, name)) }
    if let stored = context.snapshot?.records.stored, try stored.contains(name: text) {
      terms += [literal(.rule, text), literal(.profile, text), literal(.reason, text)]
    }
    return terms.compactMap(\.self) + owners(among: context.inbox?.runs.all ?? [])
  }

  /// The maximum number of runs, and of tests, whose names are compared with the pushes.
  private static let maxOwners = 500

  /// Returns the conditions on the runs and the tests whose names have the word.
  private func owners(among runs: [TestRun]) -> [QueryTerm] {
    guard text.utf8.count > 2 || runs.contains(where: { $0.id == text }) else { return [] }
    func isNamed(_ name: String) -> Bool { name.lowercased().contains(lowercased) }
    let ids = runs.lazy.filter { $0.id == text || isNamed($0.name) }.map(\.id)
    let tests = Set(runs.lazy.flatMap(\.tests).map(\.name).filter(isNamed))
    return ids.prefix(Self.maxOwners).map { literal(.run, $0) }
      + tests.sorted().prefix(Self.maxOwners).map { literal(.test, $0) }
  }

  /// Whether the word has the form of an `apns-id`.
  private var isIdentifier: Bool {
    text.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count) == [8, 4, 4, 4, 12]
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// Returns the condition that a field has the word as its value; nil if it is not one of the valid values.
  private func equal(_ field: QueryField, among values: [String]) -> QueryTerm? {
    values.first { $0.lowercased() == lowercased }.map { literal(field, $0) }
  }

  private func literal(_ field: QueryField, _ value: String) -> QueryTerm {
    QueryTerm(
      name: field.rawValue, value: QueryValue(text: value, pieces: [value], isQuoted: true, startsQuoted: true),
      isNegated: false)
  }
}
