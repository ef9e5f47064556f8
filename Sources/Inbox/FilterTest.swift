internal import Faults
internal import Notation

/// A test on the value of a filter subject.
enum FilterTest: Sendable {
  case text(TextPattern)
  case number(ClosedRange<Int64>)
  case flag(Bool)
  case states([FilterState])
  case value(QueryValueTest)

  /// Creates the test that `value` describes.
  ///
  /// - Parameter name: The name of the subject as written.
  /// - Throws: `FilterError` if the value is not valid for the subject.
  init(_ subject: FilterSubject, name: String, value: QueryValue, in context: FilterContext) throws(FilterError) {
    if value.text.isEmpty && !value.isQuoted {
      throw FilterError(fieldWithoutValue: name)
    }
    let test: FilterTest?
    let allowed: String
    switch subject {
    case .field(let field): (test, allowed) = try Self.test(field, name: name, value: value, in: context)
    case .payload, .header:
      test = QueryValueTest(value).map { .value($0) }
      allowed = QueryValue.anyForms
    }
    guard let test else { throw FilterError(field: name, value: value.text, hint: "It is \(allowed).") }
    self = test
  }

  /// Returns the test for a field, nil if the value is invalid, and a description of the valid values.
  private static func test(
    _ field: FilterField, name: String, value: QueryValue, in context: FilterContext
  ) throws(FilterError) -> (FilterTest?, String) {
    switch field.kind {
    case .text(let foldsCase):
      return (.text(TextPattern(pieces: value.pieces, foldsCase: foldsCase)), "a string")
    case .anywhere:
      return (value.anywherePattern.map { .text($0) }, "a string")
    case .word(let words):
      return (try word(field, name: name, value: value, words: words, in: context), words.joined(separator: ", "))
    case .number:
      return (
        value.digitsPattern.map { .text($0) } ?? value.wholeNumbers().map { .number($0) }, QueryValue.numberForms
      )
    case .flag:
      return (["true": .flag(true), "false": .flag(false)][value.text], "true or false")
    case .time:
      guard let time = try time(value.text, name: name, in: context) else {
        return (nil, "a time such as 2026-01-31T12:00:00.000Z (RFC 3339), or so long ago as -5m")
      }
      return (.number(field == .since ? time...Int64.max : Int64.min...(time - 1)), "")
    case .size:
      switch field {
      case .sizeGreater: return (value.sizes(.above).map { .number($0) }, QueryValue.sizeForms)
      case .sizeLess: return (value.sizes(.below).map { .number($0) }, QueryValue.sizeForms)
      default: return (value.sizes().map { .number($0) }, QueryValue.sizeForms + QueryValue.sizeBounds)
      }
    }
  }

  private static func word(
    _ field: FilterField, name: String, value: QueryValue, words: [String], in context: FilterContext
  ) throws(FilterError) -> FilterTest {
    let pattern = TextPattern(pieces: value.pieces, foldsCase: false)
    let meant = words.filter(pattern.matches)
    guard !meant.isEmpty else {
      let guess = Spelling.nearest(to: value.text, among: words).map { "Did you mean \($0)? " } ?? ""
      throw FilterError(
        field: name, value: value.text, hint: "\(guess)It is one of \(words.joined(separator: ", ")).")
    }
    guard field == .is else { return .text(pattern) }
    let states = meant.compactMap(FilterState.init)
    if states == [.duplicate], context.snapshot == nil {
      throw FilterError(
        field: name, value: value.text,
        hint: "It applies only to pushes in the inbox; a wait cannot use it.")
    }
    return .states(states)
  }

  /// Returns milliseconds since 1970; nil if the text is not a valid time.
  private static func time(_ text: String, name: String, in context: FilterContext) throws(FilterError) -> Int64? {
    if text.hasPrefix("-"), let duration = WrittenDuration.duration(text) {
      guard let now = context.now else {
        throw FilterError(field: name, value: text, hint: "Here it is a time such as 2026-01-31T12:00:00.000Z.")
      }
      let (seconds, attoseconds) = duration.components
      let (time, overflow) = now.addingReportingOverflow(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
      return overflow || time == .min ? nil : time
    }
    // A plus sign in a query string decodes to a space, as in the zone +02:00.
    return WrittenTime.milliseconds(text) ?? WrittenTime.milliseconds(text.replacing(" ", with: "+"))
  }
}
