internal import APNSRules
public import Faults
internal import Notation

/// The names that conditions on `rule`, `profile`, `reason` and `finding` can have: a condition with another name would
/// match nothing, and a test with it would pass without a check.
public struct KnownNames: Sendable {
  /// Names of faults, what costs the least first.
  private let faults: [@Sendable () -> FaultNames]

  /// The names that faults can put into records. The tables of reasons and findings are always known.
  ///
  /// - Parameter faults: asked in their order, until one knows the name.
  public init(faults: [@Sendable () -> FaultNames]) { self.faults = faults }

  /// Checks the value of a condition. Patterns with `*` and other fields pass.
  ///
  /// - Parameter inbox: the records, whose values are known too. They are only searched for a name that no table has.
  /// - Throws: `FilterError` with a guess.
  func check(
    _ field: FilterField, name: String, value: QueryValue, inbox: InboxSnapshot?
  ) throws(FilterError) {
    guard value.pieces.count == 1, let names = names(field) else { return }
    var known: Set<String> = []
    for names in names {
      let some = names()
      if some.contains(value.text) { return }
      known.formUnion(some)
    }
    if field != .finding, let inbox, Self.occurs(field, value, in: inbox) { return }
    let sorted = known.sorted()
    // Comparing takes time with the length, and nobody mistypes a name as long as that.
    let guess = Spelling.nearest(to: String(value.text.prefix(40)), among: sorted).map { "Did you mean \($0)? " } ?? ""
    let list = sorted.count > Self.listed ? "" : "Known are \(sorted.joined(separator: ", ")). "
    throw FilterError(
      name: name, message: "there is no \(field.rawValue) \(ShownText.quoted(value.text))",
      hint: "\(guess)\(list)A pattern with * is not checked.")
  }

  /// So many names are listed in an error at most.
  private static let listed = 50

  /// Where the names of a field are; nil for a field that takes any value.
  private func names(_ field: FilterField) -> [() -> Set<String>]? {
    switch field {
    case .finding: [{ Set(Finding.Kind.allCases.map(\.rawValue)) }]
    case .reason: [{ Set(Reason.allCases.map(\.text)) }] + faults.map { source in { source().reasons } }
    case .rule: faults.map { source in { source().rules } }
    case .profile: faults.map { source in { source().profiles } }
    default: nil
    }
  }

  /// Whether a record has the value. The search ends at the first one.
  private static func occurs(_ field: FilterField, _ value: QueryValue, in inbox: InboxSnapshot) -> Bool {
    var selection = Selection()
    let term = QueryTerm(name: field.rawValue, value: value, isNegated: false)
    guard (try? selection.filter.add(term, in: FilterContext())) != nil else { return false }
    var occurs = false
    inbox.records.forEach(in: selection, newestFirst: true) { _ in
      occurs = true
      return false
    }
    return occurs
  }
}
