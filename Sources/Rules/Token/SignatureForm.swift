internal import APNSMockNotation

/// The form of a provider token's signature, which is checked before a key: r and s of 32 bytes each (RFC 7518, section
/// 3.4), or the same numbers in DER (Protocol.md, section 3.1).
package enum SignatureForm {
  /// Returns why no P-256 key can verify a signature, with the correction; nil if its form is right. Contains nothing of
  /// the signature but its length and a character that no alphabet has.
  ///
  /// - Parameters:
  ///   - text: The third part of the JWT.
  ///   - acceptsES512: Whether r and s of 66 bytes each are accepted, as libraries write them for `alg` ES512.
  package static func problem(of text: UnsafeRawBufferPointer, acceptsES512: Bool = false) -> String? {
    guard !text.isEmpty else { return "the JWT is not signed: sign it with ES256" }
    guard let bytes = Base64URL(text)?.bytes else { return "the provider token's signature \(encodingProblem(text))" }
    if isVerifiable(bytes) || acceptsES512 && bytes.count == 132 { return nil }
    let problem = nestingProblem(text, bytes) ?? derProblem(bytes) ?? sizeProblem(bytes.count)
    return "the provider token's signature \(problem)"
  }

  private static let sizes = "r and s must have 32 bytes each, 64 together (RFC 7518, section 3.4)"

  private static func isVerifiable(_ bytes: [UInt8]) -> Bool {
    if bytes.count == 64 { return true }
    guard let numbers = DERNumbers(bytes[...]) else { return false }
    return numbers.areCanonical && numbers.size <= 32
  }

  /// Why the text is in neither alphabet of base64.
  private static func encodingProblem(_ text: UnsafeRawBufferPointer) -> String {
    for byte in text {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "+"),
        UInt8(ascii: "/"), UInt8(ascii: "="):
        continue
      case UInt8(ascii: "%"): return "is percent-encoded: write it in base64url, which needs no escapes in a URL"
      case 0x09, 0x0A, 0x0D, 0x20: return "contains white space: write it in base64url without line breaks"
      default:
        let character = withUnsafeBytes(of: byte) { Explanation.quoted($0) }
        return "contains \(character), which is not base64url: write r and s in base64url, without padding"
      }
    }
    return text.contains(UInt8(ascii: "="))
      ? "has padding that is not at its end, or too much of it: write it in base64url without padding"
      : "has \(text.count) characters, which no base64url text has: it was cut, or characters were lost"
  }

  /// Why the signature is encoded once more than it must be.
  private static func nestingProblem(_ text: UnsafeRawBufferPointer, _ bytes: [UInt8]) -> String? {
    if let inner = Hexadecimal.bytes(text), isVerifiable(inner) {
      return "is in hexadecimal: write its \(inner.count) bytes in base64url"
    }
    if let inner = Hexadecimal.bytes(bytes), isVerifiable(inner) {
      return "is the base64url form of a text in hexadecimal: write the \(inner.count) bytes themselves in base64url"
    }
    if let inner = Base64URL(bytes)?.bytes, isVerifiable(inner) {
      return "is encoded in base64 twice: encode its \(inner.count) bytes once"
    }
    return nil
  }

  /// Why a DER signature is refused; nil if the bytes do not look like one.
  private static func derProblem(_ bytes: [UInt8]) -> String? {
    if let numbers = DERNumbers(bytes[...]) {
      if numbers.size > 32 {
        return
          "is DER with numbers of \(numbers.size) bytes, those of \(curve(size: numbers.size)): sign with a P-256 key"
      }
      return numbers.hasNegative
        ? "is DER with a negative number: a number whose first bit is set needs a zero byte before it"
        : "is DER with superfluous zero bytes: a number has at most one before it, and only if its first bit is set"
    }
    var rest = bytes[...]
    if let outer = DERNumbers.element(&rest), rest.isEmpty {
      switch outer.tag {
      case 0x04 where DERNumbers(outer.content) != nil:
        return "is DER within an OCTET STRING: write the inner SEQUENCE only, or r and s of 32 bytes each"
      case 0x03 where DERNumbers(outer.content.dropFirst()) != nil:
        return "is DER within a BIT STRING: write the inner SEQUENCE only, or r and s of 32 bytes each"
      case 0x30 where bytes.count > 150:
        return "is a DER structure of \(bytes.count) bytes such as CMS (PKCS #7): \(sizes)"
      default: break
      }
    }
    // A SEQUENCE that begins with an INTEGER.
    guard bytes.count > 8, bytes[0] == 0x30, bytes[2] == 0x02 else { return nil }
    return "begins as DER of \(Int(bytes[1]) + 2) bytes and has \(bytes.count): it was cut, or bytes were added"
  }

  /// Which mistake leads to a signature of this size in bytes.
  private static func sizeProblem(_ size: Int) -> String {
    switch size {
    case 60...63:
      "has \(size) bytes: r or s was written without leading zero bytes, as big-integer libraries do, which happens to "
        + "one token in about 130; pad both to 32 bytes"
    case 65, 66:
      "has \(size) bytes: r or s has a leading zero byte, as Java's BigInteger writes it, or something was added; \(sizes)"
    case 32: "has 32 bytes, the size of an HMAC with SHA-256 (HS256), or of r alone: sign with ES256; \(sizes)"
    case 48: "has 48 bytes, the size of an HMAC with SHA-384 (HS384): sign with ES256; \(sizes)"
    case 96, 132: "has \(size) bytes, those of \(curve(size: size / 2)): sign with ES256 and a P-256 key; \(sizes)"
    case 256, 384, 512:
      "has \(size) bytes, those of an RSA key of \(size * 8) bits (RS256): sign with ES256 and the .p8 key of Apple"
    case ..<64: "has \(size) bytes, so it was cut: \(sizes)"
    default: "has \(size) bytes: \(sizes)"
    }
  }

  /// Returns the curve whose numbers have up to this size in bytes.
  private static func curve(size: Int) -> String {
    size <= 48 ? "the curve P-384 (ES384)" : size <= 66 ? "the curve P-521 (ES512)" : "no curve of JWTs"
  }
}

