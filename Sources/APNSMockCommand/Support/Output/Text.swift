extension String {
  /// The string without white space at both ends.
  var trimmed: String {
    var text = self[...]
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text.drop(while: \.isWhitespace))
  }

  /// The string with control characters and line separators escaped. Text from a peer can contain line breaks and
  /// terminal codes, which must not reach a log line or a table.
  var onOneLine: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    return unicodeScalars.reduce(into: "") { line, scalar in
      line += scalar.isControl ? scalar.escaped(asASCII: true) : String(Character(scalar))
    }
  }

  /// The string with all characters except the unreserved ones as `%XX` (RFC 3986 section 2.3).
  var percentEncoded: String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    for byte in utf8 {
      encoded += byte.isUnreserved ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}

extension String {
  /// Returns a random device token.
  static func randomDeviceToken(digits count: Int) -> String {
    let digits = Array("0123456789abcdef")
    return String((0..<count).map { _ in digits[Int.random(in: 0..<16)] })
  }
}

extension UInt8 {
  /// Whether the byte is a letter, a digit or one of `-._~` (RFC 3986 section 2.3).
  fileprivate var isUnreserved: Bool {
    switch self {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-._~".utf8.contains(self)
    }
  }
}

extension Unicode.Scalar {
  fileprivate var isControl: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
