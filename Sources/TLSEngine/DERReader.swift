/// Reads a sequence of DER elements, as far as Apple's certificate extensions need it: tags of one byte, definite
/// lengths. The input may come from a hostile peer.
struct DERReader {
  /// Tags of one byte (X.690 section 8.1.2).
  enum Tag {
    static let utf8String: UInt8 = 0x0C
    static let printableString: UInt8 = 0x13
    static let ia5String: UInt8 = 0x16
    static let sequence: UInt8 = 0x30
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// Whether all bytes were read.
  var isAtEnd: Bool { rest.isEmpty }

  /// Reads the next element; nil if it is invalid or extends beyond the end.
  mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
    guard let tag = rest.popFirst(), tag & 0x1F != 0x1F, let count = length(), count <= rest.count else { return nil }
    let content = rest.prefix(count)
    rest = rest.dropFirst(count)
    return (tag, content)
  }

  private mutating func length() -> Int? {
    guard let first = rest.popFirst() else { return nil }
    guard first >= 0x80 else { return Int(first) }
    // Three bytes of length suffice for any certificate; 0x80, the indefinite length, is not DER.
    let size = Int(first & 0x7F)
    guard (1...3).contains(size), size <= rest.count else { return nil }
    var length = 0
    for _ in 0..<size { length = length << 8 | Int(rest.popFirst() ?? 0) }
    return length
  }
}
