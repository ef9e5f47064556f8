internal import APNSRules
internal import Faults
public import Notation

/// Which records are meant: conditions on fields, from the parameters of a request and from the text of a query.
///
/// Conditions on different fields must all hold. Of several on one field any one is enough, and none of the negated ones
/// may hold. A condition with a value never holds for a record that lacks the field. Each JSON pointer and each header
/// name is a field of its own.
public struct Filter: Sendable {
  /// All conditions on one field.
  struct Group: Sendable {
    let subject: FilterSubject
    /// The field as it was written first.
    let name: String
    private(set) var wanted: [FilterTest] = []
    private(set) var unwanted: [FilterTest] = []
    /// The same in the form in which records go through them.
    private(set) var sieve = FilterSieve.dear
    /// The values of `wanted`, and then of `unwanted`, as they were written.
    private(set) var words: (wanted: [String], unwanted: [String]) = ([], [])

    init(subject: FilterSubject, name: String) {
      self.subject = subject
      self.name = name
    }

    /// Whether it takes long to look at what it is about.
    var isDear: Bool { if case .dear = sieve { true } else { false } }

    /// Adds a condition, and its value as it was written.
    mutating func add(_ test: FilterTest, words text: String, isNegated: Bool) {
      if isNegated {
        unwanted.append(test)
        words.unwanted.append(text)
      } else {
        wanted.append(test)
        words.wanted.append(text)
      }
      sieve = FilterSieve(self)
    }

    /// Whether it holds, when `test` says which of its tests do.
    func holds(_ test: (FilterTest) -> Bool) -> Bool {
      for unwanted in unwanted where test(unwanted) { return false }
      if wanted.isEmpty { return true }
      for wanted in wanted where test(wanted) { return true }
      return false
    }
  }

  /// How many conditions there can be.
  public static let maxConditions = QueryText.maxConditions
  /// How long a query, or the value of a condition, can be in bytes.
  public static let maxLength = QueryText.maxLength

  /// In the order they are looked at: what takes the least first.
  private(set) var groups: [Group] = []
  private var count = 0
  /// Set if a condition is about findings.
  private(set) var rulebook: Rulebook?
  /// Where the records are, if a condition is about findings.
  private(set) var inbox: Inbox?
  /// The numbers of the pushes that `is:duplicate` means, ascending, if it was asked for.
  private(set) var duplicates: [Int] = []

  /// Matches every record.
  public init() {}

  /// A filter from the names and values of parameters.
  ///
  /// - Throws: `FilterError` for a field that does not exist or a value that it cannot have.
  public init(
    _ conditions: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for condition in conditions { try add(QueryTerm(name: condition.name, value: condition.value), in: context) }
  }

  /// A filter from the text of a query: `status:410 topic:com.acme.* !type:background`.
  ///
  /// - Throws: `FilterError`, which knows the place in the text.
  public init(query: String, in context: FilterContext = FilterContext()) throws(FilterError) {
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
  /// - Parameter further: names that may stand here besides those of fields, for the error's hint.
  /// - Throws: `FilterError` for a field that does not exist or a value that it cannot have.
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

  /// Adds the condition that a pointer into the payload names exactly this value, of this type.
  ///
  /// - Throws: `FilterError` for what is no pointer, and for a value that takes too long to compare.
  mutating func add(payload pointer: String, equalTo value: JSONValue) throws(FilterError) {
    let name = "payload." + pointer
    let subject = try FilterSubject(pointer: pointer[...], name: name, allowsRoot: true)
    let words = ShownText.json(value)
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

  /// Keeps what a condition needs of the context.
  private mutating func take(
    _ subject: FilterSubject, _ test: FilterTest, from context: FilterContext, name: String, value: String
  ) throws(FilterError) {
    if subject == .field(.finding) {
      guard let rules = context.rulebook else {
        throw FilterError(field: name, value: value, hint: "Findings are not known here.")
      }
      rulebook = rules
      inbox = context.inbox
      inbox?.judge(by: rules)
    }
    if case .states(let states) = test, states.contains(.duplicate), let snapshot = context.snapshot {
      duplicates = snapshot.duplicates()
    }
  }

  /// Whether the record with this number is a duplicate, if it was asked for those.
  func isDuplicate(_ seq: Int) -> Bool {
    let position = duplicates.position(ofSeq: seq)
    return position < duplicates.count && duplicates[position] == seq
  }

  /// Whether it matches every record because it has no condition.
  public var isEmpty: Bool { groups.isEmpty }

  /// The conditions on each field as a filter of their own, with the field's name: for telling which ones hold.
  public var parts: [(name: String, filter: Filter)] {
    groups.map { group in
      var part = self
      part.groups = [group]
      return (group.name, part)
    }
  }

  /// The only device tokens whose records can match, in small letters; nil if the filter names none, or a pattern.
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

  /// The number of conditions that read a whole record: those on its text, its payload and its findings.
  var dearCount: Int { groups.lazy.filter(\.isDear).reduce(0) { $0 + $1.wanted.count + $1.unwanted.count } }

  /// The number of records to read without suspending: fewer, the more conditions read whole records.
  var sliceSize: Int { max(4, 512 / max(1, dearCount)) }

  /// The conditions that do not read whole records.
  var withoutDear: Filter {
    var filter = self
    filter.groups.removeAll(where: \.isDear)
    return filter
  }

  /// How many fields there are conditions on.
  var fieldCount: Int { groups.count }

  /// The fields whose conditions hold for the record, and those whose do not, as they were written.
  func fields(of record: borrowing Record) -> (met: [String], missed: [String]) {
    var fields: (met: [String], missed: [String]) = ([], [])
    var reading = FilterReading()
    for group in groups {
      if record.satisfies(group, of: self, &reading) {
        fields.met.append(group.name)
      } else {
        fields.missed.append(group.name)
      }
    }
    return fields
  }

  /// How many fields there are whose conditions hold for the record.
  func metCount(_ record: borrowing Record) -> Int {
    var reading = FilterReading()
    var count = 0
    for group in groups where record.satisfies(group, of: self, &reading) { count += 1 }
    return count
  }

  /// Whether the record is one of those that are meant.
  public func matches(_ record: borrowing Record) -> Bool {
    if groups.isEmpty { return true }
    return withUnsafePointer(to: record) { record in
      var batch = RecordBatch(record)
      narrow(&batch)
      return batch.meant != 0
    }
  }
}

extension [FilterTest] {
  /// How to write what is meant, if two of these tests let every number through: `>400` beside `<500`, meant as a range.
  fileprivate var alternative: String? {
    QueryValue.rangeInstead(
      of: compactMap { if case .number(let numbers) = $0 { numbers } else { nil } },
      compactMap { if case .value(.within(let bounds)) = $0 { bounds } else { nil } })
  }
}
