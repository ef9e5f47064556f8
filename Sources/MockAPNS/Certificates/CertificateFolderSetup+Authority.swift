internal import TLSEngine

extension CertificateFolderSetup {
  private static let authorityLife = 3652 * day

  /// Loads `ca.pem` and `ca-key.pem`, or creates them if neither exists.
  mutating func authority(new: Bool) throws -> Authority {
    let certificateFile = file("ca.pem")
    let keyFile = file("ca-key.pem")
    if new || !certificateFile.exists && !keyFile.exists {
      return try makeAuthority(LeafFiles(certificate: certificateFile, key: keyFile))
    }
    let repair = "restore the right file, or create a new CA: \(newAuthorityCommand)"
    guard certificateFile.exists else {
      throw CertificateFolderError(
        place: certificateFile.path, problem: "is missing, but its key \(keyFile.name) is there", repair: repair)
    }
    let certificate = try certificates(certificateFile, repair: repair)[0]
    guard certificate.isAuthority else {
      throw CertificateFolderError(
        place: certificateFile.path, problem: "is not a certificate authority's certificate", repair: repair)
    }
    guard certificate.notAfter > now else {
      throw CertificateFolderError(
        place: certificateFile.path, problem: "the certificate authority has expired",
        repair: "make a new one: \(newAuthorityCommand)")
    }
    if certificate.notAfter - now < Self.renewal {
      notices.append("\(certificateFile.path) ends within 30 days; make a new one: \(newAuthorityCommand)")
    }
    guard keyFile.exists else {
      if certificate.constrainsAddresses {
        notices.append(
          "\(certificateFile.path) \(Self.refusal); it cannot be re-issued without \(keyFile.name): "
            + "restore that file and restart, or create a new CA: \(newAuthorityCommand)")
      }
      return Authority(certificate: certificate, key: nil)
    }
    let key = try privateKey(keyFile, repair: repair)
    guard certificate.matches(key) else {
      throw CertificateFolderError(
        place: keyFile.path, problem: "the key does not belong to \(certificateFile.name)", repair: repair)
    }
    guard certificate.constrainsAddresses else { return Authority(certificate: certificate, key: key) }
    return try reissue(Authority(certificate: certificate, key: key), key, in: certificateFile)
  }

  /// The reason for which a CA certificate from an earlier version must be replaced.
  private static let refusal =
    "has IP addresses among its name constraints, so clients built on BoringSSL (NIOSSL, curl_cffi, Chrome) refuse it"

  /// Re-issues a CA certificate whose name constraints contain IP addresses. If that is impossible, keeps the old
  /// one and adds a notice: clients on other TLS libraries accept it.
  private mutating func reissue(
    _ authority: Authority, _ key: ES256PrivateKey, in file: WholeFile
  ) throws -> Authority {
    guard authority.certificate.isIssued(by: authority.certificate) else {
      notices.append(
        "\(file.path) \(Self.refusal); it is not self-signed and cannot be re-issued here: "
          + "make a new authority: \(newAuthorityCommand)")
      return authority
    }
    let renewed = try making(file) {
      try CertificateAuthority(certificate: authority.certificate, key: key).withoutAddressConstraints().certificate
    }
    guard try replacing(file, as: Self.refusal, { try $0.save([renewed], in: file) }) else { return authority }
    notices.append(
      "re-issued the certificate authority with the same key and subject, as the old one had IP addresses among its name "
        + "constraints, which BoringSSL refuses; trust the new file in clients built on BoringSSL (NIOSSL, curl_cffi, "
        + "Chrome), the others may keep the old one: \(file.path)")
    return Authority(certificate: renewed, key: key)
  }

  private mutating func makeAuthority(_ files: LeafFiles) throws -> Authority {
    let host = names.host.map { " of \($0)" } ?? ""
    let authority = try making(files.certificate) {
      try CertificateAuthority(
        commonName: "apns-mock CA" + host, permitted: names.permitted, valid: life(Self.authorityLife))
    }
    let key = try making(files.key) { try authority.key.pem }
    try files.key.replace(with: Array(key.utf8), isPrivate: true)
    try files.certificate.replace(with: Array(try pem(of: authority.certificate).utf8), isPrivate: false)
    notices.append("created a CA, which clients must trust: \(files.certificate.path)")
    return Authority(certificate: authority.certificate, key: authority.key)
  }

  /// Returns the CA certificate in PEM.
  func pem(of authority: X509Certificate) throws -> String {
    try making(file("ca.pem")) { try authority.pem }
  }
}
