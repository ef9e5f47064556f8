import APNSMockTestSupport
import Testing

@testable import APNSMockTLSEngine

/// Signatures of provider tokens in every form that providers send, raw and DER (Protocol.md, section 3.1).
@Suite struct ES256SignatureTests {
  private let message = Array("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJNT0NLVEVBTTAxIn0".utf8)

  private func isValid(
    _ signature: [UInt8], _ message: [UInt8], _ key: ES256PublicKey, _ hash: SignatureHash = .sha256
  ) -> Bool {
    signature.withUnsafeBytes { signature in
      message.withUnsafeBytes { key.isValid(signature: signature, for: $0, hash: hash) }
    }
  }

  @Test func aRawSignatureIsValidForItsMessageAndKeyOnly() throws {
    let key = try ES256PrivateKey()
    let signature = try key.sign(message)
    #expect(signature.count == 64)
    #expect(isValid(signature, message, key.publicKey))
    #expect(!isValid(signature, message + [0], key.publicKey))
    #expect(!isValid(signature, [], key.publicKey))
    #expect(!isValid(signature, message, try ES256PrivateKey().publicKey))
    #expect(!isValid(signature, message, key.publicKey, .sha512))
  }

  @Test func everyBitOfARawSignatureCounts() throws {
    let key = try ES256PrivateKey()
    let signature = try key.sign(message)
    for index in signature.indices {
      var altered = signature
      altered[index] ^= 0x10
      #expect(!isValid(altered, message, key.publicKey), "byte \(index)")
    }
  }

  /// Faulty conversions mishandle an r or s that begins with zeros; this happens once in 128 signatures.
  @Test func rawSignaturesWithLeadingZerosConvert() throws {
    let key = try ES256PrivateKey()
    var withZero = 0
    for round in 0..<20_000 where withZero < 3 {
      let message = Array("message \(round)".utf8)
      let signature = try key.sign(message)
      guard signature[0] == 0 || signature[32] == 0 else { continue }
      withZero += 1
      #expect(isValid(signature, message, key.publicKey))
    }
    #expect(withZero == 3)
  }

  @Test func signatureMadeByOpenSSLIsValidAsDER() async throws {
    let tool = try OpenSSLTool()
    let key = try ES256PrivateKey()
    try tool.write("key.p8", try key.pem)
    try tool.write("message", message)
    try await tool.run("dgst", "-sha256", "-sign", "key.p8", "-out", "signature", "message")
    let der = try tool.bytes("signature")
    #expect(isValid(der, message, key.publicKey))
    #expect(!isValid(der + [0], message, key.publicKey))
    #expect(!isValid(Array(der.dropLast()), message, key.publicKey))

    try await tool.run("dgst", "-sha512", "-sign", "key.p8", "-out", "signature512", "message")
    let der512 = try tool.bytes("signature512")
    #expect(isValid(der512, message, key.publicKey, .sha512))
    #expect(!isValid(der512, message, key.publicKey, .sha256))
    // The same signature in the form of ES512: r and s extended to 66 bytes each.
    let raw = try #require(ECDSASignature.raw(fromDER: der512[...]))
    let zeros = [UInt8](repeating: 0, count: 34)
    #expect(isValid(zeros + raw[..<32] + zeros + raw[32...], message, key.publicKey, .sha512))
    #expect(!isValid(raw[..<32] + zeros + raw[32...] + zeros, message, key.publicKey, .sha512))
  }

  @Test func openSSLAcceptsOurSignature() async throws {
    let tool = try OpenSSLTool()
    let key = try ES256PrivateKey()
    try tool.write("public.pem", try key.publicKey.pem)
    try tool.write("message", message)
    let der = try key.sign(message).withUnsafeBytes { ECDSASignature.der(fromRaw: $0) }
    try tool.write("signature", try #require(der))
    let outcome = try await tool.run("dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "message")
    #expect(outcome.output.contains("Verified OK"))
  }

  @Test func manyThreadsShareOneKey() async throws {
    let key = try ES256PrivateKey()
    let signature = try key.sign(message)
    let right = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        group.addTask {
          let own = try key.sign([UInt8(number)])
          return (0..<20).allSatisfy { _ in
            isValid(signature, message, key.publicKey) && isValid(own, [UInt8(number)], key.publicKey)
              && !isValid(own, message, key.publicKey)
          }
        }
      }
      return try await group.reduce(true) { $0 && $1 }
    }
    #expect(right)
  }

  @Test(arguments: [0, 1, 8, 63, 64, 65, 70, 72, 73, 96, 131, 132, 133, 5000])
  func garbageIsNotASignature(count: Int) throws {
    let key = try ES256PrivateKey().publicKey
    for byte: UInt8 in [0x00, 0x01, 0x30, 0x7F, 0xFF] {
      #expect(!isValid([UInt8](repeating: byte, count: count), message, key))
    }
  }
}
