public import APNSRules
public import HTTPMessage

/// Tells whether two attempts are of the same push: a hash over device token, topic, push type, collapse id and body.
///
/// It stays inside the program and lives for minutes, so it is as quick as can be: a seventh of the time of the SHA-256
/// that is shown as `push_key`. The mixing step (multiply, then fold the halves of the product) is the one of wyhash,
/// which is in the public domain.
public struct PushFingerprint: Hashable, Sendable {
  private var state: UInt64

  /// A fingerprint from its number.
  init(state: UInt64) { self.state = state }

  /// The fingerprint of a request.
  ///
  /// - Parameters:
  ///   - facts: what its headers say.
  ///   - defaultTopic: the topic of a push that names none.
  ///   - usesID: whether the `apns-id` that the client gave tells it, where there is one.
  public init(
    _ request: borrowing HTTPRequest, _ facts: PushFacts, defaultTopic: String?, usesID: Bool = false
  ) {
    self.init(state: Self.beginning)
    request.headers.bytes.withUnsafeBytes { mix(headers: $0, facts, defaultTopic: defaultTopic, usesID: usesID) }
    guard !usesID || facts.apnsID == nil else { return }
    request.body.withUnsafeBytes { mix($0) }
    mix(UInt64(request.bodySize))
  }

  /// The fingerprint of the push that a record is about, without regard to its `apns-id`.
  init(_ record: borrowing Record) {
    self.init(state: Self.beginning)
    let (facts, bodySize, defaultTopic) = (record.facts, record.bodySize, record.connection.certificate?.defaultTopic)
    record.withHeaders { mix(headers: $0, facts, defaultTopic: defaultTopic, usesID: false) }
    record.withBody { mix($0) }
    mix(UInt64(bodySize))
  }

  /// A fingerprint of the device token and the topic alone.
  init(deviceOf record: borrowing Record) {
    self.init(state: Self.beginning)
    let (facts, defaultTopic) = (record.facts, record.connection.certificate?.defaultTopic)
    record.withHeaders { mixTarget(headers: $0, facts, defaultTopic: defaultTopic) }
  }

  private static let beginning: UInt64 = 0x9E37_79B9_7F4A_7C15

  private mutating func mix(
    headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?, usesID: Bool
  ) {
    if usesID, facts.apnsID != nil { return mix(Self.part(facts.apnsID, of: packed), or: Self.smallLetters) }
    mixTarget(headers: packed, facts, defaultTopic: defaultTopic)
    mix(Self.part(facts.pushTypeText, of: packed))
    mix(Self.part(facts.collapseID, of: packed))
  }

  private mutating func mixTarget(headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    mix(Self.part(facts.deviceToken, of: packed), or: Self.smallLetters)
    if facts.topic == nil, var topic = defaultTopic {
      topic.withUTF8 { mix(UnsafeRawBufferPointer($0)) }
    } else {
      mix(Self.part(facts.topic, of: packed))
    }
  }

  private static func part(_ range: ByteRange?, of packed: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    range.map { UnsafeRawBufferPointer(rebasing: packed[$0.indices]) }
  }

  /// Device tokens and ids are compared without case: the bit that this sets is set in digits and small letters already.
  private static let smallLetters: UInt64 = 0x2020_2020_2020_2020

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
