import MockAPNS
import TLSEngine

/// By what `doctor` pushes.
enum Credential: Sendable {
  /// A provider token, and what it says of itself.
  case token(String, ReadToken)
  /// A provider certificate: its chain's and its key's file, and what it says of itself.
  case certificate(chain: String, key: String, PeerCertificate)

  /// A provider token that was made elsewhere.
  ///
  /// - Throws: `CommandFailure` if it is no JWT.
  init(jwt: String) throws {
    let jwt = jwt.trimmed
    guard let read = ReadToken(jwt) else {
      throw CommandFailure(
        .usage,
        "--token: this is no provider token: it takes a JWT, three parts with dots between them, as apns-mock token provider prints one"
      )
    }
    self = .token(jwt, read)
  }

  /// A fresh provider token by this machine's clock, as a provider would sign it.
  ///
  /// - Parameter now: milliseconds since 1970.
  init(keyAt path: String, keyID: String, teamID: String, now: Int64) throws {
    let token = FreshToken(keyID: keyID, teamID: teamID, issuedAt: now / 1000)
    self = .token(
      try token.signed(withKeyAt: path), ReadToken(keyID: keyID, teamID: teamID, issuedAt: Double(token.issuedAt)))
  }

  /// A provider certificate.
  init(_ files: ProviderCertificateFiles) throws {
    self = .certificate(chain: files.chain, key: files.key, try files.certificate())
  }

  /// The files of the certificate, if it is one.
  var certificateFiles: (chain: String, key: String)? {
    guard case .certificate(let chain, let key, _) = self else { return nil }
    return (chain, key)
  }

  /// The topic it is most likely good for.
  var topic: String {
    guard case .certificate(_, _, let certificate) = self else { return CertificateFolder.topic }
    return certificate.subjectUID ?? certificate.topics.first ?? CertificateFolder.topic
  }
}
