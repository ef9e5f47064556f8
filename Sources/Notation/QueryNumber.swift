/// A number in a payload, a header or a query. Integers are compared exactly.
package struct QueryNumber: Comparable, Sendable {
  private let whole: Int64?
  private let value: Double

  /// Parses a decimal number in the syntax of JSON; nil if it is invalid or not finite.
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
