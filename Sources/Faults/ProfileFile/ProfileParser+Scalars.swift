import FaultModel
internal import Notation

extension ProfileParser {
  /// The expected type of a value, which determines the parameters it may use.
  enum Use {
    case text, word, whole, number, probability, duration, flag, any

    var kinds: [Profile.Parameter.Kind] {
      switch self {
      case .text, .word: [.string]
      case .whole: [.int]
      case .number: [.int, .probability]
      case .probability: [.probability]
      case .duration: [.duration]
      case .flag: [.bool]
      case .any: Profile.Parameter.Kind.allCases
      }
    }

    var spoken: String {
      switch self {
      case .text: "a string"
      case .word: "a word"
      case .whole: "a whole number"
      case .number: "a number"
      case .probability: "a probability"
      case .duration: "a duration"
      case .flag: "true or false"
      case .any: "one value"
      }
    }
  }

  /// Returns a scalar, or the value of the parameter it refers to.
  func scalar(_ place: Located, for use: Use) -> Scalar? {
    guard let scalar = value(at: place, { node throws(YAMLError) in try node.scalar(use.spoken) }) else { return nil }
    guard scalar.text.contains("${") else { return Scalar(text: scalar.text, isString: scalar.isString) }
    guard let name = ParameterSet.name(in: scalar.text) else {
      fail(
        place, "\"\(scalar.text.shortened)\": a parameter must be the whole value, \"${name}\", not a part of it",
        hint: "move the whole value into the parameter")
      return nil
    }
    return value(ofParameter: name, at: place, for: use)
  }

  private func value(ofParameter name: String, at place: Located, for use: Use) -> Scalar? {
    guard let entry = parameters.all[name] else {
      if let absence = parameters.absence {
        fail(place, "\"${\(name.shortened)}\": \(absence)")
      } else {
        let hint =
          Self.guess(name, among: parameters.order).map {
            $0.replacing("\"?", with: "}\"?").replacing("\"", with: "\"${", maxReplacements: 1)
          }
          ?? (parameters.order.isEmpty
            ? "params has none" : "the parameters are \(parameters.order.joined(separator: ", "))")
        fail(place, "unknown parameter \"\(name.shortened)\"", hint: hint)
      }
      return nil
    }
    parameters.change(name) { $0.isUsed = true }
    guard !entry.isBroken else { return nil }
    let kind = entry.parameter.kind
    guard use.kinds.contains(kind) else {
      fail(
        place, "the parameter \"\(name)\" is of type \(kind.rawValue), expected \(use.spoken)",
        hint: "make its type \(use.kinds.map(\.rawValue).joinedWithOr)")
      return nil
    }
    return Scalar(text: entry.parameter.value, isString: kind == .string, parameter: name)
  }

  /// Records an invalid value, including the parameter it comes from.
  func fail(_ place: Located, _ scalar: Scalar, _ message: String, hint: String? = nil) {
    fail(place, scalar.parameter.map { "\(message) (parameter \"\($0)\")" } ?? message, hint: hint)
  }

  // MARK: - Numbers

  /// Parses a whole number.
  func whole(_ place: Located, in range: ClosedRange<Int>) -> Int? {
    guard let scalar = scalar(place, for: .whole) else { return nil }
    let text = scalar.text.shortened
    if scalar.isString {
      fail(
        place, scalar, "\"\(text)\" is a string, expected a whole number",
        hint: Int(text) == nil ? nil : "remove the quotation marks")
      return nil
    }
    if let value = Int(scalar.text), range.contains(value), WrittenNumber.value(scalar.text) != nil { return value }
    let limits =
      range.upperBound >= Int(Int32.max)
      ? "a whole number from \(range.lowerBound)" : "a whole number from \(range.lowerBound) to \(range.upperBound)"
    var hint: String?
    if let value = WrittenNumber.value(scalar.text), let rounded = Int(exactly: value.rounded()),
      range.contains(rounded)
    {
      hint = "did you mean \(rounded)?"
    } else if scalar.text.first == "0", scalar.text != "0", let octal = Int(scalar.text, radix: 8) {
      hint = "YAML 1.1 parsers read the leading 0 as octal, \(octal)"
    }
    fail(place, scalar, "\(text) is not \(limits)", hint: hint)
    return nil
  }

  /// Parses a number that is at least `least`, or above it unless `inclusive`.
  func number(_ place: Located, from least: Double, inclusive: Bool, to most: Double = 1e12) -> Double? {
    guard let scalar = scalar(place, for: .number) else { return nil }
    if !scalar.isString, let value = WrittenNumber.value(scalar.text), value <= most,
      inclusive ? value >= least : value > least
    {
      return value
    }
    let least = Int(exactly: least).map { String($0) } ?? String(least)
    fail(place, scalar, "\(scalar.text.shortened) is not a number \(inclusive ? "from" : "above") \(least)")
    return nil
  }

