internal import CAPNSMockOpenSSL

/// A private certificate authority: its certificate, its key, and the certificates it issues.
package struct CertificateAuthority: Sendable {
  /// An issued certificate with its private key.
  package struct Issued: Sendable {
    /// The certificate.
    package let certificate: X509Certificate
    /// The certificate's private key.
    package let key: ES256PrivateKey

    /// Creates a pair.
    package init(certificate: X509Certificate, key: ES256PrivateKey) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// The contents of a provider certificate to be issued.
  package struct ProviderRequest: Sendable, Equatable {
    /// The topics it may push to; the first one becomes its `UID`. At least one.
    package var topics: [String]
    /// Whether it is valid for the development environment.
    package var development = true
    /// Whether it is valid for the production environment.
    package var production = true
    /// The team id, ten characters.
    package var teamID: String

    /// Creates a request for both environments.
    package init(topics: [String], teamID: String) {
      self.topics = topics
      self.teamID = teamID
    }
  }

  /// The organization in all issued names, which identifies certificates of apns-mock.
  package static let organization = "apns-mock"

  /// The authority's own certificate.
  package let certificate: X509Certificate
  /// The authority's private key.
  package let key: ES256PrivateKey

  /// Creates an authority from an existing certificate and key.
  ///
  /// - Throws: `TLSError` if the certificate is not a CA certificate, or the key does not match.
  package init(certificate: X509Certificate, key: ES256PrivateKey) throws {
    guard certificate.isAuthority else { throw TLSError("the certificate is not a certificate authority's") }
    guard certificate.matches(key) else { throw TLSError("the key does not belong to the certificate") }
    self.certificate = certificate
    self.key = key
  }

  /// Creates a new authority: P-256, path length 0, with critical name constraints (none if `permitted` is empty).
  ///
  /// - Parameters:
  ///   - commonName: The name shown in lists of authorities; truncated to 64 characters.
  ///   - permitted: The only domains its certificates may contain.
  ///   - valid: The validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  package init(commonName: String, permitted: NameConstraints, valid: ClosedRange<Int64>) throws {
    key = try ES256PrivateKey()
    let builder = try CertificateBuilder(
      key: key.publicKey, subject: [(NID_organizationName, Self.organization), (NID_commonName, commonName)],
      valid: valid)
    try builder.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", issuer: nil)
    try builder.add(NID_key_usage, "critical,keyCertSign,cRLSign", issuer: nil)
    if let text = permitted.extensionText { try builder.add(NID_name_constraints, "critical," + text, issuer: nil) }
    try builder.add(NID_subject_key_identifier, "hash", issuer: nil)
    certificate = try builder.signed(by: key, issuer: nil)
  }

  /// Returns the same authority, re-issued without IP addresses in its name constraints. Key, subject, subject key
  /// identifier and dates are unchanged, so that certificates it has issued remain valid and trust stores with the
  /// old certificate still work. Only the serial number is new.
  ///
  /// - Throws: `TLSError` if the certificate is not self-signed, has no name constraints, or OpenSSL fails.
  package func withoutAddressConstraints() throws -> CertificateAuthority {
    guard certificate.isIssued(by: certificate) else { throw TLSError("the certificate authority is not self-signed") }
    let builder = try certificate.builderWithoutAddressConstraints()
    return try CertificateAuthority(certificate: try builder.signed(by: key, issuer: nil), key: key)
  }

  /// Issues a server certificate with a new key.
  ///
  /// - Parameters:
  ///   - names: Its host names and addresses; the first is the common name. At least one.
  ///   - valid: The validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  package func issueServer(names: [CertificateName], valid: ClosedRange<Int64>) throws -> Issued {
    let first = names.first.map(\.description) ?? "localhost"
    return try issue(
      subject: [(NID_organizationName, Self.organization), (NID_commonName, first)], purpose: "serverAuth", valid: valid
    ) { builder in
      let text = names.map(\.extensionText).joined(separator: ",")
      try builder.add(NID_subject_alt_name, text, issuer: certificate)
    }
  }

  /// Issues a provider certificate with a new key and the extensions of Apple's (Protocol.md, section 4.1).
  ///
  /// - Parameter valid: The validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  package func issueProvider(_ request: ProviderRequest, valid: ClosedRange<Int64>) throws -> Issued {
    let topic = request.topics.first ?? ""
    let subject = [
      (NID_organizationName, Self.organization), (NID_organizationalUnitName, request.teamID),
      (NID_commonName, "Apple Push Services: " + topic), (NID_userId, topic),
    ]
    return try issue(subject: subject, purpose: "clientAuth", valid: valid) { builder in
      if request.development { try builder.add(identifier: PushExtensions.development, der: PushExtensions.null) }
      if request.production { try builder.add(identifier: PushExtensions.production, der: PushExtensions.null) }
      try builder.add(identifier: PushExtensions.topics, der: PushExtensions.encode(topics: request.topics))
    }
  }

  private func issue(
    subject: [(attribute: Int32, text: String)], purpose: String, valid: ClosedRange<Int64>,
    extensions: (CertificateBuilder) throws -> Void
  ) throws -> Issued {
    let leafKey = try ES256PrivateKey()
    let builder = try CertificateBuilder(key: leafKey.publicKey, subject: subject, valid: valid)
    try builder.add(NID_basic_constraints, "critical,CA:FALSE", issuer: certificate)
    try builder.add(NID_key_usage, "critical,digitalSignature", issuer: certificate)
    try builder.add(NID_ext_key_usage, purpose, issuer: certificate)
    try extensions(builder)
    try builder.add(NID_subject_key_identifier, "hash", issuer: certificate)
    try builder.add(NID_authority_key_identifier, "keyid:always", issuer: certificate)
    return Issued(certificate: try builder.signed(by: key, issuer: certificate), key: leafKey)
  }
}

