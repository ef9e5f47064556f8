import ArgumentParser

/// The options for pushing with a provider certificate.
struct ProviderCertificateFlags: ParsableArguments {
  @Option(name: .long, help: "The provider certificate (PEM) to use instead of a provider token.")
  var cert: String?

  @Option(
    name: .long,
    help: "The certificate's private key. (default: in the same folder, with the name used by apns-mock certs)")
  var certKey: String?

  func validate() throws {
    guard cert != nil || certKey == nil else { throw ValidationError("--cert-key requires --cert") }
  }

  /// Returns the certificate's files; nil if no certificate was specified.
  ///
  /// - Throws: `CommandFailure` if the key is not found.
  func files() throws -> ProviderCertificateFiles? {
    try cert.map { try ProviderCertificateFiles(chain: $0, key: certKey) }
  }
}
