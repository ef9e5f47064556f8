internal import APNSMockNotation
internal import APNSMockPushQuery

/// The pushes that are most similar to an expectation that too few pushes meet.
struct NearestPushes {
  typealias Nearest = VerificationReport.Nearest
  typealias Criterion = VerificationReport.Criterion

  /// The maximum number of records examined, newest first. With many conditions it is lower, so that all
  /// expectations together evaluate at most `maxComparisons` conditions.
  private static let maxExamined = 10_000
  private static let maxComparisons = 200_000
  /// The number of records with equally many conditions met whose values are compared, newest first.
  private static let compared = 200
  /// The maximum number of pushes reported.
  private static let maxReported = 3

  private let expectation: Expectation
  /// Each field with conditions and the filter it belongs to, in the order of the report.
  private let parts: [(group: Filter.Group, filter: Filter)]

  init(_ expectation: Expectation) {
    self.expectation = expectation
    let matching = expectation.selection.filter.groups.map { (group: $0, filter: expectation.selection.filter) }
    let ending = expectation.ending.groups.map { (group: $0, filter: expectation.ending) }
    let start = matching.prefix { $0.group.conditions.subject.evaluationRank == 0 }
    parts = start + ending + matching.dropFirst(start.count)
  }

  /// Returns the pushes that meet the most conditions. Among equals, those with similar values come first, then the
  /// newest.
  ///
  /// - Parameters:
  ///   - scope: Only records that match are examined.
  ///   - after: Only records with a larger `seq` are examined.
  ///   - others: The number of expectations that share the budget of evaluated conditions.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func find(
    in snapshot: InboxSnapshot, scope: Filter, after: Int, oneOf others: Int
  ) throws(StoreUnavailable) -> [Nearest] {
    guard !parts.isEmpty else { return [] }
    let examined = min(Self.maxExamined, Self.maxComparisons / (parts.count * max(1, others)))
    var window = Selection()
    window.filter = scope
    window.includesAllKinds = !expectation.selection.isOfPushesOnly
    window.after = max(after, expectation.selection.after, snapshot.lastSeq - examined)
    window.before = expectation.selection.before
    let ranks = try snapshot.records(
      in: window, byConditionsMetOf: [expectation.selection.filter, expectation.ending], limit: Self.compared)
    var nearest: [Nearest] = []
    for records in ranks.reversed() where !records.isEmpty && nearest.count < Self.maxReported {
      var candidates = records.map(candidate)
      candidates.sort { ($0.hints, $0.nearest.seq) > ($1.hints, $1.nearest.seq) }
      nearest += candidates.prefix(Self.maxReported - nearest.count).map(\.nearest)
    }
    return nearest
  }

  private func candidate(_ record: Record) -> (nearest: Nearest, hints: Int) {
    let criteria = parts.map { criterion($0.group, of: $0.filter, record) }
    let id = record.withID { $0.map { String(decoding: $0, as: UTF8.self) } }
    let nearest = Nearest(
      seq: record.seq, name: record.name, apnsID: id, criteria: criteria, advice: record.rejectionDetail)
    return (nearest, criteria.count { $0.hint != nil })
  }

  private func criterion(_ group: Filter.Group, of filter: Filter, _ record: Record) -> Criterion {
    var cache = FilterEvaluationCache()
    let conditions = group.conditions
    let isMet = record.satisfies(group, of: filter, &cache)
    let values = record.values(of: conditions.subject, for: filter)
    var (wanted, found) = (conditions.wantedText, conditions.text(of: values, isMet: isMet))
    var hint: String?
    if !isMet, let literal = conditions.literal {
      if case .text(let one) = literal, wanted.hasPrefix("\""), values.count == 1, case .text(let other)? = values.first
      {
        (wanted, found) = ReportText.quoted(one, other)
      }
      hint = values.lazy.compactMap { ValueDifference.hint(wanted: literal, found: $0) }.first
    }
    if !isMet, values.isEmpty, case .payload = conditions.subject, !conditions.wanted.isEmpty {
      hint = ValueDifference.hint(pointer: conditions.reportName, in: record)
    }
    if conditions.subject == .field(.text) { found = isMet ? "in it" : "not in it" }
    return Criterion(
      name: conditions.reportName, wanted: wanted, found: found.isEmpty ? "nothing" : found, isMet: isMet, hint: hint)
  }
}

extension InboxSnapshot {
  /// Returns the records that do not meet all conditions of `filters`, by the number of fields whose conditions they
  /// meet.
  ///
  /// - Parameter limit: The maximum number of records for each number of fields. The newest are returned, newest
  ///   first.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func records(
    in window: Selection, byConditionsMetOf filters: [Filter], limit: Int
  ) throws(StoreUnavailable) -> [[Record]] {
    var ranks: [[Record]] = Array(repeating: [], count: filters.reduce(0) { $0 + $1.fieldCount })
    try records.forEach(in: window, newestFirst: true) { record in
      var met = 0
      for filter in filters { met += filter.metCount(record) }
      if met < ranks.count, ranks[met].count < limit { ranks[met].append(copy record) }
      return true
    }
    return ranks
  }
}

extension FieldConditions {
  /// The name in reports: the field, or the pointer alone.
  fileprivate var reportName: String {
    guard case .payload = subject else { return name }
    let pointer = name.dropFirst("payload.".count)
    return pointer.isEmpty ? "payload" : String(pointer)
  }

  /// The wanted values as text, such as `"a" or "b", not "c"`.
  fileprivate var wantedText: String {
    let positive = conditions.filter { !$0.term.isNegated }.map(\.wantedText).joined(separator: " or ")
    let negative = conditions.filter(\.term.isNegated).map(\.wantedText)
    return ([positive] + negative).filter { !$0.isEmpty }.joined(separator: ", ")
  }

  /// Returns the found values as text. Words of a fixed set and matching values have no quotation marks.
  fileprivate func text(of values: [JSONValue], isMet: Bool) -> String {
    values.map { value in
      guard case .text(let text) = value, case .field(let field) = subject else { return ReportText.value(value) }
      if case .word = field.kind { return ReportText.shortened(text) }
      return isMet ? ReportText.shortened(text) : ReportText.quoted(text)
    }.joined(separator: ", ")
  }

  /// The single wanted value, if it is a literal.
  fileprivate var literal: JSONValue? {
    let wanted = conditions.filter { !$0.term.isNegated }
    guard wanted.count == 1, let condition = wanted.first else { return nil }
    switch condition.test {
    case .value(.json(let value)): return value
    case .text(let pattern) where condition.hasQuotableText && pattern.literal != nil,
      .value(.text(let pattern, _, _)) where pattern.literal != nil:
      return .text(condition.term.value.text)
    default: return nil
    }
  }
}

extension QueryCondition {
  fileprivate var wantedText: String {
    let text = term.value.text
    if case .value(.json(let value)) = test { return ReportText.value(value) }
    if text == "*" { return term.isNegated ? "nothing" : "something" }
    return (term.isNegated ? "not " : "") + (hasQuotableText ? ReportText.quoted(text) : ReportText.shortened(text))
  }

  /// Whether the value is a text that is not one of a fixed set of words.
  fileprivate var hasQuotableText: Bool {
    switch (test, subject) {
    case (.value(.within), _), (.number, _): return false
    case (.text, .field(let field)):
      switch field.kind {
      case .word, .number, .flag: return false
      default: return true
      }
    default: return true
    }
  }
}
