/// Server certificates that a careful client refuses, each for one reason only.
extension CertificateAuthority {
  private static let day: Int64 = 86_400_000

  /// A certificate for `names` that ended a day ago.
  ///
  /// - Parameter now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
  public func issueExpiredServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    try identity(issueServer(names: names, valid: (now - 91 * Self.day)...(now - Self.day)))
  }

  /// A valid certificate for a name that is none of `names`: `wrong.invalid`, or, where the authority may not vouch for
  /// that, `wrong.` before one of them. A client that checks the chain only takes it.
  ///
  /// - Parameters:
  ///   - names: what the server is called.
  ///   - now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if the authority may not vouch for any of these, or OpenSSL cannot make it.
  public func issueMisnamedServer(names: [CertificateName], now: Int64) throws -> ServerIdentity {
    let wrong = (["invalid"] + names.compactMap(Self.domain)).compactMap { CertificateName("wrong." + $0) }
    guard let name = try wrong.first(where: { try !names.contains($0) && certificate.permits($0) }) else {
      throw TLSError("the certificate authority permits no name but the server's own")
    }
    return try identity(issueServer(names: [name], valid: Self.present(now)))
  }

  /// A valid certificate for `names` of an authority that was made for it, is kept nowhere and trusted by nobody.
  ///
  /// - Parameter now: milliseconds since 1970, by the clock of the clients.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
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

  /// A domain that the authority is then likely to permit names below of.
  private static func domain(_ name: CertificateName) -> String? {
    guard case .domain(let name) = name else { return nil }
    return name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
  }
}
