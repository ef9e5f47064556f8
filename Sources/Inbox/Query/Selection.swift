package import APNSMockNotation
internal import APNSMockPushQuery

/// A selection of records: those that match a filter, between two cursors. Only pushes are selected unless a condition
/// names the field `kind`.
package struct Selection: Sendable {
  /// The conditions on the records, including those of `scope`.
  package var filter = Filter()
  /// The pushes of one of several test suites that share the server; empty for all pushes. Pushes outside of it are
  /// not even reported as similar.
  var scope = Filter()
  /// Only records with a larger `seq` are selected.
  package var after = 0
  /// Only records with a smaller `seq` are selected.
  package var before = Int.max
  /// Whether records of all kinds are selected although no condition names `kind`.
  package var includesAllKinds = false

  /// Creates a selection of all pushes.
  package init() {}

  /// A selection of all records.
  package static var allKinds: Selection {
    var selection = Selection()
    selection.includesAllKinds = true
    return selection
  }

  /// Creates a selection from parameters: the fields of a filter, `after`, `before`, `seqs` with a list of records, `!seqs` with
  /// a list of records to leave out, `q` with the text of a query, `search` with a query whose words without a field must occur
  /// anywhere in a record, and `scope` with a query that the records must match as well.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  package init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for (name, value) in parameters { try add(name: name, value: value, in: context) }
  }

  /// Whether only pushes are selected, because no condition names `kind`.
  var isOfPushesOnly: Bool { !includesAllKinds && !filter.namesKind }

  /// Whether there are no conditions, so that all pushes are selected.
  package var isEverything: Bool { filter.isEmpty && after == 0 && before == .max }

  /// Adds a condition from one parameter.
  ///
  /// - Parameter additionalNames: Names that are allowed in addition to those of a selection, for the error's hint.
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  mutating func add(
    name: String, value: String, additionalNames: [String] = [], in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    switch name {
    case "q": try QueryText.read(value) { term throws(FilterError) in try add(term, in: context) }
    case "search":
      try QueryText.read(value, allowsWords: true) { term throws(FilterError) in
        if term.name.isEmpty { try filter.add(word: term, in: context) } else { try add(term, in: context) }
      }
    case "seqs", "!seqs":
      let isExcluded = name.hasPrefix("!")
      guard (isExcluded ? filter.excludedSeqs : filter.seqs) == nil else {
        throw FilterError(field: name, value: value, hint: "Use it once, with all numbers separated by commas.")
      }
      let seqs = try Self.seqs(name, value, in: context)
      if isExcluded { filter.excludedSeqs = seqs } else { filter.seqs = seqs }
    case "scope":
      let query = try Filter(scope: value, in: context)
      try scope.formIntersection(query)
      try filter.formIntersection(query)
    default:
      try add(
        QueryTerm(name: name, value: value), additionalNames: ["q", "search", "seqs", "scope"] + additionalNames,
        in: context)
    }
  }

  /// Adds the condition that a field has exactly this value.
  mutating func add(literal value: String, of field: QueryField) throws(FilterError) {
    try filter.add(
      QueryTerm(
        name: field.rawValue, value: QueryValue(text: value, pieces: [value], isQuoted: true, startsQuoted: true),
        isNegated: false), in: FilterContext())
  }

  private mutating func add(
    _ term: QueryTerm, additionalNames: [String] = [], in context: FilterContext
  ) throws(FilterError) {
    switch (term.name, term.isNegated) {
    // A cursor given both in a query and as a parameter narrows the selection: that of a page must not widen it.
    case ("after", false):
      after = max(after, try Self.seq(term.name, term.value.text, in: context))
    case ("before", false):
      before = min(before, try Self.seq(term.name, term.value.text, in: context))
    case ("after", true), ("before", true):
      let other = term.name == "after" ? "before" : "after"
      throw FilterError(
        name: term.name, message: "\(term.name) cannot be negated", hint: "Use \(other), which selects the other side.")
    default: try filter.add(term, additionalNames: additionalNames, in: context)
    }
  }

  /// Parses a list of records.
  private static func seqs(_ name: String, _ value: String, in context: FilterContext) throws(FilterError) -> SeqRanges
  {
    if context.inbox?.isOfSeveralServers == true {
      let names = value.split(separator: ",", omittingEmptySubsequences: false)
      guard names.count <= SeqRanges.maxCount else {
        throw FilterError(field: name, value: value, hint: "Use at most \(SeqRanges.maxCount) pushes.")
      }
      return SeqRanges(
        Set(try names.map { text throws(FilterError) in try Self.seq(name, String(text), in: context) }).sorted())
    }
    guard let seqs = SeqRanges(value) else {
      throw FilterError(
        field: name, value: value,
        hint: "Use a list such as 4,7-9 of ascending seq values and ranges, at most \(SeqRanges.maxCount) of them.")
    }
    return seqs
  }

  /// Parses the `seq` of a record, or 0: a number, or in a view of several servers a text such as `load_1:4711`.
  static func seq(_ name: String, _ value: String, in context: FilterContext) throws(FilterError) -> Int {
    guard let inbox = context.inbox, inbox.isOfSeveralServers, value != "0" else {
      return try whole(name, value, in: 0...Int.max, hint: "a whole number from 0, the seq of a record")
    }
    let found: Int?
    do throws(StoreUnavailable) {
      found = try RecordOrigin(value).flatMap { origin throws(StoreUnavailable) in try inbox.seq(of: origin) }
    } catch {
      throw FilterError(
        name: name, message: "the pushes of the servers cannot be read: \(error.problem)", hint: "Repeat the request.")
    }
    guard let found else {
      throw FilterError(
        field: name, value: value,
        hint: "Use the server and the seq of a push, such as load_1:4711: this is a view of several servers.")
    }
    return found
  }

  /// Parses an integer in `range`.
  static func whole(
    _ name: String, _ value: String, in range: ClosedRange<Int>, hint: String
  ) throws(FilterError) -> Int {
    guard let number = Int(value), range.contains(number) else {
      throw FilterError(field: name, value: value, hint: "Use \(hint).")
    }
    return number
  }
}
