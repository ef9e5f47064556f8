/// How a provider token says it is signed, as far as anything here accepts it.
public enum SigningAlgorithm: String, Sendable {
  /// ECDSA over P-256 with SHA-256: the documented one (APNS.md section 3.1).
  case es256 = "ES256"
  /// The same key with SHA-512, r and s padded to 66 bytes each, as the PHP library pushok signs (APNS.md section 3.1);
  /// accepted by `apple` and `lenient`, refused by `strict`.
  case es512 = "ES512"
}

/// A provider key the server trusts: its public half and what Apple's portal would know about it (APNS.md section 3.3).
public struct TrustedKey: Sendable {
  /// The key id, ten characters at Apple; the `kid` of a provider token.
  public var keyID: String
  /// The team the key belongs to, ten characters at Apple; the `iss` of a provider token.
  public var teamID: String
  /// The only environment it is good for; `nil` for a key of both.
  public var environment: PushEnvironment?
  /// The most topics of a topic-specific key (APNS.md section 3.3, documented).
  public static let topicsLimit = 400

  /// The topics of a topic-specific key; `nil` for a team key, good for all.
  public var topics: [String]?
  /// The one key a topic-specific key is related to, with which it may share a connection.
  public var relatedKeyID: String?
  /// Verifies a signature (raw r‖s or DER) over a message with this key. Called at most once per distinct provider
  /// token and connection, on any thread.
  public var verifies: Verification

  /// See `verifies`.
  public typealias Verification =
    @Sendable (_ algorithm: SigningAlgorithm, _ message: UnsafeRawBufferPointer, _ signature: UnsafeRawBufferPointer)
    -> Bool

  /// A key from parts.
  public init(
    keyID: String, teamID: String, environment: PushEnvironment? = nil, topics: [String]? = nil,
    relatedKeyID: String? = nil, verifies: @escaping Verification
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.environment = environment
    self.topics = topics
    self.relatedKeyID = relatedKeyID
    self.verifies = verifies
  }
}

/// The keys trusted at one moment. Immutable: each change makes a new ring with another `version`, and what connections
/// remember of verified tokens is dropped with it.
public struct KeyRing: Sendable {
  /// The most keys that may be trusted at once.
  public static let limit = 1000

  /// Different for each ring of a server.
  public let version: UInt64
  /// The keys by their id.
  public let keys: [String: TrustedKey]

  /// A ring of these keys; of two with one id the later counts.
  public init(version: UInt64, keys: [TrustedKey]) {
    self.version = version
    self.keys = Dictionary(keys.map { ($0.keyID, $0) }, uniquingKeysWith: { _, later in later })
  }
}
