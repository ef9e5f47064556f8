public import APNSRules
public import HTTPMessage

/// Tells whether two attempts are of the same push: a hash over device token, topic, push type, collapse id and body.
///
/// It stays inside the program and lives as long as a record, which keeps its own, so it is as quick as can be: a
/// twentieth of the time of the SHA-256 that is shown as `push_key`. The mixing step (multiply, then fold the halves of
/// the product) and its constants are those of wyhash, which is in the public domain.
public struct PushFingerprint: Hashable, Sendable {
  private(set) var state: UInt64

  /// A fingerprint from its number.
  init(state: UInt64) { self.state = state }

  /// The fingerprint of a request.
  ///
  /// - Parameters:
  ///   - facts: what its headers say.
  ///   - defaultTopic: the topic of a push that names none; asked for only then.
  ///   - usesID: whether the `apns-id` that the client gave tells it, where there is one.
  public init(
    _ request: borrowing HTTPRequest, _ facts: PushFacts, defaultTopic: @autoclosure () -> String?,
    usesID: Bool = false
  ) {
    self.init(state: Self.beginning)
    let topic = facts.topic == nil ? defaultTopic() : nil
    request.headers.bytes.withUnsafeBytes { mix(headers: $0, facts, defaultTopic: topic, usesID: usesID) }
    guard !usesID || facts.apnsID == nil else { return }
    request.body.withUnsafeBytes { mix($0) }
    mix(UInt64(request.bodySize), 0)
  }

  /// A fingerprint of the device token and the topic alone.
  init(deviceOf record: borrowing Record) {
    self.init(state: Self.beginning)
    let (facts, defaultTopic) = (record.facts, record.connection.certificate?.defaultTopic)
    record.withHeaders { mixTarget(headers: $0, facts, defaultTopic: defaultTopic) }
  }

  /// A fingerprint of a device token alone.
  init(deviceToken token: UnsafeRawBufferPointer) {
    self.init(state: Self.beginning)
    mix(token, or: Self.smallLetters)
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

  // MARK: - Mixing

  /// Mixes in a part and its length, so that two parts cannot trade their bytes.
  private mutating func mix(_ part: UnsafeRawBufferPointer?, or bits: UInt64 = 0) {
    guard let part else { return mix(UInt64.max, 0) }
    func word(_ offset: Int) -> UInt64 { part.loadUnaligned(fromByteOffset: offset, as: UInt64.self) | bits }
    func half(_ offset: Int) -> UInt64 {
      UInt64(part.loadUnaligned(fromByteOffset: offset, as: UInt32.self) | UInt32(truncatingIfNeeded: bits))
    }
    let count = part.count
    state ^= UInt64(count)
    var offset = 0
    if count > 128 {
      // Four steps that do not wait for each other.
      var (one, two, three, four) = (state, state, state, state)
      while offset + 64 < count {
        one = Self.fold(word(offset) ^ 0xA076_1D64_78BD_642F, word(offset + 8) ^ one)
        two = Self.fold(word(offset + 16) ^ 0xE703_7ED1_A0B4_28DB, word(offset + 24) ^ two)
        three = Self.fold(word(offset + 32) ^ 0x8EBC_6AF0_9C88_C6E3, word(offset + 40) ^ three)
        four = Self.fold(word(offset + 48) ^ 0x5899_65CC_7537_4CC3, word(offset + 56) ^ four)
        offset += 64
      }
      state = one ^ three
      mix(two, four)
    }
    while offset + 16 < count {
      mix(word(offset), word(offset + 8))
      offset += 16
    }
    // The last sixteen bytes, some of them for the second time.
    switch count {
    case 16...: mix(word(count - 16), word(count - 8))
    case 8...: mix(word(0), word(count - 8))
    case 4...: mix(half(0), half(count - 4))
    case 1...: mix(UInt64(part[0]) | UInt64(part[count / 2]) << 8 | UInt64(part[count - 1]) << 16 | bits, 0)
    default: mix(0, 0)
    }
  }

  private mutating func mix(_ one: UInt64, _ other: UInt64) {
    state = Self.fold(one ^ 0x1D8E_4E27_C47D_124F, other ^ state)
  }

  private static func fold(_ one: UInt64, _ other: UInt64) -> UInt64 {
    let product = one.multipliedFullWidth(by: other)
    return product.high ^ product.low
  }
}
