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
    var parts: [UInt8] = []
    parts.reserveCapacity(256)
    if let token = headers.field(facts.deviceToken) { parts.append(contentsOf: token.map(asciiLowercased)) }
    parts.append(0)
    if facts.topic == nil, let defaultTopic { parts.append(contentsOf: defaultTopic.utf8) }
    for range in [facts.topic, facts.pushTypeText, facts.collapseID] {
      if let text = headers.field(range) { parts.append(contentsOf: text) }
      parts.append(0)
    }
    return parts.withUnsafeBytes { String(SHA256.hexDigest($0, body).prefix(length)) }
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of packed header fields at `range`; nil without a range, or with one that is not of these bytes.
  func field(_ range: ByteRange?) -> Slice<UnsafeRawBufferPointer>? {
    guard let range, range.indices.upperBound <= count else { return nil }
    return self[range.indices]
  }
}
