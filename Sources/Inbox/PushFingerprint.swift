internal import APNSRules
internal import HTTPMessage

/// Tells whether two attempts are of the same push: a hash over device token, topic, push type, collapse id and body.
///
/// It stays inside the program and lives for minutes, so it is as quick as can be: a seventh of the time of the SHA-256
/// that is shown as `push_key`. The mixing step (multiply, then fold the halves of the product) is the one of wyhash,
/// which is in the public domain.
struct PushFingerprint: Hashable {
  private var state: UInt64

  /// A fingerprint from its number.
  init(state: UInt64) { self.state = state }

  init(_ record: borrowing Record) {
    self.init(state: 0x9E37_79B9_7F4A_7C15)
    let facts = record.facts
    // Device tokens are compared without case: the bit that this sets is set in digits and small letters already.
    record.withHeader(facts.deviceToken) { mix($0, or: 0x2020_2020_2020_2020) }
    record.withTopic { mix($0) }
    record.withHeader(facts.pushTypeText) { mix($0) }
    record.withHeader(facts.collapseID) { mix($0) }
    record.withBody { mix($0) }
    mix(UInt64(record.bodySize))
  }

  /// Mixes in a part and its length, so that two parts cannot trade their bytes.
  private mutating func mix(_ part: UnsafeRawBufferPointer?, or bits: UInt64 = 0) {
    guard let part else { return mix(UInt64.max) }
    mix(UInt64(part.count))
    var offset = 0
    while offset + 8 <= part.count {
      mix(part.loadUnaligned(fromByteOffset: offset, as: UInt64.self) | bits)
      offset += 8
    }
    var rest: UInt64 = 0
    for byte in part[offset...] { rest = rest << 8 | UInt64(byte) }
    mix(rest | bits)
  }

  private mutating func mix(_ word: UInt64) {
    let product = (state ^ word).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
    state = product.high ^ product.low ^ 0xE703_7ED1_A0B4_28DB
  }
}
