package import APNSMockNotation

/// A condition of a query with its value parsed for the type of the subject.
package struct QueryCondition: Sendable {
  /// A test on a value.
  package enum Test: Sendable {
    case text(TextPattern)
    case number(ClosedRange<Int64>)
    /// A test on a value of a payload or a header field, whose type is not known in advance.
    case value(QueryValueTest)
  }

  package let subject: QuerySubject
  /// The condition as written.
  package let term: QueryTerm
  package let test: Test

  /// Parses a condition.
  ///
  /// - Parameters:
  ///   - fields: The available fields.
  ///   - additionalNames: Names that are allowed here in addition to the fields, for the error's hint.
  ///   - now: The reference of times such as `-5m`, in milliseconds since 1970; nil if such times are invalid.
  /// - Throws: `FilterError` for an unknown field or an invalid value.
  package init(
    _ term: QueryTerm, among fields: [QueryField] = QueryField.allCases, additionalNames: [String] = [],
    now: Int64? = nil
  ) throws(FilterError) {
    subject = try QuerySubject(term.name, among: fields, additionalNames: additionalNames)
    self.term = term
    let length = term.value.text.utf8.count
    guard length <= QueryText.maxLength else {
      throw FilterError(
        name: term.name, message: "the value of \(term.name) has \(length) bytes",
        hint: "At most \(QueryText.maxLength) are compared.")
    }
    if length == 0 && !term.value.isQuoted { throw FilterError(fieldWithoutValue: term.name) }
    let test: Test?
    let validValues: String
    switch subject {
    case .field(let field): (test, validValues) = (try field.test(term, now: now), field.validValues)
    case .payload, .header: (test, validValues) = (QueryValueTest(term.value).map { .value($0) }, QueryValue.anyForms)
    }
    guard let test else {
      throw FilterError(field: term.name, value: term.value.text, hint: "Use \(validValues).")
    }
    self.test = test
  }

  /// Creates the condition that a JSON pointer into the payload resolves to exactly this value, of the same type.
  ///
  /// - Throws: `FilterError` for an invalid pointer, or for a value that is too large to compare.
  package init(payload pointer: String, equalTo value: JSONValue) throws(FilterError) {
    let name = "payload." + pointer
    subject = try QuerySubject(pointer: pointer[...], name: name, allowsRoot: true)
    var writer = JSONWriter(capacity: 64)
    value.write(to: &writer)
    let text = String(decoding: writer.bytes, as: UTF8.self)
    guard text.utf8.count <= QueryText.maxLength, value.depth <= QuerySubject.maxDepth else {
      throw FilterError(
        name: name, message: "the value is too large to compare",
        hint: "Use at most \(QueryText.maxLength) bytes and \(QuerySubject.maxDepth) levels.")
    }
    term = QueryTerm(
      name: name, value: QueryValue(text: text, pieces: [text], isQuoted: true, startsQuoted: true), isNegated: false)
    test = .value(.json(value))
  }
}

extension QueryField {
  /// Returns the test for a value; nil if the field cannot have it.
  fileprivate func test(_ term: QueryTerm, now: Int64?) throws(FilterError) -> QueryCondition.Test? {
    let value = term.value
    switch kind {
    case .text(let foldsCase): return .text(TextPattern(pieces: value.pieces, foldsCase: foldsCase))
    case .anywhere: return value.anywherePattern.map { .text($0) }
    case .word(let words, let foldsCase):
      let pattern = TextPattern(pieces: value.pieces, foldsCase: foldsCase)
      if words.contains(where: pattern.matches) { return .text(pattern) }
      if self == .outcome, let replacement = Self.formerWords[value.text] {
        throw FilterError(field: term.name, value: value.text, hint: replacement)
      }
      let guess = Spelling.suggestion(for: value.text, among: words)
      throw FilterError(field: term.name, value: value.text, hint: "\(guess)Use \(validValues).")
    case .number: return value.digitsPattern.map { .text($0) } ?? value.wholeNumbers().map { .number($0) }
    case .flag: return ["true", "false"].contains(value.text) ? .text(TextPattern(value.text, foldsCase: false)) : nil
    case .time:
      guard let time = try Self.time(term, now: now) else { return nil }
      return .number(self == .since ? time...Int64.max : Int64.min...(time - 1))
    case .size:
      let comparison: QueryValue.Comparison? = [.sizeGreater: .above, .sizeLess: .below][self]
      return value.sizes(comparison).map { .number($0) }
    }
  }

  /// Returns milliseconds since 1970; nil if the text is not a valid time.
  private static func time(_ term: QueryTerm, now: Int64?) throws(FilterError) -> Int64? {
    let text = term.value.text
    if text.hasPrefix("-"), let duration = DurationFormat.duration(text) {
      guard let now else {
        throw FilterError(
          field: term.name, value: text, hint: "Here use a time such as 2026-01-31T12:00:00.000Z.")
      }
      let (seconds, attoseconds) = duration.components
      let (time, overflow) = now.addingReportingOverflow(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
      return overflow || time == .min ? nil : time
    }
    if DurationFormat.duration(text) != nil {
      throw FilterError(field: term.name, value: text, hint: "Did you mean \(term.name):-\(text)?")
    }
    // A plus sign in a query string decodes to a space, as in the zone +02:00.
    return TimestampFormat.milliseconds(text) ?? TimestampFormat.milliseconds(text.replacing(" ", with: "+"))
  }
}