/// The two numbers of an ECDSA signature in DER: a SEQUENCE of two INTEGERs.
private struct DERNumbers {
  private let numbers: [ArraySlice<UInt8>]

  /// Parses a signature with nothing after it; nil for anything else.
  init?(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    guard let outer = Self.element(&rest), outer.tag == 0x30, rest.isEmpty else { return nil }
    var content = outer.content
    guard let r = Self.element(&content), let s = Self.element(&content), r.tag == 0x02, s.tag == 0x02,
      content.isEmpty, !r.content.isEmpty, !s.content.isEmpty
    else { return nil }
    numbers = [r.content, s.content]
  }

  /// The size of the larger number in bytes, without leading zeros.
  var size: Int { numbers.map { $0.drop { $0 == 0 }.count }.max() ?? 0 }

  var hasNegative: Bool { numbers.contains { $0.first.map { $0 >= 0x80 } ?? false } }

  /// Whether both numbers are positive and as short as DER demands.
  var areCanonical: Bool {
    numbers.allSatisfy { number in
      guard let first = number.first, first < 0x80 else { return false }
      return first != 0 || number.count == 1 || number.dropFirst().first.map { $0 >= 0x80 } ?? false
    }
  }

  /// Reads an element with a tag of one byte; nil if it is invalid or extends beyond the end.
  static func element(_ rest: inout ArraySlice<UInt8>) -> (tag: UInt8, content: ArraySlice<UInt8>)? {
    guard let tag = rest.popFirst(), var count = rest.popFirst().map(Int.init) else { return nil }
    if count >= 0x80 {
      let size = count & 0x7F
      guard (1...2).contains(size), size <= rest.count else { return nil }
      count = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(size)
    }
    guard count <= rest.count else { return nil }
    let content = rest.prefix(count)
    rest = rest.dropFirst(count)
    return (tag, content)
  }
}
