/// The value of a condition, as written in a parameter or in a query.
package struct QueryValue: Sendable, Equatable {
  /// The characters, without quotation marks and escapes.
  package let text: String
  /// The parts between the `*` wildcards; an escaped `\*` is a literal character. A single part is a value without a
  /// wildcard.
  package let pieces: [String]
  /// Whether a part of the value was in quotation marks.
  package let isQuoted: Bool
  /// Whether the value begins with a quotation mark, so that its first character is not an operator.
  package let startsQuoted: Bool

  package init(text: String, pieces: [String], isQuoted: Bool, startsQuoted: Bool) {
    self.text = text
    self.pieces = pieces
    self.isQuoted = isQuoted
    self.startsQuoted = startsQuoted
  }

  /// Creates a value from a parameter, which has neither quotation marks nor escapes.
  package init(parameter text: some StringProtocol) {
    self.init(
      text: String(text),
      pieces: text.split(separator: "*" as Character, omittingEmptySubsequences: false).map { String($0) },
      isQuoted: false, startsQuoted: false)
  }

  /// Whether the value consists of wildcards only.
  package var isAnything: Bool { pieces.count > 1 && pieces.allSatisfy(\.isEmpty) }

  /// A comparison of numbers.
  package enum Comparison: String, CaseIterable {
    // Longer operators first, because each begins with a shorter one.
    case atLeast = ">="
    case atMost = "<="
    case above = ">"
    case below = "<"
  }

  /// The operator and the operand of `>3`, `>=3`, `<3` or `<=3`; nil for another value. The operand is not
  /// validated.
  package var comparison: (Comparison, Substring)? {
    guard !startsQuoted, let comparison = Comparison.allCases.first(where: { text.hasPrefix($0.rawValue) }) else {
      return nil
    }
    return (comparison, text.dropFirst(comparison.rawValue.count))
  }

  /// The two ends of `3..9`; nil for another value. The ends are not validated.
  package var range: (Substring, Substring)? {
    guard !isQuoted, let dots = text.firstRange(of: "..") else { return nil }
    return (text[..<dots.lowerBound], text[dots.upperBound...])
  }
}

// MARK: - Interpretation

extension QueryValue {
  /// A description of the values that `wholeNumbers` accepts.
  package static let numberForms =
    "a whole number such as 200, a pattern such as 4*, a bound such as >=400, or a range such as 400..499"
  /// A description of the values that `sizes` accepts.
  package static let sizeForms = "a number of bytes such as 4096, 3.5KiB or 1MiB"
  /// The addition to `sizeForms` for fields whose value can include a comparison.
  package static let sizeBounds = ", a bound such as >3.5K, or a range such as 1K..4K"
  /// A description of the valid values if their type is not known in advance.
  package static let anyForms = "a string, a number such as 3, a bound such as >3, or a range such as 3..9"

  /// The pattern over decimal digits, such as `4*`; nil for another value.
  package var digitsPattern: TextPattern? {
    let isPattern =
      pieces.count > 1 && pieces.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    return isPattern ? TextPattern(pieces: pieces, foldsCase: false) : nil
  }

  /// The pattern that finds this value anywhere in a text, without case; nil for an empty value.
  package var anywherePattern: TextPattern? {
    let isText = pieces.contains { !$0.isEmpty } || isAnything
    return isText ? TextPattern(pieces: [""] + pieces + [""], foldsCase: true) : nil
  }

  /// Returns the range of numbers described by `200`, `>=400` or `400..499`; nil for another value.
  ///
  /// - Parameter read: Parses a number without a comparison. Negative numbers are invalid.
  package func wholeNumbers(_ read: (Substring) -> Int64? = { Int64($0) }) -> ClosedRange<Int64>? {
    func number(_ text: Substring) -> Int64? { read(text).flatMap { $0 >= 0 && $0 < .max ? $0 : nil } }
    if let (comparison, text) = comparison {
      guard let number = number(text) else { return nil }
      return switch comparison {
      case .above: number + 1...Int64.max
      case .atLeast: number...Int64.max
      case .below: Int64.min...number - 1
      case .atMost: Int64.min...number
      }
    }
    if let (low, high) = range {
      guard let low = number(low), let high = number(high), low <= high else { return nil }
      return low...high
    }
    return number(text[...]).map { $0...$0 }
  }

