internal import Notation

/// A JSON pointer (RFC 6901), which names one value in a document.
public struct JSONPointer: Sendable, Equatable {
  /// A value that was found.
  public enum Value: Equatable, Sendable {
    /// A string, without its quotation marks and escapes.
    case string(String)
    /// A number as it is written.
    case number(String)
    /// `true`, `false` or `null`.
    case word(String)
    /// An array or an object, as it is written.
    case structure(String)
  }

  /// Names of members and indices of elements, without their escapes.
  private let tokens: [[UInt8]]

  /// How many steps it goes into a document.
  public var depth: Int { tokens.count }

  /// The pointer that `text` says; nil if it is none: not empty and without a slash in front, or with a `~` that is
  /// neither `~0` nor `~1`.
  public init?(_ text: String) {
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

  /// The value it names in a document; nil if there is none. Of two members with one name it is the later one, as most
  /// readers of JSON have it.
  ///
  /// - Parameter document: JSON in which `JSONText.problem` finds none. Anything else gives some value or none.
  public func value(in document: UnsafeRawBufferPointer) -> Value? {
    var scanner = JSONScanner(document)
    for token in tokens {
      guard scanner.enter(token) else { return nil }
    }
    return scanner.value()
  }
}

extension JSONPointer {
  /// JSON text with every escape in it replaced by what it stands for, so that words can be searched in it.
  public static func unescaped(_ text: UnsafeRawBufferPointer) -> String { JSONScanner.unescaped(text[...]) }
}

/// Walks through JSON that is known to be good, one step into it for each part of a pointer. Nothing is kept but a
/// position, and each step passes the document at most once.
private struct JSONScanner {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    skipSpace()
  }

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  /// Goes to the member or the element that `token` names, of the value here.
  mutating func enter(_ token: [UInt8]) -> Bool {
    switch current {
    case UInt8(ascii: "{"): enterObject(token)
    case UInt8(ascii: "["): Self.index(token).map { enterArray($0) } ?? false
    default: false
    }
  }

  /// An index as RFC 6901 section 4 has it: digits without a needless zero in front.
  private static func index(_ token: [UInt8]) -> Int? {
    guard token.count <= 9, token.first != UInt8(ascii: "0") || token.count == 1 else { return nil }
    guard token.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int(String(decoding: token, as: UTF8.self))
  }

  private mutating func enterObject(_ token: [UInt8]) -> Bool {
    var found: Int?
    position += 1
    skipSpace()
    while current == UInt8(ascii: "\"") {
      let isWanted = stringIs(token)
      skipSpace()
      position += 1  // The colon.
      skipSpace()
      if isWanted { found = position }
      skipValue()
      guard takeComma() else { break }
    }
    guard let found else { return false }
    position = found
    return true
  }

  private mutating func enterArray(_ index: Int) -> Bool {
    position += 1
    skipSpace()
    guard current != UInt8(ascii: "]") else { return false }
    for _ in 0..<index {
      skipValue()
      guard takeComma() else { return false }
    }
    return true
  }

  private mutating func takeComma() -> Bool {
    skipSpace()
    guard current == UInt8(ascii: ",") else { return false }
    position += 1
    skipSpace()
    return true
  }

  private mutating func skipSpace() {
    while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  /// Goes behind the string here, and says whether it is this one.
  private mutating func stringIs(_ wanted: [UInt8]) -> Bool {
    let start = position + 1
    skipString()
    let text = bytes[start..<max(start, position - 1)]
    guard text.contains(UInt8(ascii: "\\")) else { return text.elementsEqual(wanted) }
    return Self.unescaped(text).utf8.elementsEqual(wanted)
  }

  private mutating func skipString() {
    position += 1
    while let byte = current, byte != UInt8(ascii: "\"") { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
    position = min(position + 1, bytes.count)
  }

  /// Goes behind the value here. Counts brackets, so that deep nesting costs no stack.
  private mutating func skipValue() {
    var depth = 0
    while let byte = current {
      switch byte {
      case UInt8(ascii: "\""):
        skipString()
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        position += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard depth > 0 else { return }
        depth -= 1
        position += 1
      case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x0A, 0x0D, 0x09:
        guard depth > 0 else { return }
        position += 1
        continue
      default:
        position += 1
        continue
      }
      if depth == 0 { return }
    }
  }

  /// The value here.
  mutating func value() -> JSONPointer.Value? {
    guard let first = current else { return nil }
    let start = position
    skipValue()
    let text = bytes[start..<position]
    switch first {
    case UInt8(ascii: "\""): return .string(Self.unescaped(text.dropFirst().dropLast()))
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .structure(String(decoding: text, as: UTF8.self))
    case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"): return .word(String(decoding: text, as: UTF8.self))
    default: return .number(String(decoding: text, as: UTF8.self))
    }
  }

  /// What stands between the quotation marks of a string.
  static func unescaped(_ text: Slice<UnsafeRawBufferPointer>) -> String {
    guard text.contains(UInt8(ascii: "\\")) else { return String(decoding: text, as: UTF8.self) }
    // As UTF-16, because that is what \u escapes are written in, pair by pair.
    var units: [UInt16] = []
    var rest = String(decoding: text, as: UTF8.self).utf16.makeIterator()
    while let unit = rest.next() {
      guard unit == 0x5C, let escape = rest.next() else {
        units.append(unit)
        continue
      }
      switch escape {
      case 0x62: units.append(0x08)
      case 0x66: units.append(0x0C)
      case 0x6E: units.append(0x0A)
      case 0x72: units.append(0x0D)
      case 0x74: units.append(0x09)
      case 0x75:
        var code: UInt16 = 0
        for _ in 0..<4 {
          let digit = rest.next().flatMap { Unicode.Scalar($0) }.flatMap { Character($0).hexDigitValue } ?? 0
          code = code << 4 | UInt16(digit)
        }
        units.append(code)
      default: units.append(escape)
      }
    }
    return String(decoding: units, as: UTF16.self)
  }
}
