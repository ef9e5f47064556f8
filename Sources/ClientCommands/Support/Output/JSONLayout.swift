import APNSMockNotation

/// Splits and indents JSON without decoding its values, so that members keep their order and payloads their bytes.
package enum JSONLayout {
  /// Returns the bytes of each element of the array `name` in the object `json`.
  static func elements(of name: String, in json: [UInt8]) -> [ArraySlice<UInt8>] {
    json.withUnsafeBytes { bytes in
      var elements: [ArraySlice<UInt8>] = []
      var object = JSONScanner(bytes)
      guard object.enterObject() else { return [] }
      while let member = object.nextMember() {
        var array = JSONScanner(bytes, at: member.value.lowerBound)
        guard json[member.name].elementsEqual(name.utf8), array.enterArray() else { continue }
        while let element = array.nextElement() { elements.append(json[element]) }
      }
      return elements
    }
  }

  /// Returns the JSON with one member per line, indented by two spaces. Short objects and arrays without nested ones
  /// stay on one line.
  package static func indented(_ json: [UInt8]) -> [UInt8] {
    json.withUnsafeBytes { bytes in
      var text: [UInt8] = []
      var scanner = JSONScanner(bytes)
      // The number of open objects and arrays.
      var depth = 0
      // The end of the object or array that is being written on one line.
      var lineEnd = 0
      func lineBreak() {
        text += [UInt8(ascii: "\n")] + Array(repeating: UInt8(ascii: " "), count: 2 * depth)
      }
      while let token = scanner.nextToken() {
        let isInLine = token.range.lowerBound < lineEnd
        if token.kind == .close {
          depth = max(0, depth - 1)
          if !isInLine { lineBreak() }
        }
        text += json[token.range]
        switch token.kind {
        case .open:
          depth += 1
          lineEnd = endOfShortLeaf(openedAt: token.range.lowerBound, scanner) ?? lineEnd
          if token.range.lowerBound >= lineEnd { lineBreak() }
        case .comma: if isInLine { text.append(UInt8(ascii: " ")) } else { lineBreak() }
        case .colon: text.append(UInt8(ascii: " "))
        case .close, .string, .incompleteString, .word: break
        }
      }
      return text
    }
  }

  /// Returns the end of the object or array just opened at `start`; nil if it is long or contains another one.
  private static func endOfShortLeaf(openedAt start: Int, _ scanner: JSONScanner) -> Int? {
    var scanner = scanner
    while let token = scanner.nextToken(), token.kind != .open {
      if token.kind == .close { return token.range.upperBound - start <= 100 ? token.range.upperBound : nil }
    }
    return nil
  }
}
