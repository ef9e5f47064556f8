package import APNSMockHTTPMessage
internal import APNSMockNotation

/// Identifies attempts of the same push: a hash of device token, topic, push type, collapse id and body; for a
/// broadcast or a request of channel management also of method, path and channel.
///
/// Computed for each push, so it has to be fast. The mixing step (multiply, then fold the halves of the product)
/// and its constants are those of wyhash, which is in the public domain. Among a million pushes, the probability
/// that two have the same 64-bit key is one in thirty million. Collisions can be constructed, and the colliding
/// pushes then count as one. Random draws depend on the key: changing the hash would change the meaning of a seed
/// between versions.
package struct PushKey: Hashable, Sendable {
  /// The key as a number.
  package private(set) var number: UInt64

  /// Creates a key from its number.
  package init(number: UInt64) { self.number = number }

  /// Computes the key of a request.
  ///
  /// - Parameters:
  ///   - facts: The facts of its headers.
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  ///   - usesID: Whether the client's `apns-id`, if there is one, identifies the push instead.
  package init(
    _ request: borrowing HTTPRequest, _ facts: PushFacts, defaultTopic: String?, usesID: Bool = false
  ) {
    self.init(number: Self.beginning)
    request.headers.bytes.withUnsafeBytes { mix(headers: $0, facts, defaultTopic: defaultTopic, usesID: usesID) }
    guard !usesID || facts.apnsID == nil else { return }
    request.body.withUnsafeBytes { mix($0) }
    mix(UInt64(request.bodySize), 0)
  }

  /// Computes the key of a push that its `apns-id` identifies, compared without case.
  package init(apnsID id: UnsafeRawBufferPointer) {
    self.init(number: Self.beginning)
    mix(id, or: .lowercaseBits)
  }

  /// Computes a key of device token, topic, push type and collapse id, for a push whose body is not known.
  ///
  /// - Parameters:
  ///   - packed: The header fields that `facts` were read from.
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  package init(withoutBodyOf packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    self.init(number: Self.beginning)
    mix(headers: packed, facts, defaultTopic: defaultTopic, usesID: false)
  }

  /// Computes a key of the device token and the topic only.
  ///
  /// - Parameters:
  ///   - packed: The header fields that `facts` were read from.
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  package init(deviceOf packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    self.init(number: Self.beginning)
    mixTarget(headers: packed, facts, defaultTopic: defaultTopic)
  }

  /// Computes a key of a device token only, ignoring case.
  package init(deviceToken token: UnsafeRawBufferPointer) {
    self.init(number: Self.beginning)
    mix(token, or: .lowercaseBits)
  }

  /// Computes a key of a device token only, ignoring case.
  package init(deviceToken token: String) { self = token.withBytes { PushKey(deviceToken: $0) } }

  /// Computes a key of any bytes.
  package init(bytes: UnsafeRawBufferPointer) {
    self.init(number: Self.beginning)
    mix(bytes, or: 0)
  }

  private static let beginning: UInt64 = 0x9E37_79B9_7F4A_7C15

  private mutating func mix(
    headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?, usesID: Bool
  ) {
    if usesID, let id = Self.part(facts.apnsID, of: packed) {
      self = PushKey(apnsID: id)
      return
    }
    mixTarget(headers: packed, facts, defaultTopic: defaultTopic)
    mix(Self.part(facts.pushTypeText, of: packed))
    mix(Self.part(facts.collapseID, of: packed))
  }

  private mutating func mixTarget(headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    mix(Self.part(facts.deviceToken, of: packed), or: .lowercaseBits)
    if facts.topic == nil, let topic = defaultTopic {
      topic.withBytes { mix($0) }
    } else {
      mix(Self.part(facts.topic, of: packed))
    }
    guard facts.kind(in: packed) != .push else { return }
    mix(Self.part(facts.method, of: packed))
    mix(Self.part(facts.path, of: packed))
    HeaderList.forEachField(in: packed) { name, value in
      if packed[name].equals("apns-channel-id") { mix(packed[value]) }
    }
  }

  private static func part(_ range: ByteRange?, of packed: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    range.map { packed[$0] }
  }

  // MARK: - Mixing

  /// Mixes in a part and its length, so that bytes cannot move from one part to the next unnoticed.
  private mutating func mix(_ part: UnsafeRawBufferPointer?) {
    guard let part else { return mix(UInt64.max, 0) }
    mix(part, or: 0)
  }

  private mutating func mix(_ part: UnsafeRawBufferPointer?, or bits: UInt64) {
    guard let part else { return mix(UInt64.max, 0) }
    mix(part, or: bits)
  }

  // Inlined so that the addition of no bits is optimized away for bodies.
  @inline(__always)
  private mutating func mix(_ part: UnsafeRawBufferPointer, or bits: UInt64) {
    func word(_ offset: Int) -> UInt64 {
      UInt64(littleEndian: part.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) | bits
    }
    func half(_ offset: Int) -> UInt64 {
      UInt64(
        UInt32(littleEndian: part.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
          | UInt32(truncatingIfNeeded: bits))
    }
    let count = part.count
    number ^= UInt64(count)
    var offset = 0
    if count > 128 {
      // Four independent steps, which the processor can run in parallel.
      var (one, two, three, four) = (number, number, number, number)
      while offset &+ 64 < count {
        one = (word(offset) ^ 0xA076_1D64_78BD_642F).folded(by: word(offset &+ 8) ^ one)
        two = (word(offset &+ 16) ^ 0xE703_7ED1_A0B4_28DB).folded(by: word(offset &+ 24) ^ two)
        three = (word(offset &+ 32) ^ 0x8EBC_6AF0_9C88_C6E3).folded(by: word(offset &+ 40) ^ three)
        four = (word(offset &+ 48) ^ 0x5899_65CC_7537_4CC3).folded(by: word(offset &+ 56) ^ four)
        offset &+= 64
      }
      number = one ^ three
      mix(two, four)
    }
    while offset + 16 < count {
      mix(word(offset), word(offset + 8))
      offset += 16
    }
    // The last sixteen bytes, which may overlap the previous ones.
    switch count {
    case 16...: mix(word(count - 16), word(count - 8))
    case 8...: mix(word(0), word(count - 8))
    case 4...: mix(half(0), half(count - 4))
    case 1...: mix(UInt64(part[0]) | UInt64(part[count / 2]) << 8 | UInt64(part[count - 1]) << 16 | bits, 0)
    default: mix(0, 0)
    }
  }

  private mutating func mix(_ one: UInt64, _ other: UInt64) {
    number = (one ^ 0x1D8E_4E27_C47D_124F).folded(by: other ^ number)
  }
}

extension UInt64 {
  /// Multiplies by another number and folds the halves of the product into one.
  @inlinable
  package func folded(by other: UInt64) -> UInt64 {
    let product = multipliedFullWidth(by: other)
    return product.high ^ product.low
  }
}

// MARK: - Text

extension PushKey {
  /// The number of digits in `text`.
  package static let length = 16

  /// The key as 16 hexadecimal digits in lower case.
  package var text: String { withText { String(decoding: $0, as: UTF8.self) } }

  /// Calls `read` with the digits of `text`, without creating a `String`.
  @inlinable
  package func withText<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeBytes(of: digits, read)
  }

  /// The digits of `text` in memory order.
  @usableFromInline var digits: (UInt64, UInt64) {
    (
      UInt64(digitsOf: UInt32(truncatingIfNeeded: number >> 32), ten: UInt8(ascii: "a")),
      UInt64(digitsOf: UInt32(truncatingIfNeeded: number), ten: UInt8(ascii: "a"))
    )
  }

  /// Creates the key with this text, whose letters may have either case; nil if the text is invalid.
  package init?(text: String) {
    let digits = text.utf8
    guard digits.count == Self.length, digits.allSatisfy(Hexadecimal.isDigit),
      let number = UInt64(text, radix: 16)
    else { return nil }
    self.init(number: number)
  }
}
