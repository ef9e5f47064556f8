public import HTTPMessage

/// What makes attempts the same push: a hash over device token, topic, push type, collapse id and body.
///
/// It is made once for each push on its way, so it is as quick as can be. The mixing step (multiply, then fold the halves
/// of the product) and its constants are those of wyhash, which is in the public domain. With 64 bits, two among a million
/// pushes have the same key once in thirty million times; who wants to can make such pushes, and then has two that count
/// as one. Draws depend on it: a seed means the same in the next version only while it stays as it is.
public struct PushKey: Hashable, Sendable {
  /// The key as a number.
  public private(set) var number: UInt64

  /// A key from its number.
  public init(number: UInt64) { self.number = number }

  /// The key of a request.
  ///
  /// - Parameters:
  ///   - facts: what its headers say.
  ///   - defaultTopic: the topic of a push that names none.
  ///   - usesID: whether the `apns-id` that the client gave tells it, where there is one.
  public init(
    _ request: borrowing HTTPRequest, _ facts: PushFacts, defaultTopic: String?, usesID: Bool = false
  ) {
    self.init(number: Self.beginning)
    request.headers.bytes.withUnsafeBytes { mix(headers: $0, facts, defaultTopic: defaultTopic, usesID: usesID) }
    guard !usesID || facts.apnsID == nil else { return }
    request.body.withUnsafeBytes { mix($0) }
    mix(UInt64(request.bodySize), 0)
  }

  /// A key of the device token and the topic alone.
  ///
  /// - Parameters:
  ///   - packed: the header fields that `facts` were read from.
  ///   - defaultTopic: the topic of a push that names none.
  public init(deviceOf packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    self.init(number: Self.beginning)
    mixTarget(headers: packed, facts, defaultTopic: defaultTopic)
  }

  /// A key of a device token alone, in which capital letters are as small ones.
  public init(deviceToken token: UnsafeRawBufferPointer) {
    self.init(number: Self.beginning)
    mix(token, or: .smallLetters)
  }

  private static let beginning: UInt64 = 0x9E37_79B9_7F4A_7C15

  private mutating func mix(
    headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?, usesID: Bool
  ) {
    if usesID, facts.apnsID != nil { return mix(Self.part(facts.apnsID, of: packed), or: .smallLetters) }
    mixTarget(headers: packed, facts, defaultTopic: defaultTopic)
    mix(Self.part(facts.pushTypeText, of: packed))
    mix(Self.part(facts.collapseID, of: packed))
  }

  private mutating func mixTarget(headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    mix(Self.part(facts.deviceToken, of: packed), or: .smallLetters)
    if facts.topic == nil, var topic = defaultTopic {
      topic.withUTF8 { mix(UnsafeRawBufferPointer($0)) }
    } else {
      mix(Self.part(facts.topic, of: packed))
    }
  }

  private static func part(_ range: ByteRange?, of packed: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    range.map { UnsafeRawBufferPointer(rebasing: packed[$0.indices]) }
  }

  // MARK: - Mixing

  /// Mixes in a part and its length, so that two parts cannot trade their bytes.
  private mutating func mix(_ part: UnsafeRawBufferPointer?) {
    guard let part else { return mix(UInt64.max, 0) }
    mix(part, or: 0)
  }

  private mutating func mix(_ part: UnsafeRawBufferPointer?, or bits: UInt64) {
    guard let part else { return mix(UInt64.max, 0) }
    mix(part, or: bits)
  }

  // Inlined so that bodies, which have no bits added, are spared the work of adding them.
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
      // Four steps that do not wait for each other.
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
    number = (one ^ 0x1D8E_4E27_C47D_124F).folded(by: other ^ number)
  }
}

extension UInt64 {
  /// The product with another number, its halves folded into one: a step of mixing.
  @inlinable
  package func folded(by other: UInt64) -> UInt64 {
    let product = multipliedFullWidth(by: other)
    return product.high ^ product.low
  }
}

// MARK: - Writing

extension PushKey {
  /// How many digits its text has.
  public static let length = 16

  /// As it is shown: 16 hexadecimal digits in small letters.
  public var text: String { withText { String(decoding: $0, as: UTF8.self) } }

  /// Calls `read` with the digits of `text`, without making a String of them.
  @inlinable
  public func withText<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeBytes(of: digits, read)
  }

  /// The digits of `text` as they stand in memory.
  @usableFromInline var digits: (UInt64, UInt64) {
    (
      UInt64(digitsOf: UInt32(truncatingIfNeeded: number >> 32), ten: UInt8(ascii: "a")),
      UInt64(digitsOf: UInt32(truncatingIfNeeded: number), ten: UInt8(ascii: "a"))
    )
  }

  /// The key with this text, its letters in any case; nil if it is none.
  public init?(text: String) {
    let digits = text.utf8
    guard digits.count == Self.length, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let number = UInt64(text, radix: 16)
    else { return nil }
    self.init(number: number)
  }
}