/// Server certificates that a client must reject, each for exactly one reason.
extension CertificateAuthority {
  private static let day: Int64 = 86_400_000

  /// Issues a certificate for `names` that expired a day ago.
  ///
  /// - Parameter now: Milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL fails.
  package func issueExpiredServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    try identity(issueServer(names: names, valid: (now - 91 * Self.day)...(now - Self.day)))
  }

  /// Issues a valid certificate for a name not in `names`: `wrong.invalid`, or, if the authority's name constraints
  /// exclude that, one of `names` with the prefix `wrong.`. A client that checks only the chain accepts it.
  ///
  /// - Parameters:
  ///   - names: The server's names.
  ///   - now: Milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if the authority permits none of these names, or OpenSSL fails.
  package func issueMisnamedServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    let wrong = (["invalid"] + names.compactMap(Self.domain)).compactMap { CertificateName("wrong." + $0) }
    guard let name = try wrong.first(where: { try !names.contains($0) && certificate.permits($0) }) else {
      throw TLSError("the certificate authority permits no name but the server's own")
    }
    return try identity(issueServer(names: [name], valid: Self.validity(at: now)))
  }

  /// Issues a valid certificate for `names` from a temporary authority that no client trusts.
  ///
  /// - Parameter now: Milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL fails.
  package static func issueUntrustedServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    var permitted = NameConstraints()
    for name in names { permitted.add(name) }
    let untrusted = try CertificateAuthority(
      commonName: "apns-mock untrusted CA", permitted: permitted, valid: validity(at: now))
    return try untrusted.identity(untrusted.issueServer(names: names, valid: validity(at: now)))
  }

  private func identity(_ issued: Issued) -> ServerIdentity {
    ServerIdentity(chain: [issued.certificate, certificate], key: issued.key)
  }

  private static func validity(at now: Int64) -> ClosedRange<Int64> { (now - day)...(now + 397 * day) }

  /// A domain whose subdomains the authority is likely to permit.
  private static func domain(_ name: CertificateName) -> String? {
    guard case .domain(let name) = name else { return nil }
    return name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
  }
}

/// The first reason OpenSSL found not to trust a peer's certificate (RFC 5280 section 6).
package struct CertificateFault: Sendable, Equatable {
  /// The kinds of fault, by the required remedy.
  package enum Kind: Sendable {
    /// No trusted authority issued it.
    case unknownAuthority
    /// The certificate or one of its issuers has expired.
    case expired
    /// The certificate or one of its issuers is not valid yet.
    case notYetValid
    /// The name constraints of its authority exclude one of its names.
    case nameOutsideAuthority
    /// It has other names than the server that was connected to.
    case otherName
    /// Any other fault.
    case other
  }

  /// The kind of fault.
  package let kind: Kind
  /// OpenSSL's description.
  package let text: String

  /// Creates a fault.
  ///
  /// - Parameter code: One of OpenSSL's `X509_V_ERR_…` codes.
  init(code: Int32) {
    switch code {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_CERT_UNTRUSTED,
      X509_V_ERR_AKID_SKID_MISMATCH, X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH, X509_V_ERR_SUBJECT_ISSUER_MISMATCH:
      kind = .unknownAuthority
    case X509_V_ERR_CERT_HAS_EXPIRED: kind = .expired
    case X509_V_ERR_CERT_NOT_YET_VALID: kind = .notYetValid
    case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION: kind = .nameOutsideAuthority
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: kind = .otherName
    default: kind = .other
    }
    text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
  }
}
