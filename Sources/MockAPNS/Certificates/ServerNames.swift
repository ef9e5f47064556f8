internal import TLSEngine

/// The names of the server certificate, and what the certificate authority is limited to.
struct ServerNames {
  /// The domains a new authority is limited to, with the machine's own name and the added names (CONTRACT.md, `ca.pem`).
  /// Addresses are not limited.
  static let domains = ["localhost", "push.apple.com", "apns-mock", "internal", "test", "local"]

  /// The usual names (CONTRACT.md, `server.pem`; Apple's hosts from APNS.md section 1.1).
  static let usual = [
    "localhost", "127.0.0.1", "::1", "apns-mock", "host.docker.internal",
    "api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com",
    "api-broadcast.push.apple.com", "api-broadcast.sandbox.push.apple.com",
    "api-manage-broadcast.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com",
  ]

  /// Names that were asked for with `--san`.
  let extra: [CertificateName]
  /// The machine's name, unless it is none that a certificate can bear.
  let host: CertificateName?

  /// - Throws: `CertificateFolderError` if one of `extra` is neither a host name nor an IP address.
  init(extra: [String], host: String?) throws {
    self.extra = try extra.map { text in
      guard let name = CertificateName(text) else {
        throw CertificateFolderError(
          place: "--san", problem: "'\(text)' is neither a host name nor an IP address",
          repair: "write it without scheme, port and path, such as apns.example.test or 192.168.1.20")
      }
      return name
    }
    self.host = host.flatMap { CertificateName($0) }
  }

  /// The usual names and the added ones, each once; without the machine's name.
  var demanded: [CertificateName] {
    var seen: Set<CertificateName> = []
    return (Self.usual.compactMap { CertificateName($0) } + extra).filter { seen.insert($0).inserted }
  }

  /// What a new authority is limited to.
  var permitted: PermittedNames {
    var permitted = PermittedNames()
    for name in Self.domains.compactMap({ CertificateName($0) }) { permitted.add(name) }
    if let host { permitted.add(host) }
    for name in extra { permitted.add(name) }
    return permitted
  }
}
