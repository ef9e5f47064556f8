import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// Keys in PEM: reading, writing, and errors.
@Suite struct ES256KeyTests {
  @Test func keyRoundTripsThroughPEM() throws {
    let key = try ES256PrivateKey()
    let pem = try key.pem
    #expect(pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let again = try ES256PrivateKey(pem: pem)
    #expect(again.publicKey.isSame(as: key.publicKey))
    let publicPEM = try key.publicKey.pem
    #expect(publicPEM.hasPrefix("-----BEGIN PUBLIC KEY-----\n"))
    #expect(try ES256PublicKey(pem: publicPEM).isSame(as: key.publicKey))
    #expect(try !ES256PrivateKey().publicKey.isSame(as: key.publicKey))
  }

  @Test func keysMadeByOpenSSLLoad() async throws {
    let tool = try OpenSSLTool()
    try await tool.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key.p8")
    try await tool.run("ec", "-in", "key.p8", "-out", "sec1.pem")
    try await tool.run("pkey", "-in", "key.p8", "-pubout", "-out", "public.pem")
    let publicKey = try ES256PublicKey(pem: tool.text("public.pem"))
    #expect(try ES256PrivateKey(pem: tool.text("key.p8")).publicKey.isSame(as: publicKey))
    #expect(try tool.text("sec1.pem").contains("BEGIN EC PRIVATE KEY"))
    #expect(try ES256PrivateKey(pem: tool.text("sec1.pem")).publicKey.isSame(as: publicKey))
    // Line breaks of Windows and text around the key, as in a copy from an e-mail.
    let untidy = "Key:\r\n" + (try tool.text("key.p8")).replacingOccurrences("\n", "\r\n") + "\r\n\r\n"
    #expect(try ES256PrivateKey(pem: untidy).publicKey.isSame(as: publicKey))
  }

  @Test func otherAlgorithmsAreReported() async throws {
    let tool = try OpenSSLTool()
    try await tool.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", "p384.pem")
    try await tool.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1", "-out", "k256.pem")
    try await tool.run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "rsa.pem")
    try await tool.run("genpkey", "-algorithm", "ED25519", "-out", "ed.pem")
    for (file, words) in [
      ("p384.pem", "EC with 384 bits"), ("k256.pem", "secp256k1"), ("rsa.pem", "RSA"), ("ed.pem", "ED25519"),
    ] {
      let error = #expect(throws: TLSError.self) { try ES256PrivateKey(pem: tool.text(file)) }
      #expect(error?.description.contains(words) == true, "\(file): \(error?.description ?? "")")
      try await tool.run("pkey", "-in", file, "-pubout", "-out", "public-\(file)")
      #expect(throws: TLSError.self) { try ES256PublicKey(pem: tool.text("public-\(file)")) }
    }
  }

  /// An encrypted key must be rejected without OpenSSL asking for the pass phrase on the terminal.
  @Test func anEncryptedKeyIsRefused() async throws {
    let tool = try OpenSSLTool()
    try tool.write("key.p8", try ES256PrivateKey().pem)
    try await tool.run("pkcs8", "-topk8", "-in", "key.p8", "-passout", "pass:x", "-out", "pkcs8.pem")
    try await tool.run("ec", "-in", "key.p8", "-aes128", "-passout", "pass:x", "-out", "sec1.pem")
    let error = #expect(throws: TLSError.self) { try ES256PrivateKey(pem: tool.text("pkcs8.pem")) }
    #expect(error?.description.contains("an encrypted private key") == true)
    let other = #expect(throws: TLSError.self) { try ES256PrivateKey(pem: tool.text("sec1.pem")) }
    #expect(other?.description.contains("an encrypted private key") == true)
  }

  @Test(arguments: [
    ("", "empty"), ("  \n", "empty"), ("hello", "not a PEM text"),
    ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "a certificate"),
    ("-----BEGIN SOMETHING-----\nAA==\n-----END SOMETHING-----\n", "something else"),
    ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "public key"),
    ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "private key"),
    ("-----BEGIN PRIVATE KEY-----\n", "private key"),
  ])
  func invalidKeyIsDescribed(pem: String, words: String) {
    let one = #expect(throws: TLSError.self) { try ES256PrivateKey(pem: pem) }
    let other = #expect(throws: TLSError.self) { try ES256PublicKey(pem: pem) }
    #expect(one?.description.contains(words) == true)
    #expect(other?.description.contains(words) == true)
  }

  @Test func privateKeyIsNotAcceptedAsPublicKey() throws {
    let key = try ES256PrivateKey()
    let error = #expect(throws: TLSError.self) { try ES256PublicKey(pem: key.pem) }
    #expect(error?.description.contains("a private key") == true)
  }
}

extension String {
  /// Returns the text with each `part` replaced.
  fileprivate func replacingOccurrences(_ part: String, _ other: String) -> String {
    split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
  }
}
