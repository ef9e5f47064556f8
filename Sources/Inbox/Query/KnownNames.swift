internal import APNSMockRules
package import APNSMockFaultModel
internal import APNSMockNotation
internal import APNSMockPushQuery

/// The valid names in conditions on `rule`, `profile`, `reason` and `finding`. A condition with a misspelled name
/// would match nothing, and a test that uses it would pass without checking anything.
package struct KnownNames: Sendable {
  /// Sources of fault names, the cheapest first.
  private let faults: [@Sendable () -> FaultNames]

  /// Creates the valid names. Reasons of APNs and findings are always included.
  ///
  /// - Parameter faults: Sources of the names that faults can put into records, queried in order until one has the
  ///   name.
  package init(faults: [@Sendable () -> FaultNames]) { self.faults = faults }

  /// Returns the error of a condition with an unknown name, with the most similar one; nil if the value is valid. Patterns with `*`
  /// and other fields are not checked.
  ///
  /// - Parameter inbox: Records whose values are valid too. They are only searched for a name that is not known
  ///   otherwise.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func problem(
    _ field: QueryField, _ term: QueryTerm, inbox: InboxSnapshot?
  ) throws(StoreUnavailable) -> FilterError? {
    let value = term.value
    guard value.pieces.count == 1, let names = names(field) else { return nil }
    var known: Set<String> = []
    for names in names {
      let some = names()
      if some.contains(value.text) { return nil }
      known.formUnion(some)
    }
    if field != .finding, let inbox, try Self.occurs(field, value, in: inbox) { return nil }
    let sorted = known.sorted()
    // Limit the length: a longer word is not a typo, and the comparison takes time.
    let guess = Spelling.suggestion(for: value.text, among: sorted)
    let list = sorted.isEmpty ? "" : "The known names are \(sorted.listed(Self.listed)). "
    return FilterError(
      name: term.name, message: "unknown \(field.rawValue) \(ReportText.quoted(value.text))",
      hint: "\(guess)\(list)A pattern with * is not checked.")
  }

  /// Returns the fields and the values of which one is `name`, which is in lower case.
  func faultNames(equalTo name: String) -> [(field: QueryField, value: String)] {
    faults.flatMap { source in
      let names = source()
      return [(QueryField.rule, names.rules), (.profile, names.profiles), (.reason, names.reasons)].flatMap {
        field, values in
        values.lazy.filter { $0.lowercased() == name }.map { (field, $0) }
      }
    }
  }

  /// The maximum number of names listed in an error.
  private static let listed = 50

  /// Returns the sources of the names of a field; nil for a field with arbitrary values.
  private func names(_ field: QueryField) -> [() -> Set<String>]? {
    switch field {
    case .finding: [{ Set(Finding.Kind.allCases.map(\.rawValue)) }]
    case .reason: [{ Set(Reason.allCases.map(\.text)) }] + faults.map { source in { source().reasons } }
    case .rule: faults.map { source in { source().rules } }
    case .profile: faults.map { source in { source().profiles } }
    default: nil
    }
  }

  /// Returns whether a record has the value. The search ends at the first one. A store has a list of these names,
  /// and may still have those of records that were removed.
  private static func occurs(
    _ field: QueryField, _ value: QueryValue, in inbox: InboxSnapshot
  ) throws(StoreUnavailable) -> Bool {
    var selection = Selection.allKinds
    let term = QueryTerm(name: field.rawValue, value: value, isNegated: false)
    guard (try? selection.filter.add(term, in: FilterContext())) != nil else { return false }
    if let stored = inbox.records.stored, try stored.contains(name: value.text) { return true }
    var occurs = false
    inbox.records.recent.forEach(in: selection, newestFirst: true) { _ in
      occurs = true
      return false
    }
    return occurs
  }
}