  /// Parses a probability.
  func probability(_ place: Located) -> Double? {
    guard let scalar = scalar(place, for: .probability) else { return nil }
    let value = WrittenNumber.value(scalar.text)
    if let value, (0...1).contains(value), !scalar.isString { return value }
    var hint: String?
    let percent = scalar.text.hasSuffix("%") ? WrittenNumber.value(String(scalar.text.dropLast())) : value
    if let percent, percent > 1 || scalar.text.hasSuffix("%"), (0...100).contains(percent) {
      hint = "did you mean \(percent / 100)?"
    } else if scalar.isString, value != nil {
      hint = "remove the quotation marks"
    }
    fail(place, scalar, "\(scalar.text.shortened) is not a number in 0..1", hint: hint)
    return nil
  }

  // MARK: - Words

  /// Parses a duration, zero or longer, or longer than zero if `isPositive`.
  func duration(_ place: Located, isPositive: Bool = false) -> Duration? {
    guard let scalar = scalar(place, for: .duration) else { return nil }
    if let duration = DurationFormat.duration(scalar.text) {
      if isPositive ? duration > .zero : duration >= .zero { return duration }
      fail(place, scalar, "\(scalar.text.shortened) is \(isPositive ? "not longer than zero" : "less than zero")")
      return nil
    }
    if WrittenNumber.value(scalar.text) != nil {
      fail(place, scalar, "\(scalar.text.shortened) has no unit", hint: "did you mean \(scalar.text.shortened)s?")
    } else {
      fail(
        place, scalar, "\"\(scalar.text.shortened)\" is not a duration",
        hint: "durations are written 500ms, 5s, 2m, 1h, 1h30m")
    }
    return nil
  }

  /// Parses `true` or `false`.
  func flag(_ place: Located) -> Bool? {
    guard let scalar = scalar(place, for: .flag) else { return nil }
    if !scalar.isString, let value = try? Value.flag(scalar.text) { return value }
    fail(place, scalar, "\(scalar.text.shortened) is neither true nor false")
    return nil
  }

  /// Parses a value of an enumeration.
  func word<Choice: RawRepresentable<String> & CaseIterable & Equatable>(
    _ place: Located, of type: Choice.Type = Choice.self, allowed: [Choice] = Array(Choice.allCases)
  ) -> Choice? {
    guard let scalar = scalar(place, for: .word) else { return nil }
    if let choice = Choice(rawValue: scalar.text), allowed.contains(choice) { return choice }
    failWord(place, scalar, among: allowed.map(\.rawValue))
    return nil
  }

  /// Records a word that is not allowed.
  func failWord(_ place: Located, _ scalar: Scalar, among names: [String]) {
    guard !problems.isFull else { return }
    fail(
      place, scalar, "unknown value \"\(scalar.text.shortened)\"",
      hint: Self.guess(scalar.text, among: names) ?? "it is one of \(names.joined(separator: ", "))")
  }

  /// Parses a text. An unquoted scalar that YAML reads as another type is a problem, because its meaning depends on
  /// the YAML parser.
  ///
  /// - Parameter thing: A description of the text for the hint.
  func text(_ place: Located, pluralName: String? = nil) -> String? {
    guard let scalar = scalar(place, for: .text) else { return nil }
    return text(scalar, at: place, pluralName: pluralName)
  }

  /// Returns the text of a scalar.
  func text(_ scalar: Scalar, at place: Located, pluralName: String? = nil) -> String? {
    if scalar.isString { return scalar.text }
    let quoted = "\"\(scalar.text.shortened)\""
    let seen: String
    switch YAMLScalarKind(scalar.text) {
    case .string: return scalar.text
    case .null: seen = "nothing"
    case .boolean: seen = "true or false"
    case .number: seen = "a number"
    case .time: seen = "a time"
    }
    fail(
      place, scalar, "\(scalar.text.shortened) without quotation marks is \(seen) to YAML",
      hint: pluralName.map { "quote \($0): \(quoted)" } ?? "quote it: \(quoted)")
    return nil
  }

  /// Parses the name of a profile or a rule.
  func name(_ place: Located) -> String? {
    guard let text = text(place, pluralName: "names") else { return nil }
    if let problem = ProfileName.problem(with: text) {
      fail(
        place, "\"\(text.shortened)\": \(problem)", hint: ProfileName.repaired(text).map { "did you mean \"\($0)\"?" })
      return nil
    }
    return text
  }
}

/// The rules for names of profiles and rules, which are used in URLs, on command lines and in records.
package enum ProfileName {
  /// Returns why a text is not a valid name, in words; nil if it is valid.
  package static func problem(with text: String) -> String? {
    let isFine =
      (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { isAllowed($0) }
      && text.utf8.first != UInt8(ascii: "-")
    return isFine ? nil : "a name is lower-case letters, digits and hyphens, at most 64, and no hyphen in front"
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte.isLetterOrDigit && asciiLowercased(byte) == byte
  }

  /// Returns the valid name most similar to an invalid one.
  static func repaired(_ text: String) -> String? {
    let bytes = text.utf8.prefix(64).map { byte in
      let small = asciiLowercased(byte)
      return isAllowed(small) ? small : UInt8(ascii: "-")
    }
    let name = String(decoding: bytes.drop { $0 == UInt8(ascii: "-") }, as: UTF8.self)
    return problem(with: name) == nil ? name : nil
  }
}
