package import APNSMockRules
package import APNSMockNotation
internal import APNSMockPushQuery

/// A set of conditions on records, built from request parameters and query text.
///
/// Conditions on different fields must all hold. Among several conditions on one field, any one is enough, and none
/// of the negated ones may hold. A condition with a value never holds for a record that lacks the field. Each JSON
/// pointer and each header name is a field of its own.
package struct Filter: Sendable {
  /// All conditions on one field.
  struct Group: Sendable {
    private(set) var conditions: FieldConditions
    /// How the conditions are evaluated on many records.
    private(set) var evaluation = FieldEvaluation.byRecord
    /// The quick test before expensive conditions are evaluated.
    private(set) var prefilter = FieldPrefilter()

    /// Conditions on other fields, of which one is enough instead: a search word may be the value of a field.
    fileprivate(set) var alternatives: [Group] = []

    /// The quick test in a store, which cannot test the alternatives.
    var storePrefilter: FieldPrefilter { alternatives.isEmpty ? prefilter : FieldPrefilter() }

    /// Whether later conditions on the same field begin a group of their own: true for search words and for the groups
    /// of a scope.
    fileprivate(set) var isSealed = false

    /// Whether evaluating the field is expensive.
    var readsWholeRecord: Bool { if case .byRecord = evaluation { true } else { false } }

    init(_ subject: QuerySubject, name: String) { conditions = FieldConditions(subject, name: name) }

    mutating func add(_ condition: QueryCondition) throws(FilterError) {
      try conditions.add(condition)
      evaluation = FieldEvaluation(conditions)
      prefilter = FieldPrefilter(conditions)
    }
  }

  /// The maximum number of conditions.
  package static let maxConditions = QueryText.maxConditions

  /// The groups in the order of evaluation, cheapest first.
  private(set) var groups: [Group] = []
  /// The only `seq` values that match, or nil for all.
  var seqs: SeqRanges?
  /// The `seq` values that do not match, or nil for none.
  var excludedSeqs: SeqRanges?
  /// Whether a condition names `kind`. Otherwise a selection covers only pushes.
  private(set) var namesKind = false
  private var count = 0
  /// The rules for findings; set if a condition is about findings.
  private(set) var rulebook: Rulebook?
  /// The inbox with the records; set if a condition is about findings.
  private(set) var inbox: Inbox?
  /// The runs; set if a condition is about the run or the test of a push.
  private(set) var runs: RunList?
  /// The `seq` of each push that `is:duplicate` matches, ascending; empty unless such a condition exists.
  private(set) var duplicates: [Int] = []
  /// Whether the duplicates have to be provided, because the context defers the search for them.
  private(set) var lacksDuplicates = false
  /// Why the store could not be asked for what the conditions need; nil in general. All reads with the filter throw it.
  package private(set) var failure: StoreUnavailable?

  /// Creates a filter that matches every record.
  package init() {}

  /// Creates a filter from the names and values of parameters.
  ///
  /// - Throws: `FilterError` for an unknown field or an invalid value.
  package init(
    _ conditions: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for condition in conditions { try add(QueryTerm(name: condition.name, value: condition.value), in: context) }
  }

  /// Creates a filter from the text of a query, such as `status:410 topic:com.acme.* !type:background`.
  ///
  /// - Throws: `FilterError` with the position in the text.
  package init(query: String, in context: FilterContext = FilterContext()) throws(FilterError) {
    try QueryText.read(query) { term throws(FilterError) in try add(term, in: context) }
  }

  /// Creates a filter from the text of a scope: a query with at least one condition.
  ///
  /// - Throws: `FilterError` for an invalid or empty query. An empty one would select all pushes.
  package init(scope query: String, in context: FilterContext = FilterContext()) throws(FilterError) {
    try self.init(query: query, in: context)
    guard !isEmpty else {
      throw FilterError(
        field: "scope", value: query, hint: "Use a query such as topic:com.example.app, or omit it for all pushes.")
    }
  }

  /// Adds one condition.
  ///
  /// - Parameter additionalNames: Names that are allowed here in addition to the fields, for the error's hint.
  /// - Throws: `FilterError` for an unknown field or an invalid value.
  mutating func add(_ term: QueryTerm, additionalNames: [String] = [], in context: FilterContext) throws(FilterError) {
    let condition = try QueryCondition(term, additionalNames: ["after", "before"] + additionalNames, now: context.now)
    if let known = context.known, case .field(let field) = condition.subject {
      let error: FilterError?
      do throws(StoreUnavailable) {
        error = try known.problem(field, term, inbox: context.snapshot ?? context.inbox?.snapshot())
      } catch let unavailable {
        (failure, error) = (unavailable, nil)
      }
      if let error { throw error }
    }
    try add(condition)
    try prepare(condition, in: context)
  }

  /// Adds the condition that a word of a search occurs anywhere in a record, or is the value of a field. In contrast to
  /// several conditions on `text`, all words must occur.
  mutating func add(word term: QueryTerm, in context: FilterContext) throws(FilterError) {
    let named = QueryTerm(name: QueryField.text.rawValue, value: term.value, isNegated: term.isNegated)
    let condition = try QueryCondition(named, additionalNames: [], now: context.now)
    count += 1
    guard count <= Self.maxConditions else { throw FilterError(tooManyConditions: named.name) }
    var group = Group(condition.subject, name: named.name)
    try group.add(condition)
    group.isSealed = true
    let terms: [QueryTerm]
    do throws(StoreUnavailable) { terms = try SearchWord(term.value)?.terms(in: context) ?? [] } catch {
      (failure, terms) = (error, [])
    }
    for other in terms {
      let condition = try QueryCondition(
        QueryTerm(name: other.name, value: other.value, isNegated: term.isNegated), additionalNames: [],
        now: context.now)
      try prepare(condition, in: context)
      if !term.isNegated,
        let index = group.alternatives.firstIndex(where: { $0.conditions.subject == condition.subject })
      {
        try group.alternatives[index].add(condition)
        continue
      }
      var alternative = Group(condition.subject, name: other.name)
      try alternative.add(condition)
      alternative.isSealed = true
      // Without a word are those that neither contain it nor have the value.
      if term.isNegated { insert(alternative) } else { group.alternatives.append(alternative) }
    }
    insert(group)
  }

  /// Adds the condition that a JSON pointer into the payload resolves to exactly this value, of the same type.
  ///
  /// - Throws: `FilterError` for an invalid pointer, or for a value that is too large to compare.
  mutating func add(payload pointer: String, equalTo value: JSONValue) throws(FilterError) {
    try add(QueryCondition(payload: pointer, equalTo: value))
  }

  private mutating func add(_ condition: QueryCondition) throws(FilterError) {
    count += 1
    guard count <= Self.maxConditions else { throw FilterError(tooManyConditions: condition.term.name) }
    if let index = groups.firstIndex(where: { !$0.isSealed && $0.conditions.subject == condition.subject }) {
      try groups[index].add(condition)
    } else {
      var group = Group(condition.subject, name: condition.term.name)
      try group.add(condition)
      insert(group)
    }
  }

  private mutating func insert(_ group: Group) {
    if group.conditions.subject == .field(.requestKind) { namesKind = true }
    let rank = group.conditions.subject.evaluationRank
    groups.insert(group, at: groups.firstIndex { $0.conditions.subject.evaluationRank > rank } ?? groups.endIndex)
  }

  /// Restricts the filter to the records that `other`, parsed in the same context, matches as well.
  ///
  /// - Throws: `FilterError` if there are too many conditions together.
  mutating func formIntersection(_ other: Filter) throws(FilterError) {
    count += other.count
    guard count <= Self.maxConditions else { throw FilterError(tooManyConditions: "scope") }
    for var group in other.groups {
      group.isSealed = true
      insert(group)
    }
    rulebook = rulebook ?? other.rulebook
    inbox = inbox ?? other.inbox
    runs = runs ?? other.runs
    if duplicates.isEmpty { duplicates = other.duplicates }
    if other.lacksDuplicates { lacksDuplicates = true }
    failure = failure ?? other.failure
  }

  /// Loads what a condition on findings or duplicates needs from the context.
  private mutating func prepare(_ condition: QueryCondition, in context: FilterContext) throws(FilterError) {
    let term = condition.term
    switch (condition.subject, condition.test) {
    case (.field(.finding), _):
      guard let rules = context.rulebook else {
        throw FilterError(field: term.name, value: term.value.text, hint: "Findings are not available here.")
      }
      rulebook = rules
      inbox = context.inbox
      do throws(StoreUnavailable) { try inbox?.updateFindings(by: rules) } catch { failure = error }
    case (.field(.run), _), (.field(.test), _):
      guard let inbox = context.inbox else {
        throw FilterError(field: term.name, value: term.value.text, hint: "Runs are not available here.")
      }
      runs = inbox.runs
    case (.field(.is), .text(let pattern)):
      let states = PushState.allCases.filter { pattern.matches($0.rawValue) }
      guard states.contains(.duplicate) else { return }
      if let snapshot = context.snapshot {
        if context.defersDuplicates { return lacksDuplicates = true }
        do throws(StoreUnavailable) { duplicates = try snapshot.duplicates() } catch { failure = error }
      } else if states == [.duplicate] {
        throw FilterError(
          field: term.name, value: term.value.text,
          hint: "Use it only for pushes in the inbox, not in a wait or an event stream.")
      }
    default: break
    }
  }

  /// Provides the duplicates if the filter lacks them.
  mutating func provide(duplicates found: [Int]) {
    guard lacksDuplicates else { return }
    (duplicates, lacksDuplicates) = (found, false)
  }

  /// Returns whether the record with this `seq` is a duplicate; false unless an `is:duplicate` condition exists.
  func isDuplicate(_ seq: Int) -> Bool {
    let position = duplicates.position(ofSeq: seq)
    return position < duplicates.count && duplicates[position] == seq
  }

  /// Whether the filter has no conditions and so matches every record.
  package var isEmpty: Bool { groups.isEmpty && seqs == nil && excludedSeqs == nil }

  /// The only device tokens whose records can match, lowercased; nil if the filter names none or a pattern.
  var deviceTokens: [String]? {
    guard let group = groups.first(where: { $0.conditions.subject == .field(.deviceToken) }),
      !group.conditions.wanted.isEmpty
    else { return nil }
    let tokens = group.conditions.wanted.texts.map(\.literal)
    return tokens.contains(nil) ? nil : tokens.compactMap(\.self)
  }

  /// Whether a condition names `delivery`, which may change after a push has ended.
  var dependsOnDelivery: Bool {
    groups.contains { group in ([group] + group.alternatives).contains { $0.conditions.subject == .field(.delivery) } }
  }

  /// The number of conditions that read a whole record: those on its text, its payload or its findings.
  var expensiveConditionCount: Int {
    groups.lazy.filter(\.readsWholeRecord).reduce(0) { $0 + $1.conditions.conditions.count }
  }

  /// The number of records to read without suspending: fewer, the more conditions read whole records.
  var sliceSize: Int { max(4, 512 / max(1, expensiveConditionCount)) }

  /// The filter without the conditions that read whole records.
  var withoutExpensiveConditions: Filter {
    var filter = self
    filter.groups.removeAll(where: \.readsWholeRecord)
    return filter
  }

  /// The number of fields with conditions.
  var fieldCount: Int { groups.count }

  /// Returns the number of fields whose conditions hold for the record.
  func metCount(_ record: borrowing Record) -> Int {
    var cache = FilterEvaluationCache()
    var count = 0
    for group in groups where record.satisfies(group, of: self, &cache) { count += 1 }
    return count
  }

  /// Returns whether the record matches the filter.
  package func matches(_ record: borrowing Record) -> Bool {
    if isEmpty { return true }
    return withUnsafePointer(to: record) { record in
      var batch = FilterBatch(record)
      removeNonMatching(&batch)
      return batch.remaining != 0
    }
  }
}

