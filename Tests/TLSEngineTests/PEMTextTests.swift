import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// The forms in which a `.p8` file or a variable with its content reaches a program, and what each is called.
@Suite struct PEMTextTests {
  private static let key = try? ES256PrivateKey()

  /// Returns the message about a changed private key and about its public half, changed in the same way.
  private static func problems(_ change: (String) -> String) throws -> [String] {
    let key = try #require(Self.key)
    let (privatePEM, publicPEM) = (try change(key.pem), try change(key.publicKey.pem))
    let one = #expect(throws: TLSError.self) { try ES256PrivateKey(pem: privatePEM) }
    let other = #expect(throws: TLSError.self) { try ES256PublicKey(pem: publicPEM) }
    return [one, other].map { $0?.description ?? "" }
  }

  private static let changes: [(name: String, change: @Sendable (String) -> String, words: String)] = [
    (
      "escaped line breaks", { $0.replacing("\n", with: "\\n") }, "has the two characters \\n where line breaks must be"
    ),
    ("a byte order mark", { "\u{FEFF}" + $0 }, "begins with a byte order mark, which many libraries do not read"),
    ("no line breaks", { $0.replacing("\n", with: "") }, "has no line break after the line -----BEGIN"),
    ("spaces", { $0.replacing("\n", with: " ") }, "has no line break after the line -----BEGIN"),
    ("indented", { "  " + $0.replacing("\n", with: "\n  ") }, "has something before -----BEGIN in the same line"),
    ("quoted", { "\"" + $0 + "\"" }, "has something before -----BEGIN in the same line"),
    ("cut", { String($0.prefix(80)) }, "has no line -----END: it was cut"),
    ("in base64", { Base64URL.text(Array($0.utf8)) }, "this is a PEM text in base64: decode it first"),
    (
      "only the lines between",
      { $0.split(separator: "\n").dropFirst().dropLast().joined(separator: "\n") },
      "this lacks the first and the last line of PEM"
    ),
    ("UTF-16", { $0.map { "\($0)\0" }.joined() }, "contains NUL characters, as UTF-16 does"),
    ("with other letters", { $0.replacing("M", with: "N") }, "is damaged"),
  ]

  @Test(arguments: changes.indices) func changedForm(_ index: Int) throws {
    let (name, change, words) = Self.changes[index]
    for problem in try Self.problems(change) {
      #expect(problem.contains(words), "\(name): \(problem)")
    }
  }

  /// Nothing of the key is in a message.
  @Test func theKeyIsNotShown() throws {
    let body = try #require(Self.key).pem.split(separator: "\n")[1]
    for (_, change, _) in Self.changes {
      for problem in try Self.problems(change) { #expect(!problem.contains(body.prefix(12))) }
    }
  }

  @Test func certificates() throws {
    let pem = try SampleCertificates().server.certificate.pem
    let error = #expect(throws: TLSError.self) {
      try X509Certificate.chain(pem: pem.replacing("\n", with: "\\n"))
    }
    #expect(error?.description.contains("certificate 1 of the text has the two characters \\n") == true)
  }
}

/// A certificate and a private key that do not belong together.
@Suite struct CertificateKeyTests {
  @Test(arguments: [["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]])
  func keyOfAnotherCertificate(algorithm: [String]) async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    try samples.write(to: tool)
    try await tool.run(["genpkey", "-out", "other.pem", "-algorithm"] + algorithm)
    try tool.write("certificate.pem", try samples.server.certificate.pem)
    try tool.write("key.pem", try samples.server.key.pem)
    let (chain, key, other) = (tool.path("certificate.pem"), tool.path("key.pem"), tool.path("other.pem"))
    _ = try TLSContext(clientTrusting: [], certificate: (chain, key))
    for make in [
      { _ = try TLSContext(clientTrusting: [], certificate: (chain, other)) },
      { _ = try TLSContext(serverCertificateChain: chain, privateKey: other, clientAuthorities: []) },
    ] as [() throws -> Void] {
      let error = #expect(throws: TLSError.self) { try make() }
      #expect(
        error?.description
          == "the private key in \(other) does not belong to the certificate in \(chain), which has another public key")
    }
  }

  /// OpenSSL does not ask for the pass phrase on the terminal.
  @Test func encryptedKey() async throws {
    let tool = try OpenSSLTool()
    let samples = try SampleCertificates()
    try tool.write("certificate.pem", try samples.server.certificate.pem)
    try tool.write("key.pem", try samples.server.key.pem)
    try await tool.run("pkcs8", "-topk8", "-in", "key.pem", "-passout", "pass:x", "-out", "encrypted.pem")
    let error = #expect(throws: TLSError.self) {
      try TLSContext(clientTrusting: [], certificate: (tool.path("certificate.pem"), tool.path("encrypted.pem")))
    }
    #expect(error?.description.contains("cannot use the private key in \(tool.path("encrypted.pem"))") == true)
  }
}
