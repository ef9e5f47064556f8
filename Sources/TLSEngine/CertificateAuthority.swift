internal import COpenSSL

/// A private certificate authority: its certificate, its key, and the certificates it issues.
public struct CertificateAuthority: Sendable {
  /// An issued certificate with its private key.
  public struct Issued: Sendable {
    /// The certificate.
    public let certificate: X509Certificate
    /// The certificate's private key.
    public let key: ES256PrivateKey

    /// Creates a pair.
    public init(certificate: X509Certificate, key: ES256PrivateKey) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// The contents of a provider certificate to be issued.
  public struct ProviderRequest: Sendable, Equatable {
    /// The topics it may push to; the first one becomes its `UID`. At least one.
    public var topics: [String]
    /// Whether it is valid for the development environment.
    public var development = true
    /// Whether it is valid for the production environment.
    public var production = true
    /// The team id, ten characters.
    public var teamID: String

    /// Creates a request for both environments.
    public init(topics: [String], teamID: String) {
      self.topics = topics
      self.teamID = teamID
    }
  }

  /// The organization in all issued names, which identifies certificates of apns-mock.
  public static let organization = "apns-mock"

  /// The authority's own certificate.
  public let certificate: X509Certificate
  /// The authority's private key.
  public let key: ES256PrivateKey

  /// Creates an authority from an existing certificate and key.
  ///
  /// - Throws: `TLSError` if the certificate is not a CA certificate, or the key does not match.
  public init(certificate: X509Certificate, key: ES256PrivateKey) throws {
    guard certificate.isAuthority else { throw TLSError("the certificate is not a certificate authority's") }
    guard certificate.matches(key) else { throw TLSError("the key does not belong to the certificate") }
    self.certificate = certificate
    self.key = key
  }

  /// Creates a new authority: P-256, path length 0, with critical name constraints (none if `permitted` is empty).
  ///
  /// - Parameters:
  ///   - commonName: the name shown in lists of authorities; truncated to 64 characters.
  ///   - permitted: the only domains its certificates may contain.
  ///   - valid: the validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  public init(commonName: String, permitted: PermittedNames, valid: ClosedRange<Int64>) throws {
    key = try ES256PrivateKey()
    let draft = try CertificateDraft(
      key: key.publicKey, subject: [(NID_organizationName, Self.organization), (NID_commonName, commonName)],
      valid: valid)
    try draft.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", issuer: nil)
    try draft.add(NID_key_usage, "critical,keyCertSign,cRLSign", issuer: nil)
    if let text = permitted.extensionText { try draft.add(NID_name_constraints, "critical," + text, issuer: nil) }
    try draft.add(NID_subject_key_identifier, "hash", issuer: nil)
    certificate = try draft.signed(by: key, issuer: nil)
  }

  /// Returns the same authority, re-issued without IP addresses in its name constraints. Key, subject, subject key
  /// identifier and dates are unchanged, so that certificates it has issued remain valid and trust stores with the
  /// old certificate still work. Only the serial number is new.
  ///
  /// - Throws: `TLSError` if the certificate is not self-signed, has no name constraints, or OpenSSL fails.
  public func withoutAddressConstraints() throws -> CertificateAuthority {
    guard certificate.isIssued(by: certificate) else { throw TLSError("the certificate authority is not self-signed") }
    let draft = try certificate.draftWithoutAddressConstraints()
    return try CertificateAuthority(certificate: try draft.signed(by: key, issuer: nil), key: key)
  }

  /// Issues a server certificate with a new key.
  ///
  /// - Parameters:
  ///   - names: its host names and addresses; the first is the common name. At least one.
  ///   - valid: the validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  public func issueServer(names: [CertificateName], valid: ClosedRange<Int64>) throws -> Issued {
    let first = names.first.map(\.description) ?? "localhost"
    return try issue(
      subject: [(NID_organizationName, Self.organization), (NID_commonName, first)], purpose: "serverAuth", valid: valid
    ) { draft in
      let text = names.map(\.extensionText).joined(separator: ",")
      try draft.add(NID_subject_alt_name, text, issuer: certificate)
    }
  }

  /// Issues a provider certificate with a new key and the extensions of Apple's (Protocol.md, section 4.1).
  ///
  /// - Parameter valid: the validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  public func issueProvider(_ request: ProviderRequest, valid: ClosedRange<Int64>) throws -> Issued {
    let topic = request.topics.first ?? ""
    let subject = [
      (NID_organizationName, Self.organization), (NID_organizationalUnitName, request.teamID),
      (NID_commonName, "Apple Push Services: " + topic), (NID_userId, topic),
    ]
    return try issue(subject: subject, purpose: "clientAuth", valid: valid) { draft in
      if request.development { try draft.add(identifier: PushExtensions.development, der: PushExtensions.mark) }
      if request.production { try draft.add(identifier: PushExtensions.production, der: PushExtensions.mark) }
      try draft.add(identifier: PushExtensions.topics, der: PushExtensions.encode(topics: request.topics))
    }
  }

  private func issue(
    subject: [(attribute: Int32, text: String)], purpose: String, valid: ClosedRange<Int64>,
    extensions: (CertificateDraft) throws -> Void
  ) throws -> Issued {
    let leafKey = try ES256PrivateKey()
    let draft = try CertificateDraft(key: leafKey.publicKey, subject: subject, valid: valid)
    try draft.add(NID_basic_constraints, "critical,CA:FALSE", issuer: certificate)
    try draft.add(NID_key_usage, "critical,digitalSignature", issuer: certificate)
    try draft.add(NID_ext_key_usage, purpose, issuer: certificate)
    try extensions(draft)
    try draft.add(NID_subject_key_identifier, "hash", issuer: certificate)
    try draft.add(NID_authority_key_identifier, "keyid:always", issuer: certificate)
    return Issued(certificate: try draft.signed(by: key, issuer: certificate), key: leafKey)
  }
}
