public import HTTPMessage

/// The known header fields of a request: where they are and what they mean. Filled as far as possible even if the
/// request is rejected, so that records show what was received.
///
/// Ranges refer to `HeaderList.bytes`. An optional header with an empty value counts as absent (Protocol.md,
/// section 2), except `apns-topic` and `apns-priority`.
public struct PushFacts: Sendable, Equatable {
  // Ordered to avoid padding, and as small as possible, because each record stores them.

  /// The expiration in UNIX seconds, clamped to `Int64.max`; nil if absent or not a number.
  public internal(set) var expiration: Int64?
  /// The push type; nil if absent or unknown.
  public internal(set) var pushType: PushType?
  /// 10, 5 or 1; 10 if the header is absent, 0 if its value is invalid.
  public internal(set) var priority: UInt8 = 10
  /// Whether `apns-id` is a UUID, which the response repeats.
  public internal(set) var apnsIDIsUUID = false
  /// Whether `apns-topic` is absent and the topic is the connection's `ProviderCertificate.defaultTopic`.
  public internal(set) var topicIsFromCertificate = false
  /// Whether `authorization` is repeated, so that blanking `signatureRange` alone is not enough.
  var authorizationIsRepeated = false
  private var bodyLimit = UInt16(PushType.usualPayloadLimit)

  /// `:method`.
  @CompactRange public internal(set) var method: ByteRange?
  /// `:path`.
  @CompactRange public internal(set) var path: ByteRange?
  /// The rest of the path after `/3/device/`, well formed or not; nil for another path.
  @CompactRange public internal(set) var deviceToken: ByteRange?
  /// The value of `authorization`.
  @CompactRange public internal(set) var authorization: ByteRange?
  /// The third part of the provider token, which must not be stored; the whole credential if it has no three parts.
  /// See also `blankSignatures(in:)`.
  @CompactRange public internal(set) var signatureRange: ByteRange?
  /// `apns-topic`, empty or not.
  @CompactRange public internal(set) var topic: ByteRange?
  /// `apns-id`.
  @CompactRange public internal(set) var apnsID: ByteRange?
  /// `apns-collapse-id`.
  @CompactRange public internal(set) var collapseID: ByteRange?
  /// `apns-expiration`.
  @CompactRange public internal(set) var expirationText: ByteRange?
  /// `apns-priority`, empty or not.
  @CompactRange public internal(set) var priorityText: ByteRange?
  /// `apns-push-type`.
  @CompactRange public internal(set) var pushTypeText: ByteRange?
  /// The second occurrence of a repeated name other than `cookie`.
  @CompactRange var repeatedName: ByteRange?

  /// The maximum body size of this push in bytes, by its push type or else by its topic's suffix.
  public internal(set) var payloadLimit: Int {
    get { Int(bodyLimit) }
    set { bodyLimit = UInt16(clamping: newValue) }
  }

  /// Creates empty facts.
  init() {}

  /// Overwrites the signature of each provider token in a copy of the header list's bytes with zeros.
  ///
  /// - Parameter packed: the bytes these facts were read from, or a copy of them.
  public func blankSignatures(in packed: UnsafeMutableRawBufferPointer) {
    if let signatureRange { Self.blank(signatureRange, in: packed) }
    guard authorizationIsRepeated else { return }
    let bytes = UnsafeRawBufferPointer(packed)
    HeaderList.forEachField(in: bytes) { name, value in
      guard bytes.part(name.indices).equals("authorization") else { return }
      Self.blank(Self.signatureRange(of: value, in: bytes), in: packed)
    }
  }

  /// The part of an `authorization` value that must not be stored: everything after the second dot of the token, or
  /// all of the credential if it has no two dots and could be a password.
  static func signatureRange(of value: ByteRange, in packed: UnsafeRawBufferPointer) -> ByteRange {
    let text = packed.part(value.indices)
    var start = text.firstIndex(of: 0x20, from: 0).map { $0 + 1 } ?? 0
    if let first = text.firstIndex(of: 0x2e, from: start), let second = text.firstIndex(of: 0x2e, from: first + 1) {
      start = second + 1
    }
    return ByteRange(offset: Int(value.offset) + start, count: text.count - start)
  }

  private static func blank(_ range: ByteRange, in packed: UnsafeMutableRawBufferPointer) {
    let part = UnsafeMutableRawBufferPointer(rebasing: packed[range.indices.clamped(to: packed.indices)])
    part.initializeMemory(as: UInt8.self, repeating: 0)
  }
}
