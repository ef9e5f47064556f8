internal import Notation

/// Parsing of the value types in a record.
extension JSONReader {
  /// Returns the error for an invalid value of the member `name`.
  func unknown(_ name: String, _ value: String) -> JSONText.Problem {
    problem("\(name) cannot be \"\(value.prefix(80))\" before here,")
  }

  /// Parses a value of an enumeration, or null.
  mutating func word<Choice: RawRepresentable<String>>(_ name: String) throws(JSONText.Problem) -> Choice? {
    guard let text = try text() else { return nil }
    guard let choice = Choice(rawValue: text) else { throw unknown(name, text) }
    return choice
  }

  /// Parses a time, or null.
  mutating func time(_ name: String) throws(JSONText.Problem) -> Int64? {
    guard let text = try text() else { return nil }
    guard let time = WrittenTime.milliseconds(text) else { throw unknown(name, text) }
    return time
  }

  /// Parses a list of pairs of strings.
  mutating func pairs() throws(JSONText.Problem) -> [(name: String, value: String)] {
    var pairs: [(name: String, value: String)] = []
    try list { json throws(JSONText.Problem) in
      var words: [String] = []
      try json.list { json throws(JSONText.Problem) in words.append(try json.string()) }
      guard words.count == 2 else { throw json.problem("a header field must be a name and a value") }
      pairs.append((words[0], words[1]))
    }
    return pairs
  }
}
