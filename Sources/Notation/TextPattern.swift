/// A value of a filter that is compared with text: literal but for `*`, which stands for any bytes, also none.
public struct TextPattern: Sendable, Equatable {
  // The stretches between the stars; one piece alone is a text without a star.
  private let pieces: [[UInt8]]
  private let foldsCase: Bool

  /// - Parameter foldsCase: compare ASCII letters without case; other letters are never folded.
  public init(_ text: some StringProtocol, foldsCase: Bool) {
    self.foldsCase = foldsCase
    pieces = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map { piece in
      foldsCase ? piece.map(asciiLowercased) : Array(piece)
    }
  }

  /// Just this text, whatever it contains, ASCII letters without case.
  public init(literal text: String) {
    self.init(pieces: [text], foldsCase: true)
  }

  /// These texts in their order, with any bytes between them: for a writer with other means to tell a star that stands
  /// for any bytes from one that stands for itself.
  public init(pieces: [String], foldsCase: Bool) {
    self.foldsCase = foldsCase
    self.pieces = pieces.map { piece in foldsCase ? piece.utf8.map(asciiLowercased) : Array(piece.utf8) }
  }

  /// The one text that it matches, in small letters where it folds case; nil if it has a star.
  public var literal: String? { pieces.count == 1 ? text : nil }

  /// The pattern as it is compared: written as it came, in small letters where it folds case.
  public var text: String { pieces.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "*") }

  /// Whether the whole of `text` is as the pattern says.
  public func matches(_ text: UnsafeRawBufferPointer) -> Bool {
    guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else {
      return pieces.first.map { $0.count == text.count && has($0, in: text, at: 0) } ?? false
    }
    guard text.count >= first.count + last.count, has(first, in: text, at: 0),
      has(last, in: text, at: text.count - last.count)
    else { return false }
    // The leftmost place for each piece in turn leaves the most room to the ones after it, so no choice is ever undone.
    var position = first.count
    let end = text.count - last.count
    for piece in pieces.dropFirst().dropLast() {
      guard let found = place(of: piece, in: text, from: position, to: end) else { return false }
      position = found + piece.count
    }
    return true
  }

  /// Where `piece` first stands between two places.
  private func place(of piece: [UInt8], in text: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int? {
    guard let first = piece.first else { return start }
    var position = start
    while position + piece.count <= end {
      let byte = text[position]
      if (foldsCase ? asciiLowercased(byte) : byte) == first, has(piece, in: text, at: position) { return position }
      position += 1
    }
    return nil
  }

  /// Whether the whole of `text` is as the pattern says.
  public func matches(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { matches(UnsafeRawBufferPointer($0)) }
  }

  private func has(_ piece: [UInt8], in text: UnsafeRawBufferPointer, at position: Int) -> Bool {
    piece.withUnsafeBytes { piece in
      // With all in range, no step has to look whether it is.
      guard position >= 0, position + piece.count <= text.count else { return false }
      for index in 0..<piece.count {
        let byte = text.loadUnaligned(fromByteOffset: position + index, as: UInt8.self)
        guard piece.loadUnaligned(fromByteOffset: index, as: UInt8.self) == (foldsCase ? asciiLowercased(byte) : byte)
        else { return false }
      }
      return true
    }
  }
}

/// The byte with an ASCII capital made small.
@inlinable
public func asciiLowercased(_ byte: UInt8) -> UInt8 {
  (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}
