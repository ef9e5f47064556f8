extension String {
  /// Without white space at both ends.
  var trimmed: String {
    var text = self[...]
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text.drop(while: \.isWhitespace))
  }

  /// With control characters and line separators as escapes: what came from a peer may hold line breaks and terminal
  /// codes, which belong neither into a log line nor into a table.
  var onOneLine: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    return unicodeScalars.reduce(into: "") { line, scalar in
      line += scalar.isControl ? scalar.escaped(asASCII: true) : String(Character(scalar))
    }
  }

  /// As a part of an address: everything but unreserved characters as `%XX` (RFC 3986 section 2.3).
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
  /// A device token that nobody has.
  static func randomDeviceToken(digits count: Int) -> String {
    let digits = Array("0123456789abcdef")
    return String((0..<count).map { _ in digits[Int.random(in: 0..<16)] })
  }
}

extension UInt8 {
  /// A letter, a digit, or one of `-._~` (RFC 3986 section 2.3).
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
