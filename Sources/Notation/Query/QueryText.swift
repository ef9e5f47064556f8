/// A single condition as written.
package struct QueryTerm: Sendable, Equatable {
  /// The name of the field.
  package let name: String
  /// The value that the field is compared with.
  package let value: QueryValue
  /// Whether the condition is negated.
  package let isNegated: Bool

  package init(name: String, value: QueryValue, isNegated: Bool) {
    self.name = name
    self.value = value
    self.isNegated = isNegated
  }

  /// Creates a condition from a parameter. A `!` before the name or before the value negates it.
  package init(name: String, value: String) {
    let (negatedName, negatedValue) = (name.hasPrefix("!"), value.hasPrefix("!"))
    self.init(
      name: negatedName ? String(name.dropFirst()) : name,
      value: QueryValue(parameter: negatedValue ? value.dropFirst() : value[...]),
      isNegated: negatedName != negatedValue)
  }
}

/// A parser for the text of a query:
/// `status:410 topic:com.acme.* !type:background larger:3.5K text:"order shipped" payload./aps/badge:>3`.
///
/// A condition is a field, a colon (or an equals sign, or directly `>` or `<`), and a value. White space separates
/// conditions. Quotation marks allow white space, colons and operators in a value; within them `\"`, `\\` and `\*`
/// are the literal characters, `\n` is a line break and `\t` a tab. A `*` matches any text, within quotation marks
/// too.
package struct QueryText {
  /// The maximum length of a query, and of the value of a condition, in bytes.
  package static let maxLength = 4096
  /// The maximum number of conditions.
  package static let maxConditions = 100

  private let characters: [Unicode.Scalar]
  private let allowsWords: Bool
  private var position = 0

  /// Calls `take` with each condition.
  ///
  /// - Parameter allowsWords: Whether a word without a field is a condition, whose name is empty. Otherwise it is an
  ///   error.
  /// - Throws: `FilterError` with the position of the condition that is invalid or for which `take` throws.
  package static func read(
    _ text: String, allowsWords: Bool = false, _ take: (QueryTerm) throws(FilterError) -> Void
  ) throws(FilterError) {
    guard text.utf8.count <= maxLength else {
      throw FilterError(
        name: "q", message: "the query has \(text.utf8.count) bytes", hint: "At most \(maxLength) are read.")
    }
    var reader = QueryText(characters: Array(text.unicodeScalars), allowsWords: allowsWords)
    while reader.skipSpace() {
      let start = reader.position
      do throws(FilterError) {
        try take(reader.term())
      } catch {
        throw error.at(column: start + 1, word: reader.word(from: start))
      }
    }
  }

  private init(characters: [Unicode.Scalar], allowsWords: Bool) {
    self.characters = characters
    self.allowsWords = allowsWords
  }

  private var current: Unicode.Scalar? { position < characters.count ? characters[position] : nil }

  /// Skips white space; returns whether there is more text.
  private mutating func skipSpace() -> Bool {
    while let character = current, character.properties.isWhitespace { position += 1 }
    return current != nil
  }

  /// Returns the word that begins at `start`, extended from the current position to the next white space.
  private func word(from start: Int) -> String {
    var end = position
    while end < characters.count, !characters[end].properties.isWhitespace { end += 1 }
    var word = String.UnicodeScalarView()
    word.append(contentsOf: characters[start..<end])
    return String(word)
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard current == character else { return false }
    position += 1
    return true
  }

  private mutating func term() throws(FilterError) -> QueryTerm {
    let isNegated = take("!")
    let name = try part { ":=<>".unicodeScalars.contains($0) }
    guard let separator = current, !separator.properties.isWhitespace else {
      if allowsWords, !name.text.isEmpty { return QueryTerm(name: "", value: name, isNegated: isNegated) }
      let word = name.text
      throw FilterError(
        name: word, message: "\"\(word.prefix(80))\" is not a condition",
        hint: "Write FIELD:VALUE, as in status:410, or text:\(word.prefix(80)) to find it anywhere in a push.")
    }
    guard !name.text.isEmpty else {
      throw FilterError(
        name: "", message: "the field is missing before the \"\(separator)\"",
        hint: "Write FIELD:VALUE, as in status:410. Put a value with such a character in quotation marks.")
    }
    if separator == ":" || separator == "=" { position += 1 }
    let negatesValue = take("!")
    return QueryTerm(name: name.text, value: try part { _ in false }, isNegated: isNegated != negatesValue)
  }

  /// Reads up to white space, or to a character for which `ends` returns true, outside of quotation marks.
  private mutating func part(ends: (Unicode.Scalar) -> Bool) throws(FilterError) -> QueryValue {
    var text = String.UnicodeScalarView()
    var pieces = [String.UnicodeScalarView()]
    func add(_ character: Unicode.Scalar, isStar: Bool) {
      text.append(character)
      if isStar { pieces.append(String.UnicodeScalarView()) } else { pieces[pieces.count - 1].append(character) }
    }
    let startsQuoted = current == "\""
    var isQuoted = false
    while let character = current, !character.properties.isWhitespace, !ends(character) {
      position += 1
      guard character == "\"" else {
        add(character, isStar: character == "*")
        continue
      }
      isQuoted = true
      while !take("\"") {
        guard let character = current else {
          throw FilterError(
            name: "q", message: "a quotation mark has no second one",
            hint: "Close it; a quotation mark within is written \\\".")
        }
        position += 1
        if character == "\\" {
          add(try escape(), isStar: false)
        } else {
          add(character, isStar: character == "*")
        }
      }
    }
    return QueryValue(
      text: String(text), pieces: pieces.map { String($0) }, isQuoted: isQuoted, startsQuoted: startsQuoted)
  }

  /// Returns the character for the escape after a backslash.
  private mutating func escape() throws(FilterError) -> Unicode.Scalar {
    let character = current
    position = min(position + 1, characters.count)
    switch character {
    case "\"", "\\", "*": return character ?? "\\"
    case "n": return "\n"
    case "t": return "\t"
    default:
      throw FilterError(
        name: "q", message: "unexpected backslash before \(character.map { "\"\($0)\"" } ?? "the end")",
        hint: #"In quotation marks it is written \\, and a quotation mark \", a star \*, a line break \n, a tab \t."#)
    }
  }
}
