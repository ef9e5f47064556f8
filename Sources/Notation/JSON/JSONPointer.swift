/// A JSON pointer (RFC 6901), which identifies one value in a document.
package struct JSONPointer: Sendable, Equatable {
  /// The names of members and indices of elements, unescaped.
  private let tokens: [[UInt8]]

  /// The number of levels from the root of a document to the value.
  package var depth: Int { tokens.count }

  /// The last name that cannot be the index of an element, unescaped; nil without one. A document in which no member
  /// has this name has no value at the pointer.
  package var lastMemberName: [UInt8]? { tokens.last { JSONScanner.index($0) == nil } }

  /// Parses a pointer; nil if `text` is not empty and has no leading slash, or contains a `~` that is neither `~0`
  /// nor `~1`.
  package init?(_ text: String) {
    guard text.isEmpty || text.utf8.first == UInt8(ascii: "/") else { return nil }
    var tokens: [[UInt8]] = []
    for part in text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
      var token: [UInt8] = []
      var rest = part.makeIterator()
      while let byte = rest.next() {
        guard byte == UInt8(ascii: "~") else {
          token.append(byte)
          continue
        }
        switch rest.next() {
        case UInt8(ascii: "0"): token.append(UInt8(ascii: "~"))
        case UInt8(ascii: "1"): token.append(UInt8(ascii: "/"))
        default: return nil
        }
      }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  /// Returns the value in a document; nil if there is none. Of members with the same name, the last one counts, as
  /// in most JSON parsers.
  ///
  /// - Parameter document: JSON validated with `JSONText.problem`. With other input, the result is unspecified.
  package func value(in document: UnsafeRawBufferPointer) -> JSONValue? {
    // Each level scans the document at most once.
    var scanner = JSONScanner(document)
    var found = tokens.isEmpty ? try? scanner.skipValue() : nil
    for token in tokens {
      found = scanner.findValue(token)
      guard let found else { return nil }
      scanner = JSONScanner(document, at: found.lowerBound)
    }
    return found.map { JSONValue(document.part($0)) }
  }
}

extension JSONScanner {
  /// Returns the position of the member or element that `token` identifies in the next value.
  fileprivate mutating func findValue(_ token: [UInt8]) -> Range<Int>? {
    var found: Range<Int>?
    if enterObject() {
      while let member = nextMember() {
        if name(member.name, equals: token) { found = member.value }
      }
    } else if let index = Self.index(token), enterArray() {
      found = nextElement()
      for _ in 0..<index where found != nil { found = nextElement() }
    }
    return found
  }

  /// Parses an array index (RFC 6901, section 4): digits without leading zeros.
  fileprivate static func index(_ token: [UInt8]) -> Int? {
    guard token.count <= 9, token.first != UInt8(ascii: "0") || token.count == 1 else { return nil }
    guard token.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int(String(decoding: token, as: UTF8.self))
  }

  private func name(_ range: Range<Int>, equals wanted: [UInt8]) -> Bool {
    let name = bytes[range]
    guard name.contains(UInt8(ascii: "\\")) else { return name.elementsEqual(wanted) }
    return Self.unescaped(UnsafeRawBufferPointer(rebasing: name)).utf8.elementsEqual(wanted)
  }
}
