/// What a field is compared with, as it was written in a parameter or in a query.
package struct QueryValue: Sendable, Equatable {
  /// Its characters, without quotation marks and escapes.
  package let text: String
  /// What stands between its stars; a star with a backslash before it is a character like others. One piece alone is a
  /// value without a star.
  package let pieces: [String]
  /// Whether some of it stood in quotation marks.
  package let isQuoted: Bool
  /// Whether it begins with one: then its first character is no operator.
  package let startsQuoted: Bool

  package init(text: String, pieces: [String], isQuoted: Bool, startsQuoted: Bool) {
    self.text = text
    self.pieces = pieces
    self.isQuoted = isQuoted
    self.startsQuoted = startsQuoted
  }

  /// The value of a parameter: it has neither quotation marks nor escapes.
  package init(parameter text: some StringProtocol) {
    self.init(
      text: String(text),
      pieces: text.split(separator: "*" as Character, omittingEmptySubsequences: false).map { String($0) },
      isQuoted: false, startsQuoted: false)
  }

  /// Whether it is nothing but stars.
  package var isAnything: Bool { pieces.count > 1 && pieces.allSatisfy(\.isEmpty) }

  /// How a number compares.
  package enum Comparison: String, CaseIterable {
    // The longer ones first, because each begins with a shorter one.
    case atLeast = ">="
    case atMost = "<="
    case above = ">"
    case below = "<"
  }

  /// `>3`, `>=3`, `<3`, `<=3`: the comparison and the number, whatever that is; nil for another value.
  package var comparison: (Comparison, Substring)? {
    guard !startsQuoted, let comparison = Comparison.allCases.first(where: { text.hasPrefix($0.rawValue) }) else {
      return nil
    }
    return (comparison, text.dropFirst(comparison.rawValue.count))
  }

  /// `3..9`: both ends, whatever they are; nil for another value.
  package var range: (Substring, Substring)? {
    guard !isQuoted, let dots = text.firstRange(of: "..") else { return nil }
    return (text[..<dots.lowerBound], text[dots.upperBound...])
  }
}

// MARK: - What a value means

extension QueryValue {
  /// The forms of `wholeNumbers`, in words.
  package static let numberForms =
    "a whole number such as 200, a pattern such as 4*, a bound such as >=400, or a range such as 400..499"
  /// The forms of `sizes`, in words.
  package static let sizeForms = "a number of bytes such as 4096, 3.5KiB or 1MiB"
  /// What may follow `sizeForms` where the comparison is part of the value.
  package static let sizeBounds = ", a bound such as >3.5K, or a range such as 1K..4K"
  /// The forms of a value whose type is not known in advance, in words.
  package static let anyForms = "a text, a number such as 3, a bound such as >3, or a range such as 3..9"

  /// The pattern over decimal digits that this value is, such as `4*`; nil for another value.
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

  /// The numbers that `200`, `>=400` or `400..499` means; nil for another value.
  ///
  /// - Parameter read: the number of a text without comparison; negative numbers are refused.
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

  /// The numbers of bytes that the value means.
  ///
  /// - Parameter comparison: `above` or `below` for a field whose name is the comparison; nil where the value has it.
  package func sizes(_ comparison: Comparison? = nil) -> ClosedRange<Int64>? {
    let bytes = { (text: Substring) in WrittenSize.bytes(text).map(Int64.init) }
    return switch comparison {
    case .above: bytes(text[...]).map { min($0, .max - 1) + 1...Int64.max }
    case .below: bytes(text[...]).map { Int64.min...($0 - 1) }
    default: wholeNumbers(bytes)
    }
  }

  /// How to write the range that two of these alternatives mean, if together they include every number: `>400` beside
  /// `<500`; nil if they do not.
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
  /// An error about alternatives that include every number.
  ///
  /// - Parameter range: how to write what was meant.
  package init(field: String, value: String, rangeInstead range: String) {
    self.init(
      field: field, value: value,
      hint: "Conditions on one field are alternatives, and every number is one of these. What lies between two "
        + "numbers is \(range).")
  }

  /// An error about a condition without a value.
  package init(fieldWithoutValue field: String) {
    self.init(
      field: field, value: "", hint: "Give it a value, or leave it out; !\(field)=* finds the records without one.")
  }

  /// An error about one condition too many.
  package init(tooManyConditions field: String) {
    self.init(
      name: field, message: "there are more than \(QueryText.maxConditions) conditions",
      hint: "A * stands for many values: topic=com.acme.*")
  }
}
