import APNSMockRules
import Foundation

@testable import APNSMockTLSEngine

/// Fuzzes certificates and keys from peers and users: DER, PEM, Apple's extensions with lists of topics, and
/// signatures.
struct CertificatesTarget: FuzzTarget {
  let seeds: [[UInt8]]
  private let key: ES256PrivateKey
  private let authority: X509Certificate

  init() throws {
    let now = Int64(Date().timeIntervalSince1970) * 1000
    let valid = now...(now + 86_400_000)
    var permitted = NameConstraints()
    for name in ["localhost", "test"].compactMap({ CertificateName($0) }) { permitted.add(name) }
    let maker = try CertificateAuthority(commonName: "Fuzz CA", permitted: permitted, valid: valid)
    let server = try maker.issueServer(
      names: ["localhost", "127.0.0.1", "::1"].compactMap { CertificateName($0) }, valid: valid)
    let provider = try maker.issueProvider(
      CertificateAuthority.ProviderRequest(topics: ["com.example.app", "com.example.app.voip"], teamID: "MOCKTEAM01"),
      valid: valid)
    authority = maker.certificate
    key = server.key
    let certificates = [authority, server.certificate, provider.certificate]
    let texts = try certificates.map { try $0.pem } + [server.key.pem, server.key.publicKey.pem]
    let signature = try server.key.sign([1, 2, 3])
    seeds =
      texts.map { Array($0.utf8) } + [Array((texts[1] + texts[0]).utf8)]
      + (try texts.prefix(3).map { try Self.der(of: $0) })
      + [
        PushExtensions.encode(topics: ["com.example.app", "com.example.app.voip"]), signature,
        signature.withUnsafeBytes { ECDSASignature.der(fromRaw: $0) } ?? [],
      ]
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    let bytes = Array(bytes)
    if let certificate = try? X509Certificate(der: bytes) { inspect(certificate) }
    if let topics = PushExtensions.decodeTopics(bytes) {
      let again = PushExtensions.decodeTopics(PushExtensions.encode(topics: topics))
      expect(again == topics, "\(topics) is read as \(again ?? []) after it was written")
      expect(PushExtensions.decodeTopicOrTopics(bytes) == topics, "\(topics) is not read as the same by itself")
    }
    if let raw = ECDSASignature.raw(fromDER: bytes[...]) {
      let der = raw.withUnsafeBytes { ECDSASignature.der(fromRaw: $0) }
      expect(ECDSASignature.raw(fromDER: (der ?? [])[...]) == raw, "a signature changes when it is written")
    }
    let message = [UInt8](repeating: 1, count: 32)
    bytes.withUnsafeBytes { signature in
      message.withUnsafeBytes { message in
        for hash in [SignatureHash.sha256, .sha512] {
          _ = key.publicKey.isValid(signature: signature, for: message, hash: hash)
        }
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    lookAtText(text)
  }

  private func lookAtText(_ text: String) {
    for certificate in (try? X509Certificate.chain(pem: text)) ?? [] { inspect(certificate) }
    if let key = try? ES256PublicKey(pem: text), let pem = try? key.pem {
      expect((try? ES256PublicKey(pem: pem))?.isSame(as: key) == true, "a public key changes when it is written")
    }
    if let key = try? ES256PrivateKey(pem: text), let signature = try? key.sign([1]) {
      let isValid = signature.withUnsafeBytes { signature in
        [UInt8(1)].withUnsafeBytes { key.publicKey.isValid(signature: signature, for: $0) }
      }
      // A file may contain the public key of another pair, so the signature need not verify.
      _ = isValid
    }
    if let name = CertificateName(text) { _ = try? authority.permits(name) }
    _ = PEMText.content(of: text)
  }

  private func inspect(_ certificate: X509Certificate) {
    let peer = PeerCertificate(certificate)
    expect(peer.fingerprint.utf8.count == 64, "a fingerprint is \(peer.fingerprint)")
    _ = (certificate.names, certificate.subject, certificate.issuer, certificate.issuerOrganization)
    _ = (certificate.isAuthority, certificate.matches(key), certificate.isIssued(by: authority))
    if let name = CertificateName("localhost") { _ = try? certificate.permits(name) }
    expect((try? certificate.pem) != nil, "a certificate cannot be written")
  }

  private static func der(of pem: String) throws -> [UInt8] {
    let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-") }
    return Array(Data(base64Encoded: lines.joined()) ?? Data())
  }
}
