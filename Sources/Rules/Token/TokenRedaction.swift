internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// The rule by which nothing stored or shown contains a usable JWT: the signature of whatever has the compact form of a
/// JWT, or of an encrypted one (RFC 7515 and RFC 7516, section 7.1), is removed. It holds for every header field but
/// `authorization`, whose credential is removed also without this form (`PushFacts.blankSignatures`).
///
/// In stored bytes the signature is zeros, in text an ellipsis.
package enum TokenRedaction {
  /// The text shown in place of a signature.
  package static let ellipsis = "…"

  /// The length in bytes below which no value contains a JWT with a signature: 19 characters of `{"alg":"none"}`, two
  /// dots, and 43 characters of the shortest signature in use (HMAC with SHA-256).
  private static let minimumSize = 64
  /// The minimum length of a JWT's header in characters. `{"alg":"none"}` has 19.
  private static let minimumHeaderSize = 16

  /// Returns whether a value is so long, and has a dot, that `signatures` has to search it. Few values of a push are:
  /// the path is long and mostly has no dot.
  @inline(__always)
  static func mayBeNeeded(for value: ByteRange, in packed: UnsafeRawBufferPointer) -> Bool {
    value.count >= minimumSize && packed[value].firstIndex(of: UInt8(ascii: "."), from: 0) != nil
  }

  /// Returns the ranges of the signatures, and of the last three parts of encrypted JWTs, whether they are blanked or
  /// not. Takes time proportional to the number of bytes.
  static func signatures(in bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var position = 0
    while let headerEnd = bytes.firstIndex(of: UInt8(ascii: "."), from: position) {
      guard let start = headerStart(in: bytes, position..<headerEnd) else {
        position = headerEnd + 1
        continue
      }
      let claimsEnd = bytes.endOfPart(from: headerEnd + 1)
      guard headerEnd - start >= minimumHeaderSize, claimsEnd < bytes.count, bytes[claimsEnd] == UInt8(ascii: ".")
      else {
        position = headerEnd + 1
        continue
      }
      var end = claimsEnd + 1
      while end < bytes.count, bytes[end] == 0 || bytes[end] == UInt8(ascii: ".") || isPart(bytes[end]) { end += 1 }
      if end > claimsEnd + 1 { found.append(claimsEnd + 1..<end) }
      position = end
    }
    return found
  }

  /// Returns the first position in `range` from which all bytes may be a JWT's header: an object in Base64, with its
  /// opening brace, and a quotation mark or white space behind it.
  private static func headerStart(in bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
    var first = range.upperBound
    while first > range.lowerBound, isPart(bytes[first - 1]) { first -= 1 }
    guard range.upperBound - first >= minimumHeaderSize else { return nil }
    return (first..<range.upperBound - 2).first { position in
      switch (bytes[position], bytes[position + 1], bytes[position + 2]) {
      // {" and a letter; {" and a quotation mark; { and space
      case (0x65, 0x79, UInt8(ascii: "J")), (0x65, 0x79, UInt8(ascii: "I")), (0x65, 0x79, UInt8(ascii: "A")): true
      // { and a line break or a tab
      case (0x65, 0x77, UInt8(ascii: "o")), (0x65, 0x77, UInt8(ascii: "0")), (0x65, 0x77, UInt8(ascii: "k")): true
      default: false
      }
    }
  }

  /// Whether a byte occurs in a part of a JWT: base64url, or the standard alphabet that some libraries use by mistake.
  fileprivate static func isPart(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "+"),
      UInt8(ascii: "/"), UInt8(ascii: "="):
      true
    default: false
    }
  }

  // MARK: - Stored bytes and text

  /// Overwrites the signatures in a value with zeros.
  static func blank(_ value: UnsafeMutableRawBufferPointer) {
    for range in signatures(in: UnsafeRawBufferPointer(value)) {
      UnsafeMutableRawBufferPointer(rebasing: value[range]).initializeMemory(as: UInt8.self, repeating: 0)
    }
  }

  /// Returns a stored value as text, with invalid UTF-8 replaced and an ellipsis for each blanked signature.
  package static func text(_ value: UnsafeRawBufferPointer) -> String {
    guard value.firstIndex(of: 0, from: 0) != nil else { return String(decoding: value, as: UTF8.self) }
    var text = ""
    var position = 0
    for range in signatures(in: value) where value[range.lowerBound] == 0 {
      text += String(decoding: value.part(position..<range.lowerBound), as: UTF8.self) + ellipsis
      position = range.upperBound
    }
    return text + String(decoding: value.part(position..<value.count), as: UTF8.self)
  }

  /// Returns the value to store for a text that `text` returned: each signature is one zero, and those that the text
  /// still contains are zeros.
  package static func stored(_ text: String) -> [UInt8] {
    let parts = text.split(separator: ellipsis, omittingEmptySubsequences: false)
    let candidate = Array(parts.joined(separator: "\0").utf8)
    var blanked = candidate.withUnsafeBytes { signatures(in: $0) }[...]
    var value: [UInt8] = []
    // The position in `candidate`.
    var position = 0
    for (index, part) in parts.enumerated() {
      if index > 0 {
        blanked = blanked.drop { $0.upperBound <= position }
        value += blanked.first?.contains(position) == true ? [0] : Array(ellipsis.utf8)
        position += 1
      }
      value += Array(part.utf8)
      position += part.utf8.count
    }
    value.withUnsafeMutableBytes { blank($0) }
    return value
  }
}

extension UnsafeRawBufferPointer {
  /// The end of the part of a JWT that begins at `start`.
  fileprivate func endOfPart(from start: Int) -> Int {
    self[start...].firstIndex { !TokenRedaction.isPart($0) } ?? count
  }
}
