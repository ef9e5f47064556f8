/// A pattern for text: literal, except that `*` matches any bytes, including none.
package struct TextPattern: Sendable, Equatable {
  // The pieces between the wildcards, concatenated, and lowercased if case is folded; a single piece is a text
  // without a wildcard. One array, because a second one would take longer to access than a comparison.
  private let bytes: [UInt8]
  /// The end of each piece in `bytes`.
  private let ends: [Int]
  /// The searches for the pieces between two wildcards.
  private let searches: [LiteralSearch]
  /// Whether ASCII letters are compared without case.
  package let foldsCase: Bool

  /// Creates a pattern from text with wildcards.
  ///
  /// - Parameter foldsCase: Whether ASCII letters are compared without case; other letters are never folded.
  package init(_ text: some StringProtocol, foldsCase: Bool) {
    self.init(pieces: text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false), foldsCase)
  }

  /// Creates a pattern for these texts in order with any bytes between them. For syntaxes that can escape a `*`.
  package init(pieces: [String], foldsCase: Bool) {
    self.init(pieces: pieces.map(\.utf8), foldsCase)
  }

  private init(pieces: [some Sequence<UInt8>], _ foldsCase: Bool) {
    var bytes: [UInt8] = []
    var ends: [Int] = []
    for piece in pieces {
      for byte in piece { bytes.append(foldsCase ? asciiLowercased(byte) : byte) }
      ends.append(bytes.count)
    }
    self.bytes = bytes
    self.ends = ends
    self.foldsCase = foldsCase
    searches = zip(ends, ends.dropFirst()).dropLast().map { LiteralSearch(bytes[$0..<$1], foldsCase: foldsCase) }
  }

  /// The only text that matches, lowercased if case is folded; nil for a pattern with a wildcard.
  package var literal: String? { ends.count == 1 ? text : nil }

  /// The text of the pattern, lowercased if case is folded.
  package var text: String {
    ends.indices.map { String(decoding: bytes[piece($0)], as: UTF8.self) }.joined(separator: "*")
  }

  /// The texts between the wildcards, lowercased if case is folded; the only one if there is no wildcard.
  package var pieces: [ArraySlice<UInt8>] { ends.indices.map { bytes[piece($0)] } }

  private func piece(_ index: Int) -> Range<Int> { (index == 0 ? 0 : ends[index - 1])..<ends[index] }

  /// Returns whether the whole `text` matches the pattern.
  package func matches(_ text: UnsafeRawBufferPointer) -> Bool {
    guard ends.count > 1 else {
      return ends.count == 1 && bytes.count == text.count && has(0..<bytes.count, in: text, at: 0)
    }
    let first = piece(0)
    let last = piece(ends.count - 1)
    guard text.count >= first.count + last.count, has(first, in: text, at: 0),
      has(last, in: text, at: text.count - last.count)
    else { return false }
    // The leftmost position of each piece leaves the most text for the following ones, so no backtracking is needed.
    var position = first.count
    let end = text.count - last.count
    return searches.withUnsafeBufferPointer { searches in
      for search in searches {
        let rest = text.part(position..<end)
        guard let found = search.firstPosition(in: rest) else { return false }
        position += found + search.count
      }
      return true
    }
  }

  /// Returns whether the whole `text` matches the pattern.
  package func matches(_ text: String) -> Bool {
    return text.withBytes { matches($0) }
  }

  /// Returns whether `text` has a piece of the pattern at `position`.
  private func has(_ piece: Range<Int>, in text: UnsafeRawBufferPointer, at position: Int) -> Bool {
    bytes.withUnsafeBytes { bytes in
      // With this check the loads below are within bounds.
      guard position >= 0, position + piece.count <= text.count, piece.upperBound <= bytes.count else { return false }
      var offset = 0
      // Compare eight bytes at a time while they are identical, which needs no case folding.
      while offset + 8 <= piece.count,
        bytes.loadUnaligned(fromByteOffset: piece.lowerBound + offset, as: UInt64.self)
          == text.loadUnaligned(fromByteOffset: position + offset, as: UInt64.self)
      {
        offset += 8
      }
      while offset < piece.count {
        let byte = text.loadUnaligned(fromByteOffset: position + offset, as: UInt8.self)
        guard
          bytes.loadUnaligned(fromByteOffset: piece.lowerBound + offset, as: UInt8.self)
            == (foldsCase ? asciiLowercased(byte) : byte)
        else { return false }
        offset += 1
      }
      return true
    }
  }
}

/// Returns the byte, with an ASCII capital letter lowercased.
@inlinable
package func asciiLowercased(_ byte: UInt8) -> UInt8 {
  (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}
