package import APNSMockHTTPMessage

/// The known header fields of a request: where they are and what they mean. Filled as far as possible even if the
/// request is rejected, so that records show what was received.
///
/// Ranges refer to `HeaderList.bytes`. An optional header with an empty value counts as absent (Protocol.md,
/// section 2), except `apns-topic` and `apns-priority`.
package struct PushFacts: Sendable, Equatable {
  // Ordered to avoid padding, and as small as possible, because each record stores them.

  /// The expiration in UNIX seconds, clamped to `Int64.max`; nil if absent or not a number.
  package internal(set) var expiration: Int64?
  /// The push type; nil if absent or unknown.
  package internal(set) var pushType: PushType?
  /// 10, 5 or 1; 10 if the header is absent, 0 if its value is invalid.
  package internal(set) var priority: UInt8 = 10
  /// Whether `apns-id` is a UUID, which the response repeats.
  package internal(set) var apnsIDIsUUID = false
  /// Whether `apns-topic` is absent and the topic is the connection's `ProviderCertificate.defaultTopic`.
  package internal(set) var topicIsFromCertificate = false
  /// Whether other fields than the first `authorization` may contain provider tokens, so that blanking `signatureRange`
  /// alone is not enough.
  var mayHaveFurtherTokens = false
  private var bodyLimit = UInt16(PushType.usualPayloadLimit)

  /// `:method`.
  @CompactRange package internal(set) var method: ByteRange?
  /// `:path`.
  @CompactRange package internal(set) var path: ByteRange?
  /// The rest of the path after `/3/device/`, well formed or not; nil for another path.
  @CompactRange package internal(set) var deviceToken: ByteRange?
  /// The value of `authorization`.
  @CompactRange package internal(set) var authorization: ByteRange?
  /// The third part of the provider token, which must not be stored; the whole credential if it has no three parts.
  /// See also `blankSignatures(in:)`.
  @CompactRange package internal(set) var signatureRange: ByteRange?
  /// `apns-topic`, empty or not.
  @CompactRange package internal(set) var topic: ByteRange?
  /// `apns-id`.
  @CompactRange package internal(set) var apnsID: ByteRange?
  /// `apns-collapse-id`.
  @CompactRange package internal(set) var collapseID: ByteRange?
  /// `apns-expiration`.
  @CompactRange package internal(set) var expirationText: ByteRange?
  /// `apns-priority`, empty or not.
  @CompactRange package internal(set) var priorityText: ByteRange?
  /// `apns-push-type`.
  @CompactRange package internal(set) var pushTypeText: ByteRange?
  /// The second occurrence of a repeated name other than `cookie`.
  @CompactRange var repeatedName: ByteRange?

  /// The maximum body size of this push in bytes, by its push type or else by its topic's suffix.
  package internal(set) var payloadLimit: Int {
    get { Int(bodyLimit) }
    set { bodyLimit = UInt16(clamping: newValue) }
  }

  /// Creates empty facts.
  init() {}

  /// Overwrites the signature of each provider token in a copy of the header list's bytes with zeros: in `authorization`
  /// and, by `TokenRedaction`, wherever else there is a JWT.
  ///
  /// - Parameter packed: The bytes these facts were read from, or a copy of them.
  package func blankSignatures(in packed: UnsafeMutableRawBufferPointer) {
    if let signatureRange { Self.blank(signatureRange, in: packed) }
    guard mayHaveFurtherTokens else { return }
    let bytes = UnsafeRawBufferPointer(packed)
    HeaderList.forEachField(in: bytes) { name, value in
      if bytes[name].equals("authorization") {
        Self.blank(Self.signatureRange(of: value, in: bytes), in: packed)
      } else {
        TokenRedaction.blank(UnsafeMutableRawBufferPointer(rebasing: packed[value.indices]))
      }
    }
  }

  /// The part of an `authorization` value that must not be stored: everything after the second dot of the token, or
  /// all of the credential if it has no two dots and could be a password.
  static func signatureRange(of value: ByteRange, in packed: UnsafeRawBufferPointer) -> ByteRange {
    let text = packed[value]
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

extension PushFacts {
  /// Reads the facts of a request that was validated elsewhere.
  ///
  /// - Parameter defaultTopic: The topic of a push without `apns-topic`.
  package init(_ headers: HeaderList, defaultTopic: String?) {
    var topic = defaultTopic ?? ""
    self = topic.withUTF8 { topic in
      headers.bytes.withUnsafeBytes {
        PushFactsReader(
          $0, defaultTopic: topic.isEmpty ? nil : UnsafeRawBufferPointer(topic), comparesOtherNames: false
        ).facts
      }
    }
  }

  /// Reads the facts of a request that is not validated because it is incomplete.
  package init(_ headers: HeaderList) {
    self = headers.bytes.withUnsafeBytes {
      PushFactsReader($0, defaultTopic: nil, comparesOtherNames: false).facts
    }
  }
}
