import FaultModel
internal import Notation

extension ProfileParser {
  /// The expected type of a value, which determines the parameters it may use.
  enum ScalarType {
    case text, word, integer, number, probability, duration, flag, any

    var kinds: [Profile.Parameter.Kind] {
      switch self {
      case .text, .word: [.string]
      case .integer: [.int]
      case .number: [.int, .probability]
      case .probability: [.probability]
      case .duration: [.duration]
      case .flag: [.bool]
      case .any: Profile.Parameter.Kind.allCases
      }
    }

    var description: String {
      switch self {
      case .text: "a string"
      case .word: "a word"
      case .integer: "a whole number"
      case .number: "a number"
      case .probability: "a probability"
      case .duration: "a duration"
      case .flag: "true or false"
      case .any: "one value"
      }
    }
  }

  /// Returns a scalar, or the value of the parameter it refers to.
  func parseScalar(_ node: ProfileNode, as type: ScalarType) -> Scalar? {
    guard let scalar = value(at: node, { yaml throws(YAMLError) in try yaml.scalar(type.description) }) else {
      return nil
    }
    guard scalar.text.contains("${") else { return Scalar(text: scalar.text, isString: scalar.isString) }
    guard let name = ParameterSet.name(in: scalar.text) else {
      fail(
        node, "\"\(scalar.text.shortened)\": a parameter must be the whole value, \"${name}\", not a part of it",
        hint: "move the whole value into the parameter")
      return nil
    }
    return value(ofParameter: name, at: node, as: type)
  }

  /// Returns the name of the parameter that a value refers to.
  func parameterName(_ node: ProfileNode?) -> String? {
    guard case .scalar(let scalar)? = node?.content else { return nil }
    return ParameterSet.name(in: scalar.text)
  }

  private func value(ofParameter name: String, at node: ProfileNode, as type: ScalarType) -> Scalar? {
    guard let entry = parameters.all[name] else {
      if let absence = parameters.absence {
        fail(node, "\"${\(name.shortened)}\": \(absence)")
      } else {
        let hint =
          Self.guess(name, among: parameters.order).map {
            $0.replacing("\"?", with: "}\"?").replacing("\"", with: "\"${", maxReplacements: 1)
          }
          ?? (parameters.order.isEmpty
            ? "the profile defines no parameters" : "the parameters are \(parameters.order.joined(separator: ", "))")
        fail(node, "unknown parameter \"\(name.shortened)\"", hint: hint)
      }
      return nil
    }
    parameters.change(name) { $0.isUsed = true }
    guard !entry.isBroken else { return nil }
    let kind = entry.parameter.kind
    guard type.kinds.contains(kind) else {
      fail(
        node, "the parameter \"\(name)\" is of type \(kind.rawValue), expected \(type.description)",
        hint: "make its type \(type.kinds.map(\.rawValue).joinedWithOr)")
      return nil
    }
    return Scalar(text: entry.parameter.value, isString: kind == .string, parameter: name)
  }

  /// Records an invalid value, including the parameter it comes from.
  func fail(_ node: ProfileNode, _ scalar: Scalar, _ message: String, hint: String? = nil) {
    fail(node, scalar.parameter.map { "\(message) (parameter \"\($0)\")" } ?? message, hint: hint)
  }

  // MARK: - Numbers

  /// Parses a whole number.
  func parseInteger(_ node: ProfileNode, in range: ClosedRange<Int>) -> Int? {
    guard let scalar = parseScalar(node, as: .integer) else { return nil }
    let text = scalar.text.shortened
    if scalar.isString {
      fail(
        node, scalar, "\"\(text)\" is a string, expected a whole number",
        hint: Int(text) == nil ? nil : "remove the quotation marks")
      return nil
    }
    if let value = Int(scalar.text), range.contains(value), WrittenNumber.value(scalar.text) != nil { return value }
    // A maximum that nobody reaches by intention would only distract from the minimum.
    let namesMaximum =
      range.upperBound < Int(Int32.max)
      || WrittenNumber.value(scalar.text).map { $0 > Double(range.upperBound) } ?? false
    let limits = "a whole number from \(range.lowerBound)" + (namesMaximum ? " to \(range.upperBound)" : "")
    var hint: String?
    if let value = WrittenNumber.value(scalar.text), let rounded = Int(exactly: value.rounded()),
      range.contains(rounded)
    {
      hint = "did you mean \(rounded)?"
    } else if scalar.text.first == "0", scalar.text != "0", let octal = Int(scalar.text, radix: 8) {
      hint = "YAML 1.1 parsers read the leading 0 as octal, \(octal)"
    }
    fail(node, scalar, "\(text) is not \(limits)", hint: hint)
    return nil
  }

