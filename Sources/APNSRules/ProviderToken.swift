/// What is known of one provider token. Made at most once for each distinct JWT of a connection and shared by all its records;
/// it holds neither the JWT nor its signature.
public final class ProviderToken: Sendable {
  /// What became of the signature.
  public enum Signature: String, Sendable {
    /// It verifies with the key named by `kid`.
    case valid
    /// It does not.
    case invalid
    /// Something before it was wrong, so it was not looked at.
    case unchecked
  }

  /// `kid`, cut to 64 characters; `nil` if there is none.
  public let keyID: String?
  /// `iss`, cut to 64 characters; `nil` if there is none.
  public let teamID: String?
  /// `iat` in milliseconds since 1970; `nil` if it is absent or no time.
  public let issuedAt: Int64?
  /// `alg`, cut to 64 characters; `nil` if there is none.
  public let algorithm: String?
  /// What became of the signature.
  public let signature: Signature
  /// The same for the same JWT, on whichever connection it came, and as good as never for another; it holds while the
  /// program runs and tells nothing of the JWT.
  public let identity: Int
  /// Why it is an `InvalidProviderToken` whatever the time and the connection, in words for people; `nil` if it is not.
  public let problem: String?

  /// The key that verified it.
  let key: TrustedKey?
  /// What its pushes are rejected for if there is none, whatever the time and the connection. All of them share it.
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

  /// What a record tells of a token that was looked at elsewhere. Two that say the same are taken for one.
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

  /// Key and team ids have ten characters; what a hostile token puts there must not fill records.
  private static func cut(_ text: String) -> String { String(text.prefix(64)) }
}
