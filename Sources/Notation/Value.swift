/// An invalid value of a setting. The code that catches the error knows the setting.
package struct InvalidSettingValue: Error, Equatable, Sendable {
  /// The invalid value.
  package let value: String
  /// A description of the valid values, to follow "it takes".
  package let allowed: String

  /// Creates an error with the invalid value and a description of the valid values.
  package init(value: String, allowed: String) {
    self.value = value
    self.allowed = allowed
  }
}

/// Parses the values of settings from text. Each function throws `InvalidSettingValue` with a description of the
/// valid values.
package enum Value {
  /// Parses an integer.
  package static func whole(_ text: String, in range: ClosedRange<Int>) throws(InvalidSettingValue) -> Int {
    guard let number = Int(text), range.contains(number) else {
      let limits =
        range.upperBound == .max ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
      throw InvalidSettingValue(value: text, allowed: "a whole number \(limits)")
    }
    return number
  }

  /// Parses a number of bytes above zero.
  package static func size(_ text: String) throws(InvalidSettingValue) -> Int {
    guard let size = SizeFormat.bytes(text), size > 0 else {
      throw InvalidSettingValue(value: text, allowed: "a size such as 512KiB, 256MiB or 1GiB")
    }
    return size
  }

  /// Parses a duration of at least zero, or above zero if `isPositive`.
  package static func duration(_ text: String, isPositive: Bool = false) throws(InvalidSettingValue) -> Duration {
    guard let duration = DurationFormat.duration(text), isPositive ? duration > .zero : duration >= .zero else {
      let allowed = "a duration such as 500ms, 5s, 2m, 1h or 7d"
      throw InvalidSettingValue(value: text, allowed: isPositive ? allowed + ", longer than zero" : allowed)
    }
    return duration
  }

  /// Parses the raw value of an enumeration.
  package static func word<Choice: RawRepresentable<String> & CaseIterable>(
    _ text: String, of type: Choice.Type
  ) throws(InvalidSettingValue) -> Choice {
    guard let choice = Choice(rawValue: text) else {
      throw InvalidSettingValue(value: text, allowed: type.allCases.map(\.rawValue).joinedWithOr)
    }
    return choice
  }

  /// Parses a Boolean in every spelling of YAML 1.1, except `y` and `n`: for `throttle_on_4xx: off` some YAML
  /// emitters write a Boolean and others a string.
  package static func flag(_ text: String) throws(InvalidSettingValue) -> Bool {
    switch text.lowercased() {
    case "on", "true", "yes": return true
    case "off", "false", "no": return false
    default: throw InvalidSettingValue(value: text, allowed: "on or off")
    }
  }

  /// Returns whether the text is a Boolean that is false.
  package static func isOff(_ text: String) -> Bool {
    (try? flag(text)) == false
  }

  /// Returns a text that is not empty.
  package static func notEmpty(_ text: String, allowed: String) throws(InvalidSettingValue) -> String {
    guard !text.isEmpty else { throw InvalidSettingValue(value: text, allowed: allowed) }
    return text
  }
}

extension String {
  /// The string quoted as one word of a POSIX shell.
  package var shellQuoted: String {
    let isPlain = utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
      default: "-._~/:=,@%+".utf8.contains(byte)
      }
    }
    return isPlain && !isEmpty ? self : "'" + replacing("'", with: #"'\''"#) + "'"
  }

  /// The string quoted as one word, on one line: with control characters in the form `$'…'`, which bash and zsh read, otherwise
  /// as one word of a POSIX shell.
  package var shellQuotedOnOneLine: String {
    guard unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { return shellQuoted }
    return unicodeScalars.reduce(into: "$'") { quoted, scalar in
      switch scalar {
      case "\\", "'": quoted += "\\\(scalar)"
      case "\n": quoted += "\\n"
      case "\t": quoted += "\\t"
      case "\u{0}"..<"\u{20}", "\u{7F}": quoted += "\\x" + Hexadecimal.text(UInt64(scalar.value), digits: 2)
      default: quoted.unicodeScalars.append(scalar)
      }
    } + "'"
  }
}

/// Parses sizes in bytes.
package enum SizeFormat {
  /// Parses a number, decimals allowed, with one of the units `B K KiB M MiB G GiB` (each 1024 times the previous
  /// one) or without a unit. Nil if the text is invalid, or for 8 EiB or more.
  package static func bytes(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { ("0"..."9").contains($0) || $0 == "." }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }
    let factor: Double
    switch unit.lowercased() {
    case "", "b": factor = 1
    case "k", "kib": factor = 1024
    case "m", "mib": factor = 1_048_576
    case "g", "gib": factor = 1_073_741_824
    default: return nil
    }
    guard let value = Double(digits) else { return nil }
    return Int(exactly: (value * factor).rounded(.down))
  }
}