  /// Parses a number.
  func parseNumber(_ node: ProfileNode, in range: NumberRange) -> Double? {
    guard let scalar = parseScalar(node, as: .number) else { return nil }
    let value = WrittenNumber.value(scalar.text)
    if !scalar.isString, let value, range.contains(value) { return value }
    let text = { (number: Double) in Int(exactly: number).map { String($0) } ?? String(number) }
    var limits = "a number \(range.isMinimumExcluded ? "above" : "from") \(text(range.minimum))"
    // A maximum that nobody reaches by intention would only distract from the minimum.
    if range.maximum < 1e9 || value.map({ $0 > range.maximum }) ?? false {
      limits += range.isMinimumExcluded ? ", at most \(text(range.maximum))" : " to \(text(range.maximum))"
    }
    fail(node, scalar, "\(scalar.text.shortened) is not \(limits)")
    return nil
  }

  /// Returns whether a value is a number or refers to a parameter of type int.
  func isNumber(_ node: ProfileNode) -> Bool {
    guard case .scalar(let scalar) = node.content else { return false }
    if let name = ParameterSet.name(in: scalar.text) { return parameters.all[name]?.parameter.kind == .int }
    return !scalar.isString && YAMLScalarKind(scalar.text) == .number
  }

  /// Parses a probability.
  func parseProbability(_ node: ProfileNode) -> Double? {
    guard let scalar = parseScalar(node, as: .probability) else { return nil }
    let value = WrittenNumber.value(scalar.text)
    if let value, (0...1).contains(value), !scalar.isString { return value }
    var hint: String?
    let percent = scalar.text.hasSuffix("%") ? WrittenNumber.value(String(scalar.text.dropLast())) : value
    if let percent, percent > 1 || scalar.text.hasSuffix("%"), (0...100).contains(percent) {
      hint = "did you mean \(percent / 100)?"
    } else if scalar.isString, value != nil {
      hint = "remove the quotation marks"
    }
    fail(node, scalar, "\(scalar.text.shortened) is not a number in 0..1", hint: hint)
    return nil
  }

  // MARK: - Words

  /// Parses a duration, zero or longer, or longer than zero if `isPositive`.
  func parseDuration(_ node: ProfileNode, isPositive: Bool = false) -> Duration? {
    guard let scalar = parseScalar(node, as: .duration) else { return nil }
    if let duration = DurationFormat.duration(scalar.text) {
      if isPositive ? duration > .zero : duration >= .zero { return duration }
      fail(node, scalar, "\(scalar.text.shortened) is \(isPositive ? "not longer than zero" : "less than zero")")
      return nil
    }
    if WrittenNumber.value(scalar.text) != nil {
      fail(node, scalar, "\(scalar.text.shortened) has no unit", hint: "did you mean \(scalar.text.shortened)s?")
    } else {
      fail(
        node, scalar, "\"\(scalar.text.shortened)\" is not a duration",
        hint: "durations are written 500ms, 5s, 2m, 1h, 1h30m")
    }
    return nil
  }

  /// Parses `true` or `false`.
  func parseFlag(_ node: ProfileNode) -> Bool? {
    guard let scalar = parseScalar(node, as: .flag) else { return nil }
    if !scalar.isString, let value = try? Value.flag(scalar.text) { return value }
    fail(node, scalar, "\(scalar.text.shortened) is neither true nor false")
    return nil
  }

  /// Parses one of some values of an enumeration.
  func parseWord<Word: RawRepresentable<String> & Equatable>(_ node: ProfileNode, allowed: [Word]) -> Word? {
    guard let scalar = parseScalar(node, as: .word) else { return nil }
    if let word = Word(rawValue: scalar.text), allowed.contains(word) { return word }
    failWord(node, scalar, among: allowed.map(\.rawValue))
    return nil
  }

  /// Records a word that is not allowed.
  func failWord(_ node: ProfileNode, _ scalar: Scalar, among names: [String]) {
    guard !problems.isFull else { return }
    fail(
      node, scalar, "unknown value \"\(scalar.text.shortened)\"",
      hint: Self.guess(scalar.text, among: names) ?? "use one of \(names.joined(separator: ", "))")
  }

  /// Parses a text. An unquoted scalar that YAML reads as another type is a problem, because its meaning depends on
  /// the YAML parser.
  ///
  /// - Parameter pluralName: A description of such texts for the hint.
  func parseText(_ node: ProfileNode, pluralName: String? = nil) -> String? {
    guard let scalar = parseScalar(node, as: .text) else { return nil }
    return text(of: scalar, at: node, pluralName: pluralName)
  }

  /// Returns the text of a scalar.
  func text(of scalar: Scalar, at node: ProfileNode, pluralName: String? = nil) -> String? {
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
      node, scalar, "\(scalar.text.shortened) without quotation marks is \(seen) to YAML",
      hint: pluralName.map { "quote \($0): \(quoted)" } ?? "quote it: \(quoted)")
    return nil
  }

  /// Parses the name of a profile or a rule.
  func parseName(_ node: ProfileNode) -> String? {
    guard let text = parseText(node, pluralName: "names") else { return nil }
    if let problem = ProfileName.problem(with: text) {
      fail(
        node, "\"\(text.shortened)\": \(problem)", hint: ProfileName.repaired(text).map { "did you mean \"\($0)\"?" })
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
