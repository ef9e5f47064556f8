/// Consumes an input from its beginning. At its end, returns zeros and empty pieces.
struct Input {
  private var rest: Slice<UnsafeRawBufferPointer>

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  /// The remaining bytes.
  var remaining: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: rest) }

  /// Removes and returns up to `count` bytes.
  mutating func piece(_ count: Int) -> UnsafeRawBufferPointer {
    let piece = rest.prefix(count)
    rest = rest.dropFirst(count)
    return UnsafeRawBufferPointer(rebasing: piece)
  }

  /// Removes and returns the bytes before the next `separator`, and removes the separator; all bytes if there is
  /// none.
  mutating func line(before separator: UInt8 = UInt8(ascii: "\n")) -> UnsafeRawBufferPointer {
    let line = rest.prefix { $0 != separator }
    rest = rest.dropFirst(line.count + 1)
    return UnsafeRawBufferPointer(rebasing: line)
  }

  /// Like `line`, as text; invalid UTF-8 is replaced with U+FFFD.
  mutating func text(before separator: UInt8 = UInt8(ascii: "\n")) -> String {
    String(decoding: line(before: separator), as: UTF8.self)
  }
}

/// A pseudo-random number generator for choices that an input need not contain, such as sizes of pieces.
struct ChoiceGenerator {
  private var state: UInt64

  init(_ start: UInt8) { state = UInt64(start) &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

  mutating func next(below limit: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % limit
  }
}
