/// A text, and a quick test of whether it can occur in JSON text, literally or written with escape sequences.
package struct JSONLiteral: Sendable {
  private let search: LiteralSearch
  /// The longest part of the text, with its quotation marks, that has the same bytes wherever the text occurs literally: without
  /// letters if these are compared without case. Empty if there is none.
  package let fixedPart: [UInt8]
  private let foldsCase: Bool
  /// A bit for each byte of the text.
  private let characters: SIMD4<UInt64>

  /// Prepares a search; nil for an empty text, and for one that contains U+FFFD, which also replaces invalid UTF-8.
  ///
  /// - Parameters:
  ///   - text: The text in UTF-8.
  ///   - foldsCase: Whether ASCII letters are compared without case.
  ///   - startsString: Whether a quotation mark is in front of the text.
  ///   - endsString: Whether a quotation mark follows the text.
  package init?(_ text: some Collection<UInt8>, foldsCase: Bool, startsString: Bool = false, endsString: Bool = false) {
    let quotationMark = UInt8(ascii: "\"")
    let whole = (startsString ? [quotationMark] : []) + text + (endsString ? [quotationMark] : [])
    let replacement = LiteralSearch("\u{FFFD}".utf8, foldsCase: false)
    guard !whole.isEmpty, whole.withUnsafeBytes({ replacement.firstPosition(in: $0) }) == nil else { return nil }
    search = LiteralSearch(whole, foldsCase: foldsCase)
    fixedPart =
      foldsCase ? Array(whole.split(whereSeparator: \.isASCIILetter).max { $0.count < $1.count } ?? []) : whole
    self.foldsCase = foldsCase
    var characters = SIMD4<UInt64>()
    for byte in text {
      let byte = foldsCase ? asciiLowercased(byte) : byte
      characters[Int(byte >> 6)] |= 1 << UInt64(byte & 63)
    }
    self.characters = characters
  }

  /// The number of bytes of the text and its quotation marks.
  package var count: Int { search.count }

  /// Returns false only if the text does not occur in `bytes`, nor in `json` after decoding its escape sequences.
  package borrowing func mayOccur(in bytes: UnsafeRawBufferPointer, decoding json: UnsafeRawBufferPointer) -> Bool {
    search.firstPosition(in: bytes) != nil || isEncoded(in: json)
  }

  /// Returns whether an escape sequence may stand for a byte of the text. If none does, the text occurs in the decoded
  /// bytes only where it occurs literally. Reads escape sequences as `JSONScanner.unescaped` does.
  private borrowing func isEncoded(in json: UnsafeRawBufferPointer) -> Bool {
    var position = 0
    while let found = json.firstPosition(of: UInt8(ascii: "\\"), from: position) {
      guard found + 1 < json.count else { return false }
      // Hexadecimal digits need not be skipped.
      position = found + 2
      switch json[found + 1] {
      case UInt8(ascii: "b"): if contains(0x08) { return true }
      case UInt8(ascii: "f"): if contains(0x0C) { return true }
      case UInt8(ascii: "n"): if contains(0x0A) { return true }
      case UInt8(ascii: "r"): if contains(0x0D) { return true }
      case UInt8(ascii: "t"): if contains(0x09) { return true }
      case UInt8(ascii: "u"): if isEncoded(byCodeUnitAt: found, in: json) { return true }
      case let escape: if contains(escape) { return true }
      }
    }
    return false
  }

  /// Returns whether the escape sequence `\uXXXX` at `position` may stand for a byte of the text. One without four
  /// hexadecimal digits stands for its `u`.
  @inline(__always)
  private borrowing func isEncoded(byCodeUnitAt position: Int, in json: UnsafeRawBufferPointer) -> Bool {
    let containsOthers = characters[2] | characters[3] != 0
    // Most escape sequences are of characters outside of ASCII: one look at their digits is enough.
    if position + 6 <= json.count, json[position + 2] != UInt8(ascii: "0") || json[position + 3] != UInt8(ascii: "0") {
      return containsOthers || contains(UInt8(ascii: "u")) && JSONScanner(json).codeUnit(at: position) == nil
    }
    guard let unit = JSONScanner(json).codeUnit(at: position) else { return contains(UInt8(ascii: "u")) }
    return unit < 0x80 ? contains(UInt8(unit)) : containsOthers
  }

  private borrowing func contains(_ byte: UInt8) -> Bool {
    let byte = foldsCase ? asciiLowercased(byte) : byte
    return characters[Int(byte >> 6)] >> UInt64(byte & 63) & 1 != 0
  }
}

extension UInt8 {
  fileprivate var isASCIILetter: Bool { (0x61...0x7A).contains(self | 0x20) }
}
