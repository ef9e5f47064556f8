public import HTTPMessage

/// What a request says, read once: where its known fields stand and what they mean. Filled as far as the request
/// allows, also when it is rejected, so that a record shows what came.
///
/// Ranges are into `HeaderList.bytes`. An optional header with an empty value counts as absent (APNS.md section 2),
/// except `apns-topic` and `apns-priority`.
public struct PushFacts: Sendable, Equatable {
  // In an order that leaves no gaps between them, and as small as they go: each record has them.

  /// The expiration in UNIX seconds, at most `Int64.max`, if there is one and it is a number.
  public internal(set) var expiration: Int64?
  /// The push type, if there is one and it is known.
  public internal(set) var pushType: PushType?
  /// 10, 5 or 1; 10 when the header is absent, 0 when it says something else.
  public internal(set) var priority: UInt8 = 10
  /// Whether `apns-id` is a UUID, and so is echoed.
  public internal(set) var apnsIDIsUUID = false
  /// There is no `apns-topic` and the push goes to `ProviderCertificate.defaultTopic` of the connection's certificate.
  public internal(set) var topicIsFromCertificate = false
  /// `authorization` came more than once, so `signatureRange` is not all there is to blank.
  var authorizationIsRepeated = false
  private var bodyLimit = UInt16(PushType.usualPayloadLimit)

  /// `:method`.
  @CompactRange public internal(set) var method: ByteRange?
  /// `:path`.
  @CompactRange public internal(set) var path: ByteRange?
  /// What follows `/3/device/` in the path, well formed or not; `nil` for another path.
  @CompactRange public internal(set) var deviceToken: ByteRange?
  /// The value of `authorization`.
  @CompactRange public internal(set) var authorization: ByteRange?
  /// The bytes of the provider token's third part, which no recorder may keep; the whole credential where it has no
  /// three parts. See also `blankSignatures(in:)`.
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
  /// A name, other than `cookie`, that came before: where it stands the second time.
  @CompactRange var repeatedName: ByteRange?

  /// The largest body in bytes that this push may have, by its type or else by its topic's suffix.
  public internal(set) var payloadLimit: Int {
    get { Int(bodyLimit) }
    set { bodyLimit = UInt16(clamping: newValue) }
  }

  /// The facts of nothing.
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

  /// The part of an `authorization` value that nobody may keep: from the second dot of the token on, or all of it where
  /// there are not two dots and it could be anybody's password.
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
