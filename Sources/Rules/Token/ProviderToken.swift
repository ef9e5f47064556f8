package import APNSMockNotation

/// The parsed properties and the verification result of a provider token. Created at most once for each distinct
/// JWT of a connection and shared by its records. Contains neither the JWT nor its signature.
package final class ProviderToken: Sendable {
  /// The result of the signature check.
  package enum Signature: String, Sendable {
    /// The signature verifies with the key named by `kid`.
    case valid
    /// The signature does not verify.
    case invalid
    /// The signature was not checked, because an earlier check failed.
    case unchecked
    /// The signature cannot be checked: the key is not known, and only upstream can tell whether it is valid.
    case unknown
  }

  /// `kid`, truncated to 64 characters; nil if absent.
  package let keyID: String?
  /// `iss`, truncated to 64 characters; nil if absent.
  package let teamID: String?
  /// `iat` in milliseconds since 1970; nil if absent or not a time.
  package let issuedAt: ServerTime?
  /// `alg`, truncated to 64 characters; nil if absent.
  package let algorithm: String?
  /// The result of the signature check.
  package let signature: Signature
  /// A hash of the JWT: equal for the same JWT on any connection, in any process and after it was read from a store, and
  /// different for others with high probability. A provider token cannot be made from it.
  package let identity: UInt64
  /// Why the token causes `InvalidProviderToken` regardless of time and connection, for people; nil if it does not.
  package let problem: String?

  /// The key that verified the signature.
  let key: TrustedKey?
  /// The rejection of pushes with this token if `key` is nil. Shared by all of them.
  let invalidity: Rejection

  init(
    _ jwt: JSONWebToken?, identity: UInt64, issuedAt: ServerTime? = nil, signature: Signature = .unchecked,
    problem: String? = nil, key: TrustedKey? = nil
  ) {
    self.identity = identity
    keyID = jwt?.header.keyID.map(Self.truncated)
    teamID = jwt?.claims.issuer.map(Self.truncated)
    algorithm = jwt?.header.algorithm.map(Self.truncated)
    self.issuedAt = issuedAt
    self.signature = signature
    self.problem = problem
    self.key = key
    invalidity = Self.invalidity(problem)
  }

  /// Creates a token from a record that was written or exported.
  ///
  /// - Parameter identity: The hash of its JWT; nil if it is unknown. Then tokens with equal properties are considered the
  ///   same.
  package init(
    keyID: String?, teamID: String?, issuedAt: ServerTime?, signature: Signature, identity: UInt64? = nil
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
    self.signature = signature
    algorithm = nil
    problem = nil
    key = nil
    invalidity = Self.invalidity(nil)
    self.identity =
      identity
      ?? {
        var hasher = Hasher()
        for text in [keyID, teamID] { hasher.combine(text) }
        hasher.combine(issuedAt)
        return UInt64(bitPattern: Int64(hasher.finalize()))
      }()
  }

  private static func invalidity(_ problem: String?) -> Rejection {
    Rejection(.providerToken, .invalidProviderToken) { _, _ in problem ?? "the provider token is not valid" }
  }

  /// Key and team ids have ten characters; longer values of a hostile token must not fill the records.
  private static func truncated(_ text: String) -> String { String(text.prefix(64)) }
}

/// The accepted signature algorithms of provider tokens.
package enum SigningAlgorithm: String, Sendable {
  /// ECDSA over P-256 with SHA-256, the documented algorithm (Protocol.md, section 3.1).
  case es256 = "ES256"
  /// The same key with SHA-512, and r and s padded to 66 bytes each, as signed by the PHP library pushok
  /// (Protocol.md, section 3.1). Accepted in `apple` and `lenient`, rejected in `strict`.
  case es512 = "ES512"
}

/// A trusted provider key: its public half and its properties in Apple's developer portal (Protocol.md, section
/// 3.3).
package struct TrustedKey: Sendable {
  /// The key id, which is the `kid` of provider tokens; ten characters at Apple.
  package var keyID: String
  /// The team id, which is the `iss` of provider tokens; ten characters at Apple.
  package var teamID: String
  /// The only environment the key is valid for; nil for both.
  package var environment: PushEnvironment?
  /// The maximum number of topics of a topic-specific key (Protocol.md, section 3.3, documented).
  package static let topicsLimit = 400

  /// The topics of a topic-specific key; nil for a team key, which is valid for all topics.
  package var topics: [String]?
  /// The topics of the team that a team key makes known, in addition to those of known apps. They do not restrict the
  /// key.
  package var teamTopics: [String]?
  /// The key that a topic-specific key may share a connection with.
  package var relatedKeyID: String?
  /// The public key in PEM, to store it; nil if it is not known.
  package var publicKeyPEM: String?
  /// Verifies a signature (raw r‖s or DER) of a message with this key. Called at most once per distinct provider
  /// token and connection, on any thread.
  package var verifies: Verification

  /// Verifies a signature of a message; see `verifies`.
  package typealias Verification =
    @Sendable (_ algorithm: SigningAlgorithm, _ message: UnsafeRawBufferPointer, _ signature: UnsafeRawBufferPointer)
    -> Bool

  /// Creates a key.
  package init(
    keyID: String, teamID: String, environment: PushEnvironment? = nil, topics: [String]? = nil,
    teamTopics: [String]? = nil, relatedKeyID: String? = nil, verifies: @escaping Verification
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.environment = environment
    self.topics = topics
    self.teamTopics = teamTopics
    self.relatedKeyID = relatedKeyID
    self.verifies = verifies
  }
}

/// An immutable set of trusted keys. Each change creates a new set with another `version`, which invalidates the
/// verification results that connections have cached.
package struct TrustedKeySet: Sendable {
  /// The maximum number of trusted keys.
  package static let limit = 1000

  /// A number that is unique among the sets of a server.
  package let version: UInt64
  /// The keys by key id.
  package let keys: [String: TrustedKey]
  /// The bundle ids of the keys' team topics, by team.
  private let bundleIDs: [String: Set<String>]

  /// Creates a set; of keys with equal ids the last one counts.
  package init(version: UInt64, keys: [TrustedKey]) {
    self.version = version
    self.keys = Dictionary(keys.map { ($0.keyID, $0) }, uniquingKeysWith: { _, later in later })
    var bundleIDs: [String: Set<String>] = [:]
    for key in self.keys.values {
      for topic in key.teamTopics ?? [] { bundleIDs[key.teamID, default: []].insert(PushType.bundleID(of: topic)) }
    }
    self.bundleIDs = bundleIDs
  }

  /// Returns up to `limit` bundle ids and topics of the keys of a team.
  ///
  /// - Parameter team: The team of the keys; nil for any.
  package func knownTopics(of team: String?, limit: Int) -> [String] {
    var topics: [String] = []
    for (owner, names) in bundleIDs where team == nil || owner == team {
      topics += names.prefix(limit - topics.count)
    }
    for key in keys.values where team == nil || key.teamID == team {
      topics += (key.topics ?? []).prefix(limit - topics.count)
    }
    return topics
  }

  /// Returns whether an app is known by the team topics of a key.
  ///
  /// - Parameter team: The team of the key; nil for any.
  func knows(_ bundleID: String, asAppOf team: String?) -> Bool {
    guard let team else { return bundleIDs.values.contains { $0.contains(bundleID) } }
    return bundleIDs[team]?.contains(bundleID) ?? false
  }
}