extension QuerySubject {
  /// The relative cost of evaluation; cheap conditions are evaluated first.
  var evaluationRank: Int {
    switch self {
    case .field(.text): 3
    case .field(.finding): 4
    case .field: 0
    case .header: 1
    case .payload: 2
    }
  }
}

/// The context in which a filter is parsed. A condition that needs a property that is nil is an
/// error, unless it can hold without it.
package struct FilterContext: Sendable {
  /// Milliseconds since 1970 by the server's clock, the reference for times such as `since:-5m`.
  package var now: Int64?
  /// The rules that determine findings.
  package var rulebook: Rulebook?
  /// The records among which `is:duplicate` finds duplicates. Later records are not considered, so a wait cannot use
  /// it.
  package var snapshot: InboxSnapshot?
  /// Whether `is:duplicate` matches nothing until the filter is provided with the duplicates.
  private(set) var defersDuplicates = false
  /// The inbox of the records, for findings that depend on several of them.
  package var inbox: Inbox?
  /// The valid names of rules, profiles, reasons and findings; other names are errors. Nil to accept any name.
  package var known: KnownNames?

  /// Creates a context. The empty context is sufficient except for relative times, `finding` and `is:duplicate`.
  package init(
    now: Int64? = nil, rulebook: Rulebook? = nil, snapshot: InboxSnapshot? = nil, inbox: Inbox? = nil,
    known: KnownNames? = nil
  ) {
    self.known = known
    self.now = now
    self.rulebook = rulebook
    self.snapshot = snapshot
    self.inbox = inbox
  }

  /// The same context, in which the search for duplicates is deferred.
  var deferringDuplicates: FilterContext {
    var context = self
    context.defersDuplicates = true
    return context
  }
}
