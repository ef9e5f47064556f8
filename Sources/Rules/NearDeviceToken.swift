internal import APNSMockNotation

/// The device tokens that a received one may be a distortion of.
package enum NearDeviceToken {
  /// A token that was possibly meant.
  package struct Candidate: Sendable {
    /// Its hexadecimal digits, of either case.
    package let digits: [UInt8]
    /// What happened to it, to follow "the token".
    package let distortion: String
  }

  /// The maximum size of a received token that is examined, in bytes.
  private static let sizeLimit = 1000
  /// The numbers of digits of tokens that may have been lengthened.
  private static let usualCounts = [64, 160]

  /// Returns the tokens that the rest of a path after `/3/device/` becomes when a usual mistake is undone: a few, whether
  /// they are registered or not. Tokens that were cut are not among them.
  package static func candidates(for received: UnsafeRawBufferPointer) -> [Candidate] {
    guard (8...sizeLimit).contains(received.count) else { return [] }
    var candidates: [Candidate] = []
    func add(_ digits: [UInt8]?, _ distortion: String) {
      guard let digits, digits.withUnsafeBytes({ DeviceToken.isWellFormed($0) }), candidates.count < 16 else { return }
      candidates.append(Candidate(digits: digits, distortion: distortion))
    }
    let plain = withoutPercentEncoding(received)
    let bare = plain.filter { !punctuation.contains($0) }
    if bare.count != received.count { add(bare, "is written with spaces, brackets or quotation marks") }
    if let bytes = Hexadecimal.bytes(bare) {
      add(bytes, "is encoded in hexadecimal twice")
      add((Base64URL(bytes)?.bytes).map(hexadecimal), "is the base64 form of its bytes, encoded in hexadecimal")
      add(base64(bytes), "was decoded as base64, although it is hexadecimal, and encoded again")
      for count in usualCounts where bare.count > count {
        add(Array(bare.prefix(count)), "has something after its end")
        add(Array(bare.suffix(count)), "has something before its beginning")
      }
    } else {
      if let bytes = Base64URL(bare)?.bytes {
        add(hexadecimal(bytes), "is encoded in base64 instead of hexadecimal")
        add(bytes, "is encoded in base64 in addition to hexadecimal")
      }
      add(hexadecimal(plain), "was sent as bytes instead of in hexadecimal")
    }
    return candidates
  }

  /// Space, quotation marks, brackets and commas, as around and within a printed object.
  private static let punctuation = Set(" \"'<>{}(),".utf8)

  private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] { Array(Hexadecimal.text(bytes).utf8) }

  private static func base64(_ bytes: [UInt8]) -> [UInt8] { Array(Base64URL.text(bytes).utf8) }

  private static func withoutPercentEncoding(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    var bytes: [UInt8] = []
    var index = 0
    while index < text.count {
      if text[index] == UInt8(ascii: "%"), index + 2 < text.count, let high = Hexadecimal.value(of: text[index + 1]),
        let low = Hexadecimal.value(of: text[index + 2])
      {
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(text[index])
        index += 1
      }
    }
    return bytes
  }
}
