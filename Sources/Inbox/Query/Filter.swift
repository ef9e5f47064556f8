internal import APNSRules
internal import FaultModel
package import Notation

/// A set of conditions on records, built from request parameters and query text.
///
/// Conditions on different fields must all hold. Among several conditions on one field, any one is enough, and none
/// of the negated ones may hold. A condition with a value never holds for a record that lacks the field. Each JSON
/// pointer and each header name is a field of its own.
package struct Filter: Sendable {
  /// All conditions on one field.
  struct Group: Sendable {
    let subject: FilterSubject
    /// The field's name as first written.
    let name: String
    private(set) var wanted: [FilterTest] = []
    private(set) var unwanted: [FilterTest] = []
    /// The tests compiled for evaluation on many records.
    private(set) var compiled = CompiledFilter.expensive
    /// The values of `wanted` and of `unwanted` as written.
    private(set) var words: (wanted: [String], unwanted: [String]) = ([], [])

    init(subject: FilterSubject, name: String) {
      self.subject = subject
      self.name = name
    }

    /// Whether evaluating the field is expensive.
    var isExpensive: Bool { if case .expensive = compiled { true } else { false } }

    /// Adds a condition, with its value as written.
    mutating func add(_ test: FilterTest, words text: String, isNegated: Bool) {
      if isNegated {
        unwanted.append(test)
        words.unwanted.append(text)
      } else {
        wanted.append(test)
        words.wanted.append(text)
      }
      compiled = CompiledFilter(self)
    }

    /// Returns whether the group holds, given which of its tests hold.
    func holds(_ test: (FilterTest) -> Bool) -> Bool {
      for unwanted in unwanted where test(unwanted) { return false }
      if wanted.isEmpty { return true }
      for wanted in wanted where test(wanted) { return true }
      return false
    }
  }

  /// The maximum number of conditions.
  package static let maxConditions = QueryText.maxConditions
  /// The maximum length of a query, or of a condition's value, in bytes.
  package static let maxLength = QueryText.maxLength

  /// The groups in the order of evaluation, cheapest first.
  private(set) var groups: [Group] = []
  private var count = 0
  /// The rules for findings; set if a condition is about findings.
  private(set) var rulebook: Rulebook?
  /// The inbox with the records; set if a condition is about findings.
  private(set) var inbox: Inbox?
  /// The `seq` of each push that `is:duplicate` matches, ascending; empty unless such a condition exists.
  private(set) var duplicates: [Int] = []

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

  /// Adds a condition from the name and value of a parameter.
  mutating func add(
    name: String, value: String, further: [String] = [], in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    try add(QueryTerm(name: name, value: value), further: further, in: context)
  }

  /// Adds one condition.
  ///
  /// - Parameter further: Names that are allowed here in addition to the fields, for the error's hint.
  /// - Throws: `FilterError` for an unknown field or an invalid value.
  mutating func add(_ term: QueryTerm, further: [String] = [], in context: FilterContext) throws(FilterError) {
    let subject = try FilterSubject(term.name, further: further)
    guard term.value.text.utf8.count <= Self.maxLength else {
      throw FilterError(
        name: term.name, message: "the value of \(term.name) has \(term.value.text.utf8.count) bytes",
        hint: "At most \(Self.maxLength) are compared.")
    }
    let test = try FilterTest(subject, name: term.name, value: term.value, in: context)
    if let known = context.known, case .field(let field) = subject {
      try known.check(
        field, name: term.name, value: term.value, inbox: context.snapshot ?? context.inbox?.snapshot())
    }
    try add(test, on: subject, name: term.name, words: term.value.text, isNegated: term.isNegated)
    if let group = groups.first(where: { $0.subject == subject }), !term.isNegated,
      let alternative = group.wanted.alternative
    {
      throw FilterError(field: term.name, value: term.value.text, rangeInstead: alternative)
    }
    try take(subject, test, from: context, name: term.name, value: term.value.text)
  }

  /// Adds the condition that a JSON pointer into the payload resolves to exactly this value, of the same type.
  ///
  /// - Throws: `FilterError` for an invalid pointer, or for a value that is too large to compare.
  mutating func add(payload pointer: String, equalTo value: JSONValue) throws(FilterError) {
    let name = "payload." + pointer
    let subject = try FilterSubject(pointer: pointer[...], name: name, allowsRoot: true)
    let words = ReportText.json(value)
    guard words.utf8.count <= Self.maxLength, value.depth <= FilterSubject.maxDepth else {
      throw FilterError(
        name: name, message: "the value is too large to compare",
        hint: "It has at most \(Self.maxLength) bytes and \(FilterSubject.maxDepth) levels.")
    }
    try add(.value(.json(value)), on: subject, name: name, words: words, isNegated: false)
  }

  private mutating func add(
    _ test: FilterTest, on subject: FilterSubject, name: String, words: String, isNegated: Bool
  ) throws(FilterError) {
    count += 1
    guard count <= Self.maxConditions else {
      throw FilterError(tooManyConditions: name)
    }
    let index = groups.firstIndex { $0.subject == subject } ?? insert(Group(subject: subject, name: name))
    groups[index].add(test, words: words, isNegated: isNegated)
  }

  private mutating func insert(_ group: Group) -> Int {
    let index = groups.firstIndex { $0.subject.effort > group.subject.effort } ?? groups.endIndex
    groups.insert(group, at: index)
    return index
  }

  /// Stores what a condition needs from the context.
  private mutating func take(
    _ subject: FilterSubject, _ test: FilterTest, from context: FilterContext, name: String, value: String
  ) throws(FilterError) {
    if subject == .field(.finding) {
      guard let rules = context.rulebook else {
        throw FilterError(field: name, value: value, hint: "Findings are not available here.")
      }
      rulebook = rules
      inbox = context.inbox
      inbox?.judge(by: rules)
    }
    if case .states(let states) = test, states.contains(.duplicate), let snapshot = context.snapshot {
      duplicates = snapshot.duplicates()
    }
  }

  /// Returns whether the record with this `seq` is a duplicate; false unless an `is:duplicate` condition exists.
  func isDuplicate(_ seq: Int) -> Bool {
    let position = duplicates.position(ofSeq: seq)
    return position < duplicates.count && duplicates[position] == seq
  }

  /// Whether the filter has no conditions and so matches every record.
  package var isEmpty: Bool { groups.isEmpty }

  /// A filter for each field that has conditions, with the field's name, to evaluate the fields separately.
  package var parts: [(name: String, filter: Filter)] {
    groups.map { group in
      var part = self
      part.groups = [group]
      return (group.name, part)
    }
  }

  /// The only device tokens whose records can match, lowercased; nil if the filter names none or a pattern.
  var deviceTokens: [String]? {
    guard let group = groups.first(where: { $0.subject == .field(.deviceToken) }), !group.wanted.isEmpty else {
      return nil
    }
    var tokens: [String] = []
    for test in group.wanted {
      guard case .text(let pattern) = test, let token = pattern.literal else { return nil }
      tokens.append(token)
    }
    return tokens
  }

  /// The number of conditions that read a whole record: those on its text, its payload or its findings.
  var expensiveConditionCount: Int {
    groups.lazy.filter(\.isExpensive).reduce(0) { $0 + $1.wanted.count + $1.unwanted.count }
  }

  /// The number of records to read without suspending: fewer, the more conditions read whole records.
  var sliceSize: Int { max(4, 512 / max(1, expensiveConditionCount)) }

  /// The filter without the conditions that read whole records.
  var withoutExpensiveConditions: Filter {
    var filter = self
    filter.groups.removeAll(where: \.isExpensive)
    return filter
  }

  /// The number of fields with conditions.
  var fieldCount: Int { groups.count }

  /// Returns the names of the fields whose conditions hold for the record, and of those whose conditions do not, as
  /// written.
  func fields(of record: borrowing Record) -> (met: [String], missed: [String]) {
    var fields: (met: [String], missed: [String]) = ([], [])
    var reading = FilterEvaluationCache()
    for group in groups {
      if record.satisfies(group, of: self, &reading) {
        fields.met.append(group.name)
      } else {
        fields.missed.append(group.name)
      }
    }
    return fields
  }

  /// Returns the number of fields whose conditions hold for the record.
  func metCount(_ record: borrowing Record) -> Int {
    var reading = FilterEvaluationCache()
    var count = 0
    for group in groups where record.satisfies(group, of: self, &reading) { count += 1 }
    return count
  }

  /// Returns whether the record matches the filter.
  package func matches(_ record: borrowing Record) -> Bool {
    if groups.isEmpty { return true }
    return withUnsafePointer(to: record) { record in
      var batch = RecordBatch(record)
      narrow(&batch)
      return batch.remaining != 0
    }
  }
}

extension [FilterTest] {
  /// The spelling of the intended range, if two of these tests together allow every number, such as `>400` and
  /// `<500`.
  fileprivate var alternative: String? {
    QueryValue.rangeInstead(
      of: compactMap { if case .number(let numbers) = $0 { numbers } else { nil } },
      compactMap { if case .value(.within(let bounds)) = $0 { bounds } else { nil } })
  }
}
