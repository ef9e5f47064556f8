public import APNSRules
internal import HTTPMessage
internal import Notation
internal import TLSEngine

/// What makes attempts the same push.
public enum PushKey {
  /// How many digits it has.
  public static let length = 32

  /// 32 hexadecimal digits, the first half of the SHA-256 over device token (lower case), topic, push type and collapse
  /// id, each with a zero byte after it, and the body.
  ///
  /// - Parameters:
  ///   - headers: the packed header fields that `facts` were read from, or a copy of them.
  ///   - defaultTopic: the topic of a push without `apns-topic`: the only one of the provider certificate.
  ///   - body: the body, as far as it is kept.
  public static func text(
    headers: UnsafeRawBufferPointer, facts: PushFacts, defaultTopic: String?, body: UnsafeRawBufferPointer
  ) -> String {
    var target: [UInt8] = []
    target.reserveCapacity(256)
    if let token = headers.field(facts.deviceToken) {
      target.append(contentsOf: UnsafeRawBufferPointer(rebasing: token))
      for index in target.indices { target[index] = asciiLowercased(target[index]) }
    }
    target.append(0)
    if facts.topic == nil, let defaultTopic { target.append(contentsOf: defaultTopic.utf8) }
    for range in [facts.topic, facts.pushTypeText, facts.collapseID] {
      if let text = headers.field(range) { target.append(contentsOf: UnsafeRawBufferPointer(rebasing: text)) }
      target.append(0)
    }
    return hexadecimal(target.withUnsafeBytes { SHA256.digest($0, body) }.prefix(length / 2))
  }

  /// Two lower-case digits for each byte. A draw may ask for a key of every push, so its text is written in place.
  private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
      for (index, byte) in bytes.enumerated() {
        text[2 * index] = digits.utf8Start[Int(byte >> 4)]
        text[2 * index + 1] = digits.utf8Start[Int(byte & 15)]
      }
      return 2 * bytes.count
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of packed header fields at `range`; nil without a range, or with one that is not of these bytes.
  func field(_ range: ByteRange?) -> Slice<UnsafeRawBufferPointer>? {
    guard let range, range.indices.upperBound <= count else { return nil }
    return self[range.indices]
  }
}
