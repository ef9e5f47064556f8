extension SchemaParser {
  /// The expected type of a value, which determines the parameters it may use.
  package enum ScalarType {
    case text, word, integer, number, probability, duration, flag, any, anyText

    package var description: String {
      switch self {
      case .text: "a string"
      case .word: "a word"
      case .integer: "a whole number"
      case .number: "a number"
      case .probability: "a probability"
      case .duration: "a duration"
      case .flag: "true or false"
      case .any: "one value"
      case .anyText: "a string"
      }
    }

    /// The description of the type in JSON.
    var memberDescription: String { allows(isString: false) ? description : "a string" }

    /// Returns whether a value in JSON may be a string, or something else.
    func allows(isString: Bool) -> Bool {
      switch self {
      case .text, .word, .duration, .anyText: isString
      case .integer, .number, .probability, .flag: !isString
      case .any: true
      }
    }
  }

  // MARK: - Numbers

  /// Parses a whole number.
  package func parseInteger(_ node: SchemaNode, in range: ClosedRange<Int>) -> Int? {
    guard let scalar = parseScalar(node, as: .integer) else { return nil }
    let text = scalar.text.shortened
    if scalar.isString {
      fail(
        node, scalar, "\"\(text)\" is a string, expected a whole number",
        hint: Int(text) == nil ? nil : "remove the quotation marks")
      return nil
    }
    if let value = Int(scalar.text), range.contains(value), WrittenNumber.value(scalar.text) != nil { return value }
    if isRequestBody {
      failType(node, "a whole number from \(range.lowerBound) to \(range.upperBound)")
      return nil
    }
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
    } else if WrittenNumber.percent(scalar.text) != nil {
      hint = "remove the percent sign"
    }
    fail(node, scalar, "\(text) is not \(limits)", hint: hint)
    return nil
  }

  /// Parses a number.
  package func parseNumber(_ node: SchemaNode, in range: NumberRange) -> Double? {
    guard let scalar = parseScalar(node, as: .number) else { return nil }
    let value = WrittenNumber.value(scalar.text)
    if !scalar.isString, let value, range.contains(value) { return value }
    let text = { (number: Double) in Int(exactly: number).map { String($0) } ?? String(number) }
    var limits = "a number \(range.isMinimumExcluded ? "above" : "from") \(text(range.minimum))"
    // A maximum that nobody reaches by intention would only distract from the minimum.
    if range.maximum < 1e9 || value.map({ $0 > range.maximum }) ?? false {
      limits += range.isMinimumExcluded ? ", at most \(text(range.maximum))" : " to \(text(range.maximum))"
    }
    let hint = WrittenNumber.percent(scalar.text) == nil ? nil : "remove the percent sign"
    fail(node, scalar, "\(scalar.text.shortened) is not \(limits)", hint: hint)
    return nil
  }

  /// Parses a probability.
  package func parseProbability(_ node: SchemaNode) -> Double? {
    guard let scalar = parseScalar(node, as: .probability) else { return nil }
    let value = WrittenNumber.value(scalar.text)
    if let value, (0...1).contains(value), !scalar.isString { return value }
    var hint: String?
    if let share = WrittenNumber.share(scalar.text) {
      hint = "did you mean \(share)?"
    } else if scalar.isString, value != nil {
      hint = "remove the quotation marks"
    }
    fail(node, scalar, "\(scalar.text.shortened) is not a number in 0..1", hint: hint)
    return nil
  }

  // MARK: - Words

  /// Parses a duration, zero or longer, or longer than zero if `isPositive`.
  package func parseDuration(_ node: SchemaNode, isPositive: Bool = false) -> Duration? {
    guard let scalar = parseScalar(node, as: .duration) else { return nil }
    if isRequestBody {
      do throws(InvalidSettingValue) {
        return try Value.duration(scalar.text, isPositive: isPositive)
      } catch {
        failValue(node, scalar.text, "Expected \(error.allowed).")
        return nil
      }
    }
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
  package func parseFlag(_ node: SchemaNode) -> Bool? {
    guard let scalar = parseScalar(node, as: .flag) else { return nil }
    if !scalar.isString, let value = try? Value.flag(scalar.text) { return value }
    if isRequestBody {
      failType(node, ScalarType.flag.description)
      return nil
    }
    let text = scalar.isString ? "\"\(scalar.text.shortened)\"" : scalar.text.shortened
    let isQuoted = scalar.isString && (try? Value.flag(scalar.text)) != nil
    fail(node, scalar, "\(text) is neither true nor false", hint: isQuoted ? "remove the quotation marks" : nil)
    return nil
  }

  /// Parses one of some values of an enumeration.
  package func parseWord<Word: RawRepresentable<String> & Equatable>(
    _ node: SchemaNode, allowed: [Word], synonyms: [String: Word] = [:]
  ) -> Word? {
    guard let scalar = parseScalar(node, as: .word) else { return nil }
    if let word = synonyms[scalar.text] { return word }
    if let word = Word(rawValue: scalar.text), allowed.contains(word) { return word }
    failWord(node, scalar, among: allowed.map(\.rawValue))
    return nil
  }

  /// Records a word that is not allowed.
  package func failWord(_ node: SchemaNode, _ scalar: Scalar, among names: [String]) {
    guard !problems.isFull else { return }
    if isRequestBody {
      let guess = Spelling.suggestion(for: scalar.text, among: names)
      return failValue(
        node, scalar.text, "\(guess)Expected one of \(Spelling.choices(for: scalar.text, among: names)).")
    }
    fail(
      node, scalar, "unknown value \"\(scalar.text.shortened)\"",
      hint: Self.guess(scalar.text, among: names) ?? "use one of \(Spelling.choices(for: scalar.text, among: names))")
  }

  /// Records an invalid value of a member of a request.
  package func failValue(_ node: SchemaNode, _ text: String, _ hint: String) {
    fail(node, "\(node.path) cannot be \"\(text.prefix(80))\"", hint: hint)
  }

  /// Parses a text. An unquoted scalar that YAML reads as another type is a problem, because its meaning depends on
  /// the YAML parser.
  ///
  /// - Parameter pluralName: A description of such texts for the hint.
  package func parseText(_ node: SchemaNode, pluralName: String? = nil) -> String? {
    guard let scalar = parseScalar(node, as: .text) else { return nil }
    return text(of: scalar, at: node, pluralName: pluralName)
  }

  /// Returns the text of a scalar.
  package func text(of scalar: Scalar, at node: SchemaNode, pluralName: String? = nil) -> String? {
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
      node, scalar,
      "\(scalar.text.shortened) without quotation marks is \(seen)\(node.path.hasPrefix("/") ? "" : " to YAML")",
      hint: pluralName.map { "quote \($0): \(quoted)" } ?? "quote it: \(quoted)")
    return nil
  }
}