  /// Returns the range of sizes in bytes that the value describes.
  ///
  /// - Parameter comparison: `above` or `below` for a field whose name implies the comparison; nil if the value may
  ///   include one.
  package func sizes(_ comparison: Comparison? = nil) -> ClosedRange<Int64>? {
    let bytes = { (text: Substring) in SizeFormat.bytes(text).map(Int64.init) }
    return switch comparison {
    case .above: bytes(text[...]).map { min($0, .max - 1) + 1...Int64.max }
    case .below: bytes(text[...]).map { Int64.min...($0 - 1) }
    default: wholeNumbers(bytes)
    }
  }

  /// Returns the spelling of the intended range if two of these alternatives together include every number, such as
  /// `>400` and `<500`; nil if they do not.
  package static func rangeInstead(of numbers: [ClosedRange<Int64>], _ bounds: [QueryBounds]) -> String? {
    for one in numbers where one.upperBound == .max && one.lowerBound > .min {
      for other in numbers where other.lowerBound == .min && other.upperBound >= one.lowerBound - 1 {
        return "written \(one.lowerBound)..\(other.upperBound)"
      }
    }
    for one in bounds where one.upper == nil {
      for other in bounds where other.lower == nil {
        if let low = one.lower, let high = other.upper, low.number <= high.number { return "a range such as 3..9" }
      }
    }
    return nil
  }
}

extension FilterError {
  /// Creates an error about alternatives that include every number.
  ///
  /// - Parameter range: The spelling of the intended range.
  package init(field: String, value: String, rangeInstead range: String) {
    self.init(
      field: field, value: value,
      hint: "Conditions on one field are alternatives, and every number is one of these. What lies between two "
        + "numbers is \(range).")
  }

  /// Creates an error about a condition without a value.
  package init(fieldWithoutValue field: String) {
    self.init(
      field: field, value: "",
      hint: "Specify a value, or omit the condition; !\(field)=* finds the records without one.")
  }

  /// Creates an error about too many conditions.
  package init(tooManyConditions field: String) {
    self.init(
      name: field, message: "there are more than \(QueryText.maxConditions) conditions",
      hint: "A * matches many values: topic=com.acme.*")
  }
}

/// A number in a payload, a header or a query. Integers are compared exactly.
package struct QueryNumber: Comparable, Sendable {
  private let whole: Int64?
  private let value: Double

  /// Parses a decimal number: digits, signs, a point, an exponent; nil if it is invalid or not finite.
  package init?(_ text: some StringProtocol) {
    // Double also parses hexadecimal numbers and infinities.
    let isDecimal = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte)
    }
    guard isDecimal, let first = text.utf8.first, "-0123456789".utf8.contains(first), let value = Double(text),
      value.isFinite
    else { return nil }
    whole = Int64(text)
    self.value = value
  }

  package static func == (one: QueryNumber, other: QueryNumber) -> Bool {
    if let one = one.whole, let other = other.whole { return one == other }
    return one.value == other.value
  }

  package static func < (one: QueryNumber, other: QueryNumber) -> Bool {
    if let one = one.whole, let other = other.whole { return one < other }
    return one.value < other.value
  }
}

/// A range of numbers.
package struct QueryBounds: Sendable {
  /// The lower bound and whether it is included.
  package var lower: (number: QueryNumber, isIncluded: Bool)?
  /// The upper bound and whether it is included.
  package var upper: (number: QueryNumber, isIncluded: Bool)?

  /// Creates the range of numbers that satisfy a comparison.
  package init(_ comparison: QueryValue.Comparison, _ number: QueryNumber) {
    switch comparison {
    case .above: lower = (number, false)
    case .atLeast: lower = (number, true)
    case .below: upper = (number, false)
    case .atMost: upper = (number, true)
    }
  }

  /// Creates the range between two numbers, both included; nil if the first is the larger one.
  package init?(from low: QueryNumber, to high: QueryNumber) {
    guard low <= high else { return nil }
    lower = (low, true)
    upper = (high, true)
  }

  /// Returns whether the range includes a number.
  package func contains(_ number: QueryNumber) -> Bool {
    if let lower, lower.isIncluded ? number < lower.number : number <= lower.number { return false }
    if let upper, upper.isIncluded ? number > upper.number : number >= upper.number { return false }
    return true
  }
}
