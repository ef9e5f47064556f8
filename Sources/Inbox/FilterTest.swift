internal import Faults
internal import Notation

/// What the value of a subject has to be.
enum FilterTest: Sendable {
  case text(TextPattern)
  case number(ClosedRange<Int64>)
  case flag(Bool)
  case states([FilterState])
  case value(ValueTest)

  /// What a value of a payload or a header has to be. Nothing says beforehand which type it has.
  enum ValueTest: Sendable {
    /// Whatever is there.
    case present
    /// This text, or this number unless only a text is meant.
    case text(TextPattern, orNumber: QueryNumber?, isTextAlone: Bool)
    /// A number within bounds.
    case within(QueryBounds)
    /// This value of JSON, of its type.
    case json(JSONValue)
  }

  /// The test that `value` asks for.
  ///
  /// - Parameter name: the name of the subject as it was written.
  /// - Throws: `FilterError`.
  init(_ subject: FilterSubject, name: String, value: QueryValue, in context: FilterContext) throws(FilterError) {
    if value.text.isEmpty && !value.isQuoted {
      throw FilterError(
        field: name, value: "", hint: "Give it a value, or leave it out; !\(name)=* finds the records without one.")
    }
    let test: FilterTest?
    let allowed: String
    switch subject {
    case .field(let field): (test, allowed) = try Self.test(field, name: name, value: value, in: context)
    case .payload, .header:
      test = ValueTest(value).map { .value($0) }
      allowed = "a text, a number such as 3, a bound such as >3, or a range such as 3..9"
    }
    guard let test else { throw FilterError(field: name, value: value.text, hint: "It is \(allowed).") }
    self = test
  }

  /// The test of a field, and what it could have been.
  private static func test(
    _ field: FilterField, name: String, value: QueryValue, in context: FilterContext
  ) throws(FilterError) -> (FilterTest?, String) {
    switch field.kind {
    case .text(let foldsCase):
      return (.text(TextPattern(pieces: value.pieces, foldsCase: foldsCase)), "a text")
    case .anywhere:
      let isWord = value.pieces.contains { !$0.isEmpty } || value.isAnything
      return (isWord ? .text(TextPattern(pieces: [""] + value.pieces + [""], foldsCase: true)) : nil, "a text")
    case .word(let words):
      return (try word(field, name: name, value: value, words: words, in: context), words.joined(separator: ", "))
    case .number:
      let isPattern = value.pieces.count > 1 && value.pieces.allSatisfy(\.isDigits)
      return (
        isPattern ? .text(TextPattern(pieces: value.pieces, foldsCase: false)) : whole(value) { Int64($0) },
        "a whole number such as 200, a pattern such as 4*, a bound such as >=400, or a range such as 400..499"
      )
    case .flag:
      return (["true": .flag(true), "false": .flag(false)][value.text], "true or false")
    case .time:
      guard let time = try time(value.text, name: name, in: context) else {
        return (nil, "a time such as 2026-01-31T12:00:00.000Z (RFC 3339), or so long ago as -5m")
      }
      return (.number(field == .since ? time...Int64.max : Int64.min...(time - 1)), "")
    case .size:
      let allowed = "a number of bytes such as 4096, 3.5KiB or 1MiB"
      let bytes = { (text: Substring) in WrittenSize.bytes(text).map(Int64.init) }
      switch field {
      case .sizeGreater:
        return (bytes(value.text[...]).map { .number(min($0, .max - 1) + 1...Int64.max) }, allowed)
      case .sizeLess: return (bytes(value.text[...]).map { .number(Int64.min...($0 - 1)) }, allowed)
      default: return (whole(value, bytes), allowed + ", a bound such as >3.5K, or a range such as 1K..4K")
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
        hint: "It is found among the pushes that are in the inbox; it cannot be waited for.")
    }
    return .states(states)
  }

  /// `200`, `>=400`, `400..499`; nil if it is none of them.
  private static func whole(_ value: QueryValue, _ read: (Substring) -> Int64?) -> FilterTest? {
    func number(_ text: Substring) -> Int64? { read(text).flatMap { $0 >= 0 && $0 < .max ? $0 : nil } }
    if let (comparison, text) = value.comparison {
      guard let number = number(text) else { return nil }
      return switch comparison {
      case .above: .number(number + 1...Int64.max)
      case .atLeast: .number(number...Int64.max)
      case .below: .number(Int64.min...number - 1)
      case .atMost: .number(Int64.min...number)
      }
    }
    if let (low, high) = value.range {
      guard let low = number(low), let high = number(high), low <= high else { return nil }
      return .number(low...high)
    }
    return number(value.text[...]).map { .number($0...$0) }
  }

  /// Milliseconds since 1970; nil if the text says no time.
  private static func time(_ text: String, name: String, in context: FilterContext) throws(FilterError) -> Int64? {
    if text.hasPrefix("-"), let duration = WrittenDuration.duration(text) {
      guard let now = context.now else {
        throw FilterError(field: name, value: text, hint: "Here it is a time such as 2026-01-31T12:00:00.000Z.")
      }
      let (seconds, attoseconds) = duration.components
      let (time, overflow) = now.addingReportingOverflow(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
      return overflow || time == .min ? nil : time
    }
    // A plus sign in a query string means a space; a zone such as +02:00 comes here that way.
    return WrittenTime.milliseconds(text) ?? WrittenTime.milliseconds(text.replacing(" ", with: "+"))
  }
}

extension FilterTest.ValueTest {
  /// Nil for a bound or a range that is not of numbers.
  init?(_ value: QueryValue) {
    if value.isAnything {
      self = .present
    } else if let (comparison, text) = value.comparison {
      guard let number = QueryNumber(text) else { return nil }
      self = .within(QueryBounds(comparison, number))
    } else if let (low, high) = value.range, let low = QueryNumber(low), let high = QueryNumber(high) {
      guard let bounds = QueryBounds(from: low, to: high) else { return nil }
      self = .within(bounds)
    } else {
      self = .text(
        TextPattern(pieces: value.pieces, foldsCase: false),
        orNumber: value.isQuoted || value.pieces.count > 1 ? nil : QueryNumber(value.text),
        isTextAlone: value.isQuoted)
    }
  }
}

extension String {
  /// Whether there is nothing in it but decimal digits.
  fileprivate var isDigits: Bool { utf8.allSatisfy { (0x30...0x39).contains($0) } }
}
