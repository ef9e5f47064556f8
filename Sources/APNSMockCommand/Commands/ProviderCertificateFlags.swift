import ArgumentParser

/// The flags for pushing by a provider certificate.
struct ProviderCertificateFlags: ParsableArguments {
  @Option(name: .long, help: "Push with this provider certificate (PEM) instead of a provider token.")
  var cert: String?

  @Option(name: .long, help: "The certificate's private key. (default: beside it, as apns-mock certs names it)")
  var certKey: String?

  func validate() throws {
    guard cert != nil || certKey == nil else { throw ValidationError("--cert-key goes with --cert") }
  }

  /// The certificate's files; nil if none was given.
  ///
  /// - Throws: `CommandFailure` if no key lies beside it.
  func files() throws -> ProviderCertificateFiles? {
    try cert.map { try ProviderCertificateFiles(chain: $0, key: certKey) }
  }
}
