import MockAPNS
import TLSEngine

/// The credential with which `doctor` pushes.
enum Credential: Sendable {
  /// A provider token and its decoded claims.
  case token(String, ReadToken)
  /// A provider certificate: the paths of its chain and key, and its decoded content.
  case certificate(chain: String, key: String, PeerCertificate)

  /// Creates a credential from an existing provider token.
  ///
  /// - Throws: `CommandFailure` if it is not a JWT.
  init(jwt: String) throws {
    let jwt = jwt.trimmed
    guard let read = ReadToken(jwt) else {
      throw CommandFailure(
        .usage,
        "--token must be a JWT (three parts separated by dots), as printed by apns-mock token provider"
      )
    }
    self = .token(jwt, read)
  }

  /// Creates a credential with a new provider token, issued by this machine's clock.
  ///
  /// - Parameter now: Milliseconds since 1970.
  init(keyAt path: String, keyID: String, teamID: String, now: Int64) throws {
    let token = FreshToken(keyID: keyID, teamID: teamID, issuedAt: now / 1000)
    self = .token(
      try token.signed(withKeyAt: path), ReadToken(keyID: keyID, teamID: teamID, issuedAt: Double(token.issuedAt)))
  }

  /// Creates a credential from a provider certificate.
  init(_ files: ProviderCertificateFiles) throws {
    self = .certificate(chain: files.chain, key: files.key, try files.certificate())
  }

  /// The certificate's paths; nil for a token.
  var certificateFiles: (chain: String, key: String)? {
    guard case .certificate(let chain, let key, _) = self else { return nil }
    return (chain, key)
  }

  /// The default topic of the credential.
  var topic: String {
    guard case .certificate(_, _, let certificate) = self else { return CertificateFolder.topic }
    return certificate.subjectUID ?? certificate.topics.first ?? CertificateFolder.topic
  }
}