/// Suggestions for misspelled names.
package enum Spelling {
  /// Returns the name most similar to `word`; nil if more than a third of its letters differ.
  package static func nearest(to word: String, among names: some Sequence<String>) -> String? {
    let word = word.lowercased().replacing("-", with: "_")
    // Limit the length: the distance takes time proportional to the product of both lengths.
    let letters = Array(word.unicodeScalars.prefix(64))
    // A name that begins or ends with the whole word is similar at any length: `token` for `device_token`.
    let near = names.map { name in
      let other = name.lowercased().replacing("-", with: "_")
      let isPart = word.count >= 3 && (other.hasPrefix(word) || other.hasSuffix(word))
      return (name: name, distance: isPart ? 1 : distance(letters, Array(other.unicodeScalars)))
    }
    guard let best = near.min(by: { $0.distance < $1.distance }), best.distance <= max(1, best.name.count / 3) else {
      return nil
    }
    return best.name
  }

  /// Returns a sentence such as `Did you mean topic? ` with a space after it; empty if no name is similar enough.
  package static func suggestion(for word: String, among names: some Sequence<String>) -> String {
    nearest(to: String(word.prefix(40)), among: names).map { "Did you mean \($0)? " } ?? ""
  }

  /// Returns the names to choose from, for an error about a word that is none of them: all of a few, else those that resemble
  /// the word, or the first ones, and how many more there are: `max_records, max_bytes and 43 more`.
  package static func choices(for word: String, among names: [String]) -> String {
    guard names.count > 12 else { return names.joined(separator: ", ") }
    func parts(_ name: String) -> [Substring] {
      name.lowercased().split { "-_./ ".contains($0) }.filter { $0.count > 2 }
    }
    let words = Set(parts(String(word.prefix(40))))
    let near = names.filter { !words.isDisjoint(with: parts($0)) }
    return (near + names.filter { !near.contains($0) }).listed(max(6, min(near.count, 12)))
  }

  /// Returns where two texts differ if one insertion, deletion, substitution or swap of adjacent characters turns one into the
  /// other: the differing parts of both. Nil if they are equal, or differ more. ASCII only: other characters count by byte.
  package static func singleDifference(
    _ one: ArraySlice<UInt8>, _ other: ArraySlice<UInt8>
  ) -> (one: ArraySlice<UInt8>, other: ArraySlice<UInt8>)? {
    guard abs(one.count - other.count) <= 1 else { return nil }
    let common = zip(one, other).prefix { $0 == $1 }.count
    var (first, second) = (one.dropFirst(common), other.dropFirst(common))
    while let last = first.last, last == second.last {
      first.removeLast()
      second.removeLast()
    }
    switch (first.count, second.count) {
    case (1, 0), (0, 1), (1, 1): return (first, second)
    case (2, 2) where first.elementsEqual(second.reversed()): return (first, second)
    default: return nil
    }
  }

  /// Returns the number of insertions, deletions, substitutions and swaps of adjacent letters between two words.
  private static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...other.count)
    for (row, letter) in one.enumerated() {
      var current = [row + 1]
      for (column, otherLetter) in other.enumerated() {
        var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == otherLetter ? 0 : 1))
        if row > 0, column > 0, letter == other[column - 1], one[row - 1] == otherLetter {
          best = min(best, beforeLast[column - 1] + 1)
        }
        current.append(best)
      }
      beforeLast = last
      last = current
    }
    return last[other.count]
  }
}

extension [String] {
  /// The elements as text, such as `a, b or c`.
  package var joinedWithOr: String {
    guard let last, count > 1 else { return first ?? "" }
    return dropLast().joined(separator: ", ") + " or " + last
  }
}

extension Collection<String> {
  /// Returns the first elements, and how many more there are: `a, b and 38 more`.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of elements shown.
  ///   - count: The number of all elements, if the collection has only some of them.
  package func listed(_ limit: Int, of count: Int? = nil) -> String {
    let shown = prefix(limit)
    let rest = (count ?? self.count) - shown.count
    return shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }
}

extension Int {
  /// Returns the number with a noun, and the words behind it: `1 push was lost`, `2 pushes were lost`.
  ///
  /// - Parameters:
  ///   - noun: The noun for one; the plural has `s`, or `es` after `sh`.
  ///   - one: The words behind it for one.
  ///   - several: The words behind it for another number.
  package func counted(_ noun: String, _ one: String = "", _ several: String = "") -> String {
    let words = self == 1 ? noun : noun + (noun.hasSuffix("sh") ? "es" : "s")
    return ["\(self) \(words)", self == 1 ? one : several].filter { !$0.isEmpty }.joined(separator: " ")
  }
}
