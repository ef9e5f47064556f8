internal import TLSEngine

extension CertificateFolderSetup {
  /// Validates `server.pem` and `server-key.pem`, or creates them.
  mutating func server(_ authority: Authority, renew: Bool) throws {
    let files = LeafFiles(certificate: file("server.pem"), key: file("server-key.pem"))
    let present = try leaf(files, authority, renew: renew)
    let borne = Set(present.certificate?.names ?? [])
    var wanted = names.demanded
    if let host = names.host, !wanted.contains(host) {
      // Host names change unexpectedly, so the host name is included only if the CA's name constraints allow it.
      if try borne.contains(host) || permits(host, authority) {
        wanted.append(host)
      } else {
        notices.append(
          "the server certificate does not contain this machine's name, \(host), which \(path)/ca.pem does not allow; "
            + "if a client needs it: \(newAuthorityCommand)")
      }
    }
    let missing = wanted.filter { !borne.contains($0) }
    let lacks = missing.isEmpty ? nil : "the old one lacked " + missing.map(\.description).joined(separator: ", ")
    guard let reason = present.flaw ?? lacks else {
      return try repairChain(present, authority, in: files.certificate)
    }
    for name in missing where try !permits(name, authority) {
      throw CertificateFolderError(
        place: names.extra.contains(name) ? "--san" : files.certificate.path,
        problem: "the name \(name) is not allowed by \(path)/ca.pem",
        repair: "create a new CA: \(newAuthorityCommand)")
    }
    let issuer = try issuer(authority, for: files.certificate, reason)
    let issued = try making(files.certificate) {
      try issuer.issueServer(names: wanted, valid: life(Self.leafLife))
    }
    try save(issued.key, [issued.certificate, authority.certificate], in: files)
    notices.append("created a server certificate because \(reason): \(files.certificate.path)")
  }

  /// Replaces the old CA certificate in the server's chain by the re-issued one.
  private mutating func repairChain(_ present: Leaf, _ authority: Authority, in file: WholeFile) throws {
    guard let certificate = present.certificate, present.others.contains(where: \.constrainsAddresses),
      !authority.certificate.constrainsAddresses
    else { return }
    try save([certificate, authority.certificate], in: file)
    notices.append("replaced the certificate authority in \(file.path); the server certificate is the same")
  }

  private func permits(_ name: CertificateName, _ authority: Authority) throws -> Bool {
    try making(file("server.pem")) { try authority.certificate.permits(name) }
  }
}
