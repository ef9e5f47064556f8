public import APNSRules
public import HTTPMessage

/// Tells whether two attempts are of the same push: a hash over device token, topic, push type, collapse id and body.
///
/// It stays inside the program and lives for minutes, so it is as quick as can be: a tenth of the time of the SHA-256
/// that is shown as `push_key`. The mixing step (multiply, then fold the halves of the product) and the lanes are those of
/// wyhash, which is in the public domain.
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
    if part.count >= 64 {
      // Multiplications wait for the ones before them; those of four lanes do not wait for each other.
      var lanes = (state, state ^ 0x8EBC_6AF0_9C88_C6E3, state ^ 0x5899_65CC_7537_4CC3, state ^ 0x1D8E_4E27_C47D_124F)
      while offset + 64 <= part.count {
        lanes.0 = Self.fold(lanes.0, part.words(at: offset, or: bits))
        lanes.1 = Self.fold(lanes.1, part.words(at: offset + 16, or: bits))
        lanes.2 = Self.fold(lanes.2, part.words(at: offset + 32, or: bits))
        lanes.3 = Self.fold(lanes.3, part.words(at: offset + 48, or: bits))
        offset += 64
      }
      state = lanes.0 ^ lanes.1 ^ lanes.2 ^ lanes.3
    }
    while offset + 16 <= part.count {
      state = Self.fold(state, part.words(at: offset, or: bits))
      offset += 16
    }
    if offset == part.count { return }
    if part.count >= 16 {
      // The last sixteen bytes, some of them once more: as good as those that are left, for the length is known.
      state = Self.fold(state, part.words(at: part.count - 16, or: bits))
    } else {
      var rest: (UInt64, UInt64) = (0, 0)
      for byte in part { rest = (rest.0 << 8 | rest.1 >> 56, rest.1 << 8 | UInt64(byte)) }
      state = Self.fold(state, (rest.0 | bits, rest.1 | bits))
    }
  }

  private mutating func mix(_ word: UInt64) { state = Self.fold(state, (word, 0)) }

  private static func fold(_ state: UInt64, _ words: (UInt64, UInt64)) -> UInt64 {
    let product = (state ^ words.0).multipliedFullWidth(by: words.1 ^ 0xA076_1D64_78BD_642F)
    return product.high ^ product.low ^ 0xE703_7ED1_A0B4_28DB
  }
}

extension UnsafeRawBufferPointer {
  /// Sixteen bytes as two words.
  fileprivate func words(at offset: Int, or bits: UInt64) -> (UInt64, UInt64) {
    (
      loadUnaligned(fromByteOffset: offset, as: UInt64.self) | bits,
      loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self) | bits
    )
  }
}
