/// Splits and indents JSON without decoding its values, so that members keep their order and payloads their bytes.
enum JSONLayout {
  /// Returns the bytes of each element of the array `name` in the object `json`.
  static func elements(of name: String, in json: [UInt8]) -> [ArraySlice<UInt8>] {
    var elements: [ArraySlice<UInt8>] = []
    var tokens = TokenIterator(json)
    var isInside = false
    var start: Int?
    var key: ArraySlice<UInt8> = []
    while let token = tokens.next() {
      switch token.kind {
      case .open:
        if tokens.depth == 2, json[token.range.lowerBound] == UInt8(ascii: "["), key.elementsEqual("\"\(name)\"".utf8) {
          isInside = true
        } else if isInside, tokens.depth == 3 {
          start = token.range.lowerBound
        }
      case .close:
        if isInside, tokens.depth == 2, let first = start {
          elements.append(json[first..<token.range.upperBound])
          start = nil
        } else if tokens.depth == 1 {
          isInside = false
        }
      case .scalar:
        if tokens.depth == 1 { key = json[token.range] }
        if isInside, tokens.depth == 2 { elements.append(json[token.range]) }
      case .comma, .colon: break
      }
    }
    return elements
  }

  /// Returns the JSON with one member per line, indented by two spaces. Short objects and arrays without nested ones
  /// stay on one line.
  static func indented(_ json: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    var tokens = TokenIterator(json)
    // The end of the object or array that is being written on one line.
    var lineEnd = 0
    func lineBreak(_ depth: Int) {
      text += [UInt8(ascii: "\n")] + Array(repeating: UInt8(ascii: " "), count: 2 * depth)
    }
    while let token = tokens.next() {
      let isInLine = token.range.lowerBound < lineEnd
      if token.kind == .close, !isInLine { lineBreak(tokens.depth) }
      text += json[token.range]
      switch token.kind {
      case .open:
        lineEnd = tokens.endOfLeaf(openedAt: token.range.lowerBound) ?? lineEnd
        if token.range.lowerBound >= lineEnd { lineBreak(tokens.depth) }
      case .comma: if isInLine { text.append(UInt8(ascii: " ")) } else { lineBreak(tokens.depth) }
      case .colon: text.append(UInt8(ascii: " "))
      case .close, .scalar: break
      }
    }
    return text
  }

  private struct Token {
    enum Kind { case open, close, comma, colon, scalar }
    let kind: Kind
    let range: Range<Int>
  }

  /// Iterates over the tokens of JSON. Invalid JSON yields arbitrary tokens, but never reads beyond its end.
  private struct TokenIterator {
    private let json: [UInt8]
    private var position = 0
    /// The number of open objects and arrays after the last token.
    private(set) var depth = 0

    init(_ json: [UInt8]) { self.json = json }

    mutating func next() -> Token? {
      while position < json.count, json[position] <= 0x20 { position += 1 }
      guard position < json.count else { return nil }
      let start = position
      switch json[start] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        return single(.open)
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth = max(0, depth - 1)
        return single(.close)
      case UInt8(ascii: ","): return single(.comma)
      case UInt8(ascii: ":"): return single(.colon)
      case UInt8(ascii: "\""): skipString()
      default:
        while position < json.count, json[position] > 0x20, !",:]}".utf8.contains(json[position]) { position += 1 }
      }
      return Token(kind: .scalar, range: start..<position)
    }

    /// Returns the end of the object or array just opened at `start`; nil if it is long or contains another one.
    func endOfLeaf(openedAt start: Int) -> Int? {
      var ahead = self
      while let token = ahead.next(), token.kind != .open {
        if token.kind == .close { return token.range.upperBound - start <= 100 ? token.range.upperBound : nil }
      }
      return nil
    }

    private mutating func single(_ kind: Token.Kind) -> Token {
      defer { position += 1 }
      return Token(kind: kind, range: position..<position + 1)
    }

    private mutating func skipString() {
      position += 1
      while position < json.count, json[position] != UInt8(ascii: "\"") {
        position += json[position] == UInt8(ascii: "\\") ? 2 : 1
      }
      position = min(position + 1, json.count)
    }
  }
}