/// Numbers in JSON syntax.
package enum WrittenNumber {
  /// Returns the value of a decimal number; nil for other notations that Swift, C or YAML accept, such as `nan`,
  /// `0x1p3`, `0410`, `.5`.
  package static func value(_ text: String) -> Double? {
    guard let first = text.utf8.first, first == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= first,
      let value = Double(text), value.isFinite
    else { return nil }
    return text.withBytes { JSONText.problem(in: $0) } == nil ? value : nil
  }

  /// Returns the number before a percent sign; nil for a text without one.
  package static func percent(_ text: String) -> Double? {
    text.hasSuffix("%") ? value(String(text.dropLast())) : nil
  }

  /// Returns the number from 0 to 1 that a percentage means, as text: `0.3, without the percent sign` for `30%`, `0.3` for
  /// `30`; for `.3` and `0,3` the number as it must be written. Nil if the text is neither.
  package static func share(_ text: String) -> String? {
    let written = (text.hasPrefix(".") ? "0" : "") + text.replacing(",", with: ".")
    if written != text, let number = value(written), (0...1).contains(number) { return "\(number)" }
    let percent = percent(text)
    guard let number = percent ?? value(text), (0...100).contains(number), percent != nil || number > 1 else {
      return nil
    }
    return "\(number / 100)" + (percent == nil ? "" : ", without the percent sign")
  }
}
