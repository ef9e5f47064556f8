package import APNSMockNotation

extension Verification {
  /// The maximum number of expectations.
  static let maxExpectations = 100

  /// The schema of a verification document.
  package static let schema = MapSchema(
    "Verification", Verification(),
    .defaulted(
      "timeout", \.timeout, .duration(upTo: WaitQuery.maxTimeout), "The maximum time to wait, up to 5 minutes."),
    .defaulted(
      "settle", \.settle, .duration(upTo: WaitQuery.maxTimeout),
      "A time without relevant pushes after which the wait ends early."),
    .custom(
      "after", \.after, .either(.integer(0...Int.max), .text()), default: "0",
      "Only records with a larger `seq`; in a view of several servers the push as a text, such as `load_1:4711`.",
      parse: { parser, node, verification in
        guard let after = parser.parseCursor(node) else { return false }
        verification.after = after
        return true
      }),
    .custom(
      "scope", \.scope, .text(), "A query: only records that match are considered, as if there were no others.",
      parse: { parser, node, verification in
        guard let query = parser.parseText(node) else { return false }
        return parser.catching(node) { context throws(FilterError) in
          verification.scope = try Filter(scope: query, in: context)
        }
      }),
    .custom(
      "expect", \.expectations, .list(.map(Expectation.schema.description)), "At most 100 expectations.",
      parse: { parser, node, verification in
        guard let expectations = parser.parseExpectations(node) else { return false }
        verification.expectations = expectations
        return true
      }),
    .custom(
      "order", \.order, .list(.text()), "Names of expectations in the order of their first pushes.",
      parse: { parser, node, verification in
        verification.order = parser.parseOrder(node, among: verification.expectations.map(\.name))
        return verification.order != nil
      }),
    .defaulted("no_others", \.allowsNoOthers, .flag, "Whether pushes that match no expectation are a failure."),
    .defaulted(
      "nothing_lost", \.requiresNothingLost, .flag,
      "Whether a push whose last attempt was neither accepted nor permanently rejected is a failure."),
    .defaulted(
      "no_findings", \.refusedFindings, .refusedFindings, default: "false",
      "Findings that must not occur, or true for none at all."))

  /// The keys of which a document has at least one.
  private static let criteria = ["expect", "no_others", "nothing_lost", "no_findings"]

  /// Parses a verification document.
  ///
  /// - Parameter json: A JSON object; see the documentation of `POST /api/v1/verify`.
  /// - Throws: `FileFailure` with all problems of the document; the paths are JSON pointers.
  package init(json: [UInt8], in context: FilterContext = FilterContext()) throws(FileFailure) {
    let parser = SchemaParser(file: "", context: VerificationFilters(context), ignoresNull: true)
    self.init()
    if let problem = JSONText.problem(in: json) {
      throw FileFailure([
        FileProblem(file: "", "the document is not JSON: \(problem)", hint: "Send an object.")
      ])
    }
    do throws(YAMLError) {
      let root = try JSONNodeReader.document(json, maxMembers: 200)
      parse(SchemaNode(root: root, paths: .pointer), parser)
    } catch {
      parser.problems.add(error, file: "", path: error.pointer)
    }
    if parser.problems.hasErrors { throw FileFailure(parser.problems.problems) }
  }

  private mutating func parse(_ node: SchemaNode, _ parser: SchemaParser) {
    guard let map = Self.schema.parseKeys(node, parser) else { return }
    _ = map.parse(into: &self) { $0 == \.timeout }
    // The snapshot is only for conditions on existing records; a wait also counts later ones.
    if timeout > .zero { parser.filters?.context.snapshot = nil }
    _ = map.parse(into: &self) { $0 != \.timeout }
    if map.has(\.settle), settle > timeout {
      map.fail(
        at: \.settle, "it is longer than the timeout, which is \(DurationFormat.text(timeout))",
        hint: "make the timeout longer")
    }
    if scope.namesKind {
      for index in expectations.indices { expectations[index].selection.includesAllKinds = true }
    }
    if Self.criteria.allSatisfy({ map[$0] == nil }), !parser.problems.hasErrors {
      parser.fail(
        node, "there are no expectations",
        hint: #"add at least one: {"expect": [{"match": {"topic": "com.example.app"}, "count": {"exactly": 1}}]}"#)
    }
  }
}

/// The context of the queries in a verification.
final class VerificationFilters {
  var context: FilterContext

