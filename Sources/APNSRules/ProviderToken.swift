/// The parsed properties and the verification result of a provider token. Created at most once for each distinct
/// JWT of a connection and shared by its records. Contains neither the JWT nor its signature.
public final class ProviderToken: Sendable {
  /// The result of the signature check.
  public enum Signature: String, Sendable {
    /// The signature verifies with the key named by `kid`.
    case valid
    /// The signature does not verify.
    case invalid
    /// The signature was not checked, because an earlier check failed.
    case unchecked
  }

  /// `kid`, truncated to 64 characters; nil if absent.
  public let keyID: String?
  /// `iss`, truncated to 64 characters; nil if absent.
  public let teamID: String?
  /// `iat` in milliseconds since 1970; nil if absent or not a time.
  public let issuedAt: Int64?
  /// `alg`, truncated to 64 characters; nil if absent.
  public let algorithm: String?
  /// The result of the signature check.
  public let signature: Signature
  /// A hash of the JWT: equal for the same JWT on any connection, and different for others with high probability.
  /// Valid only within this process, and reveals nothing about the JWT.
  public let identity: Int
  /// Why the token causes `InvalidProviderToken` regardless of time and connection, for people; nil if it does not.
  public let problem: String?

  /// The key that verified the signature.
  let key: TrustedKey?
  /// The rejection of pushes with this token if `key` is nil. Shared by all of them.
  let invalidity: Rejection

  init(
    _ jwt: JSONWebToken?, identity: Int, issuedAt: Int64? = nil, signature: Signature = .unchecked,
    problem: String? = nil, key: TrustedKey? = nil
  ) {
    self.identity = identity
    keyID = jwt?.header.keyID.map(Self.cut)
    teamID = jwt?.claims.issuer.map(Self.cut)
    algorithm = jwt?.header.algorithm.map(Self.cut)
    self.issuedAt = issuedAt
    self.signature = signature
    self.problem = problem
    self.key = key
    invalidity = Self.invalidity(problem)
  }

  /// Creates a token from an imported record. Tokens with equal properties are considered the same.
  package init(keyID: String?, teamID: String?, issuedAt: Int64?, signature: Signature) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
    self.signature = signature
    algorithm = nil
    problem = nil
    key = nil
    invalidity = Self.invalidity(nil)
    var hasher = Hasher()
    for text in [keyID, teamID] { hasher.combine(text) }
    hasher.combine(issuedAt)
    identity = hasher.finalize()
  }

  private static func invalidity(_ problem: String?) -> Rejection {
    Rejection(.providerToken, .invalidProviderToken) { _, _ in problem ?? "the provider token is not valid" }
  }

  /// Key and team ids have ten characters; longer values of a hostile token must not fill the records.
  private static func cut(_ text: String) -> String { String(text.prefix(64)) }
}
