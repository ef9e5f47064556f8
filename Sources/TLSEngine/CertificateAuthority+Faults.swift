/// Server certificates that a client must reject, each for exactly one reason.
extension CertificateAuthority {
  private static let day: Int64 = 86_400_000

  /// Issues a certificate for `names` that expired a day ago.
  ///
  /// - Parameter now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL fails.
  public func issueExpiredServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    try identity(issueServer(names: names, valid: (now - 91 * Self.day)...(now - Self.day)))
  }

  /// Issues a valid certificate for a name not in `names`: `wrong.invalid`, or, if the authority's name constraints
  /// exclude that, one of `names` with the prefix `wrong.`. A client that checks only the chain accepts it.
  ///
  /// - Parameters:
  ///   - names: the server's names.
  ///   - now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if the authority permits none of these names, or OpenSSL fails.
  public func issueMisnamedServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    let wrong = (["invalid"] + names.compactMap(Self.domain)).compactMap { CertificateName("wrong." + $0) }
    guard let name = try wrong.first(where: { try !names.contains($0) && certificate.permits($0) }) else {
      throw TLSError("the certificate authority permits no name but the server's own")
    }
    return try identity(issueServer(names: [name], valid: Self.present(now)))
  }

  /// Issues a valid certificate for `names` from a temporary authority that no client trusts.
  ///
  /// - Parameter now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL fails.
  public static func issueUntrustedServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    var permitted = PermittedNames()
    for name in names { permitted.add(name) }
    let stranger = try CertificateAuthority(
      commonName: "apns-mock untrusted CA", permitted: permitted, valid: present(now))
    return try stranger.identity(stranger.issueServer(names: names, valid: present(now)))
  }

  private func identity(_ issued: Issued) -> ServerIdentity {
    ServerIdentity(chain: [issued.certificate, certificate], key: issued.key)
  }

  private static func present(_ now: Int64) -> ClosedRange<Int64> { (now - day)...(now + 397 * day) }

  /// A domain whose subdomains the authority is likely to permit.
  private static func domain(_ name: CertificateName) -> String? {
    guard case .domain(let name) = name else { return nil }
    return name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
  }
}