  init(_ context: FilterContext) { self.context = context }
}

extension Schema<Duration> {
  /// A duration from zero to `maximum`. The number 0 needs no unit.
  static func duration(upTo maximum: Duration) -> Schema {
    Schema(
      form: .either(duration.form, .integer(0...0)),
      parse: { parser, node in
        if case .scalar(let scalar) = node.content, !scalar.isString, scalar.text == "0" { return .zero }
        guard let duration = parser.parseDuration(node) else { return nil }
        if duration <= maximum { return duration }
        parser.fail(
          node, "\(DurationFormat.text(duration)) is longer than \(DurationFormat.text(maximum)), the maximum")
        return nil
      }, write: duration.write)
  }
}

extension Schema<Set<Finding.Kind>?> {
  /// `true` for all findings, `false` for none, or a list of them.
  fileprivate static let refusedFindings = Schema(
    form: .either(.flag, .list(Schema<Finding.Kind>.word.form)),
    parse: { parser, node in
      switch node.content {
      case .scalar(let scalar) where !scalar.isString && scalar.text == "true": return .some(Set(Finding.Kind.allCases))
      case .scalar(let scalar) where !scalar.isString && scalar.text == "false": return .some(nil)
      case .list: return parser.parseWords(node, of: Finding.Kind.self).map { .some(Set($0)) }
      default:
        parser.fail(node, "expected true, or a list of findings, not \(node.kind)")
        return nil
      }
    }, write: { _, writer in writer.null() })
}

extension SchemaParser {
  var filters: VerificationFilters? { context as? VerificationFilters }

  /// Parses a part of a query. Returns false after recording its error.
  @discardableResult
  func catching(_ node: SchemaNode, _ add: (FilterContext) throws(FilterError) -> Void) -> Bool {
    do throws(FilterError) {
      try add(filters?.context ?? FilterContext())
      return true
    } catch {
      fail(node, error.message, hint: error.hint)
      return false
    }
  }

  /// Parses the `seq` of a record, or 0: a number, or in a view of several servers a text such as `load_1:4711`.
  fileprivate func parseCursor(_ node: SchemaNode) -> Int? {
    guard filters?.context.inbox?.isOfSeveralServers == true else { return parseInteger(node, in: 0...Int.max) }
    guard case .scalar(let scalar) = node.content else {
      fail(node, "expected a push such as load_1:4711, not \(node.kind)")
      return nil
    }
    var cursor: Int?
    catching(node) { context throws(FilterError) in cursor = try Selection.seq("after", scalar.text, in: context) }
    return cursor
  }

  /// Parses one of the values of an enumeration, or a list of them that is not empty.
  func parseWords<Word: RawRepresentable<String> & CaseIterable & Equatable>(
    _ node: SchemaNode, of type: Word.Type
  ) -> [Word]? {
    guard let elements = parseListOrValue(node) else { return nil }
    if elements.isEmpty { fail(node, "the list is empty", hint: "add at least one, or omit it") }
    let words = elements.compactMap { problems.isFull ? nil : parseWord($0, allowed: Array(Word.allCases)) }
    return words.count == elements.count && !words.isEmpty ? words : nil
  }

  fileprivate func parseExpectations(_ node: SchemaNode) -> [Expectation]? {
    guard let elements = parseList(node) else { return nil }
    guard elements.count <= Verification.maxExpectations else {
      fail(
        node, "there are \(elements.count) expectations",
        hint: "at most \(Verification.maxExpectations) are allowed in one document")
      return nil
    }
    var expectations: [Expectation] = []
    for (index, element) in elements.enumerated() {
      if element.isEmpty { fail(element, "expected a map, not nothing") }
      // Keep an invalid expectation with its name, because `order` may refer to it.
      let expectation = Expectation(element, number: index + 1, self)
      if expectations.contains(where: { $0.name == expectation.name }) {
        fail(
          element, "there is another expectation called \"\(expectation.name.shortened)\"", hint: "use unique names")
      }
      expectations.append(expectation)
    }
    return expectations
  }

  /// Parses the names of expectations. Returns their positions; nil after recording an error, or without names.
  fileprivate func parseOrder(_ node: SchemaNode, among names: [String]) -> [Int]? {
    guard let elements = parseList(node) else { return nil }
    var order: [Int] = []
    for element in elements where !problems.isFull {
      guard let name = parseText(element) else { continue }
      guard let index = names.firstIndex(of: name) else {
        fail(
          element, "no expectation is called \"\(name.shortened)\"",
          hint: names.isEmpty
            ? "there is none"
            : Self.guess(name, among: names) ?? "those that are: \(names.map(\.shortened).listed(20))")
        continue
      }
      if order.contains(index) {
        fail(
          element, "\"\(name.shortened)\" is listed twice",
          hint: "the order applies to the first push of each; remove one of them")
      }
      order.append(index)
    }
    return order.isEmpty ? nil : order
  }
}
