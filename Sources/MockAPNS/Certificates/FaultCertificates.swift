import APNSMockFaultModel
import NIOConcurrencyHelpers
import APNSMockTLSEngine

/// Invalid server certificates for faults of the TLS handshake, created on first use and kept in memory only.
final class FaultCertificates: Sendable {
  private let folder: CertificateFolder
  private let extraNames: [String]
  private let contexts = NIOLockedValueBox<[Action.CertificateDefect: TLSContext]>([:])

  /// - Parameter extraNames: The server's names in addition to the usual ones.
  init(folder: CertificateFolder, extraNames: [String]) {
    self.folder = folder
    self.extraNames = extraNames
  }

  /// Returns a TLS context with a certificate that is invalid in this way.
  ///
  /// - Throws: `CertificateFolderError` or `TLSError`, also if the folder contains no CA key.
  func context(for kind: Action.CertificateDefect) throws -> TLSContext {
    try contexts.withLockedValue { contexts in
      if let known = contexts[kind] { return known }
      let context = try TLSContext(server: try folder.faultIdentity(kind, extraNames: extraNames))
      contexts[kind] = context
      return context
    }
  }
}

extension CertificateFolder {
  fileprivate func faultIdentity(_ kind: Action.CertificateDefect, extraNames: [String]) throws -> ServerIdentity {
    let now = Self.currentTime
    var setup = CertificateFolderSetup(
      path: path, now: now, names: try ServerNames(extra: extraNames, host: Self.currentHostName))
    let names = setup.names.demanded
    if kind == .untrusted { return try CertificateAuthority.issueUntrustedServer(names: names, now: now) }
    let authority = try setup.authority(new: false)
    let issuer = try setup.issuer(authority, for: setup.file("server.pem"), "a fault shows another certificate")
    return try kind == .expired
      ? issuer.issueExpiredServer(names: names, now: now) : issuer.issueMisnamedServer(names: names, now: now)
  }
}
