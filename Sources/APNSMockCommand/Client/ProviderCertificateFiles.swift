import TLSEngine

/// A provider certificate and its private key, PEM files.
struct ProviderCertificateFiles: Sendable {
  let chain: String
  let key: String

  /// - Parameter key: nil finds the key beside the certificate: `client-key.pem` for `client.pem`, `client.TOPIC.key` for
  ///   `client.TOPIC.pem`.
  /// - Throws: `CommandFailure` if there is none.
  init(chain: String, key: String?) throws {
    self.chain = chain
    if let key {
      self.key = key
      return
    }
    let stem = chain.hasSuffix(".pem") ? String(chain.dropLast(4)) : chain
    guard let found = [stem + "-key.pem", stem + ".key"].first(where: { (try? Files.contents(of: $0)) != nil }) else {
      throw CommandFailure(.usage, "--cert: no key lies beside \(chain): name it with --cert-key FILE")
    }
    self.key = found
  }

  /// What the certificate says.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func certificate() throws -> PeerCertificate {
    let pem = try Files.text(of: chain)
    do {
      return PeerCertificate(try X509Certificate.chain(pem: pem)[0])  // There is at least one.
    } catch {
      throw CommandFailure(.usage, "\(chain): \(error); apns-mock certs client makes a provider certificate")
    }
  }
}
