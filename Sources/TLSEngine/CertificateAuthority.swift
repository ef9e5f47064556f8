internal import COpenSSL

/// The private certificate authority: its certificate, its key, and what it issues.
public struct CertificateAuthority: Sendable {
  /// A certificate with the key it vouches for.
  public struct Issued: Sendable {
    /// The certificate.
    public let certificate: X509Certificate
    /// Its private key.
    public let key: ES256PrivateKey

    /// A pair from parts.
    public init(certificate: X509Certificate, key: ES256PrivateKey) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// What is asked for in a provider certificate.
  public struct ProviderRequest: Sendable, Equatable {
    /// The topics it may push to; the first one is its `UID`. At least one.
    public var topics: [String]
    /// Usable in the development environment.
    public var development = true
    /// Usable in the production environment.
    public var production = true
    /// The team, ten characters.
    public var teamID: String

    /// A request for both environments.
    public init(topics: [String], teamID: String) {
      self.topics = topics
      self.teamID = teamID
    }
  }

  /// The organization in every name made here, by which a certificate is known as one of ours.
  public static let organization = "apns-mock"

  /// The authority's own certificate.
  public let certificate: X509Certificate
  /// Its private key.
  public let key: ES256PrivateKey

  /// An authority from its parts.
  ///
  /// - Throws: `TLSError` if the certificate may not issue others, or the key is not its own.
  public init(certificate: X509Certificate, key: ES256PrivateKey) throws {
    guard certificate.isAuthority else { throw TLSError("the certificate is not a certificate authority's") }
    guard certificate.matches(key) else { throw TLSError("the key does not belong to the certificate") }
    self.certificate = certificate
    self.key = key
  }

  /// A new authority: P-256, one level deep, with critical name constraints (none if `permitted` is empty).
  ///
  /// - Parameters:
  ///   - commonName: what a person sees in a list of authorities; cut at 64 characters.
  ///   - permitted: the only domains its certificates may contain.
  ///   - valid: first and last moment, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
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

  /// The same authority, re-issued without IP addresses among its name constraints: same key, subject, subject key
  /// identifier and dates, so that what it has issued stays valid and trust stores that hold the old certificate keep
  /// working. Only the serial number is new.
  ///
  /// - Throws: `TLSError` if the certificate is not self-signed, has no name constraints, or OpenSSL cannot make it.
  public func withoutAddressConstraints() throws -> CertificateAuthority {
    guard certificate.isIssued(by: certificate) else { throw TLSError("the certificate authority is not self-signed") }
    let draft = try certificate.draftWithoutAddressConstraints()
    return try CertificateAuthority(certificate: try draft.signed(by: key, issuer: nil), key: key)
  }

  /// A server certificate with a key of its own.
  ///
  /// - Parameters:
  ///   - names: the host names and addresses it bears; the first is its common name. At least one.
  ///   - valid: first and last moment, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
  public func issueServer(names: [CertificateName], valid: ClosedRange<Int64>) throws -> Issued {
    let first = names.first.map(\.description) ?? "localhost"
    return try issue(
      subject: [(NID_organizationName, Self.organization), (NID_commonName, first)], purpose: "serverAuth", valid: valid
    ) { draft in
      let text = names.map(\.extensionText).joined(separator: ",")
      try draft.add(NID_subject_alt_name, text, issuer: certificate)
    }
  }

  /// A provider certificate with a key of its own, shaped as Apple's (APNS.md section 4.1).
  ///
  /// - Parameter valid: first and last moment, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
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
