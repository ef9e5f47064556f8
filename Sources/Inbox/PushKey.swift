internal import APNSRules
internal import TLSEngine
internal import Notation

extension Record {
  /// What makes attempts the same push: 32 hexadecimal digits, the first half of the SHA-256 over device token (lower
  /// case), topic, push type and collapse id, each with a zero byte after it, and the body as far as it was kept.
  ///
  /// Computed when asked for: most records are never looked at.
  public var pushKey: String {
    var parts: [UInt8] = []
    parts.reserveCapacity(512 + bodyRange.count)
    withHeader(facts.deviceToken) { token in
      for byte in token ?? .init(start: nil, count: 0) { parts.append(asciiLowercased(byte)) }
    }
    parts.append(0)
    withTopic { if let topic = $0 { parts.append(contentsOf: topic) } }
    parts.append(0)
    for range in [facts.pushTypeText, facts.collapseID] {
      withHeader(range) { if let text = $0 { parts.append(contentsOf: text) } }
      parts.append(0)
    }
    parts.append(contentsOf: body)
    return String(SHA256.hexDigest(parts).prefix(32))
  }
}
