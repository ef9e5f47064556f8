import TLSEngine

/// The PEM files of a provider certificate and its private key.
struct ProviderCertificateFiles: Sendable {
  let chain: String
  let key: String

  /// Locates the files.
  ///
  /// - Parameter key: The key's path; nil searches the certificate's folder: `client-key.pem` for `client.pem`,
  ///   `client.TOPIC.key` for `client.TOPIC.pem`.
  /// - Throws: `CommandFailure` if there is no key.
  init(chain: String, key: String?) throws {
    self.chain = chain
    if let key {
      self.key = key
      return
    }
    let stem = chain.hasSuffix(".pem") ? String(chain.dropLast(4)) : chain
    guard let found = [stem + "-key.pem", stem + ".key"].first(where: { (try? Files.contents(of: $0)) != nil }) else {
      throw CommandFailure(.usage, "--cert: no key found in the folder of \(chain): specify it with --cert-key FILE")
    }
    self.key = found
  }

  /// Reads the certificate.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func certificate() throws -> PeerCertificate {
    let pem = try Files.text(of: chain)
    do {
      return PeerCertificate(try X509Certificate.chain(pem: pem)[0])  // `chain` returns at least one.
    } catch {
      throw CommandFailure(.usage, "\(chain): \(error); to create a provider certificate: apns-mock certs client")
    }
  }
}
