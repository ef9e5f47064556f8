import APNSMockRules
import APNSMockNotation
import APNSMockTestSupport
import Testing

/// The form of a provider token's signature: what every common mistake is called, before a key is blamed.
struct SignatureFormTests {
  private static let number = [UInt8](repeating: 0x5a, count: 32)
  private static let high = [UInt8](repeating: 0xfb, count: 32)
  private static let raw = number + high

  /// Returns a DER signature with these contents of the two INTEGERs.
  private static func der(_ r: [UInt8], _ s: [UInt8]) -> [UInt8] {
    let content = [0x02, UInt8(r.count)] + r + [0x02, UInt8(s.count)] + s
    return [0x30] + (content.count < 128 ? [] : [0x81]) + [UInt8(content.count)] + content
  }

  private static func text(_ bytes: [UInt8]) -> String { Base64URL.text(bytes) }

  private static func problem(_ text: String, acceptsES512: Bool = false) -> String? {
    Array(text.utf8).withUnsafeBytes { SignatureForm.problem(of: $0, acceptsES512: acceptsES512) }
  }

  @Test(arguments: [
    raw, der(number, [0] + high), der([1], [1]), der([0], [0]), der([UInt8](repeating: 0x7f, count: 20), number),
  ])
  func rightForm(_ signature: [UInt8]) {
    #expect(Self.problem(Self.text(signature)) == nil)
  }

  /// Standard base64, with or without padding, is not refused (Protocol.md, section 3.1).
  @Test func standardBase64() {
    let standard = Self.text(Self.raw).replacing("-", with: "+").replacing("_", with: "/")
    #expect(Self.problem(standard) == nil)
    #expect(Self.problem(standard + "==") == nil)
  }

  /// A signature, and what its size or structure is called.
  private static let wrongBytes: [([UInt8], String)] = [
    ([], "the JWT is not signed: sign it with ES256"),
    (Array(raw.dropLast()), "has 63 bytes: r or s was written without leading zero bytes"),
    (Array(raw.dropLast(4)), "has 60 bytes: r or s was written without leading zero bytes"),
    (Array(raw.prefix(50)), "has 50 bytes, so it was cut"),
    ([0] + raw, "has 65 bytes: r or s has a leading zero byte"),
    (Array([raw, raw, raw].joined()), "has 192 bytes: r and s must have 32 bytes each"),
    (number, "has 32 bytes, the size of an HMAC with SHA-256 (HS256)"),
    (Array(raw.prefix(48)), "has 48 bytes, the size of an HMAC with SHA-384 (HS384)"),
    (raw + number, "has 96 bytes, those of the curve P-384 (ES384): sign with ES256"),
    (sevens(132), "has 132 bytes, those of the curve P-521 (ES512): sign with ES256"),
    (sevens(256), "has 256 bytes, those of an RSA key of 2048 bits (RS256)"),
    (sevens(512), "has 512 bytes, those of an RSA key of 4096 bits (RS256)"),
    (Array(Hexadecimal.text(raw).utf8), "is the base64url form of a text in hexadecimal"),
    (Array(text(raw).utf8), "is encoded in base64 twice: encode its 64 bytes once"),
    ([0x04, 70] + der(number, number), "is DER within an OCTET STRING"),
    ([0x03, 71, 0] + der(number, number), "is DER within a BIT STRING"),
    ([0x30, 0x82, 1, 0] + sevens(256), "is a DER structure of 260 bytes such as CMS"),
    (der(number, high), "is DER with a negative number"),
    (der([0] + number, number), "is DER with superfluous zero bytes"),
    (der(number + sevens(16), number), "those of the curve P-384 (ES384)"),
    (der(number + sevens(34), number), "those of the curve P-521 (ES512)"),
    (Array(der(number, number).dropLast(3)), "begins as DER of 70 bytes and has 67: it was cut"),
    (der(number, number) + [0], "begins as DER of 70 bytes and has 71: it was cut, or bytes were added"),
  ]

  /// The third part of a token, and what its encoding is called.
  private static let wrongTexts: [(String, String)] = [
    (Hexadecimal.text(raw), "is in hexadecimal: write its 64 bytes in base64url"),
    (Hexadecimal.text(der(number, number), uppercase: true), "is in hexadecimal: write its 70 bytes in base64url"),
    ("\(text(raw))\n", "contains white space"), ("\(text(raw))= ", "contains white space"),
    ("\(text(raw).dropLast())%3D", "is percent-encoded"),
    ("\(text(raw).dropLast())*", "contains \"*\", which is not base64url"),
    ("\(text(raw).dropLast())=====", "has padding that is not at its end, or too much of it"),
    ("\(text(raw).dropLast())", "has 85 characters, which no base64url text has"),
  ]

  private static func sevens(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }

  @Test(arguments: wrongBytes.map { (text($0.0), $0.1) } + wrongTexts)
  func wrongForm(_ text: String, _ words: String) throws {
    let problem = try #require(Self.problem(text))
    #expect(problem.contains(words), "\(problem)")
  }

  @Test func es512() {
    let signature = Self.text([UInt8](repeating: 7, count: 132))
    #expect(Self.problem(signature, acceptsES512: true) == nil)
    #expect(Self.problem(Self.text(Array(Self.raw.dropLast())), acceptsES512: true) != nil)
  }

  /// A key verifies no signature whose form is wrong, and the record says what is.
  @Test(arguments: RuleMode.allCases) func theKeyIsNotBlamed(_ mode: RuleMode) {
    let counter = Counter()
    var push = TestPush(mode: mode)
    push.trustedKeys = [FakeSignature.key(verifications: counter)]
    push.token.signature = Array(FakeSignature.raw.dropFirst())
    let verdict = push.validate()
    expect(verdict, .invalidProviderToken)
    #expect(verdict.failed == .providerToken)
    #expect(verdict.token?.signature == .invalid)
    #expect(counter.value == 0)
    #expect(push.explanation(of: verdict).hasPrefix("the provider token's signature has 63 bytes"))
  }

  /// Nothing of the signature is in the explanation.
  @Test func theSignatureIsNotShown() {
    for text in [
      Hexadecimal.text(Self.raw), String(Self.text(Self.raw).dropLast()) + "*", Self.text(Self.raw + [1, 2, 3, 4]),
    ] {
      let problem = Self.problem(text) ?? ""
      #expect(!problem.contains(text.prefix(8)), "\(problem)")
    }
  }

  /// The cause of other malformed tokens.
  @Test(
    arguments: [
      (
        #"{"alg":"ES256","kid":1234567890}"#, nil,
        "kid in the JWT's header is a number or another value that is not a string"
      ),
      (#"{"alg":"ES256","kid":null}"#, nil, "the JWT's header has no kid"),
      (
        nil, #"{"iss":7,"iat":1700000000}"#,
        "iss in the JWT's claims is not a string: write the team id in quotation marks"
      ),
      (nil, "\u{FEFF}{}", "the provider token's claims are not a JSON object: a byte order mark"),
      ("[]", nil, "the provider token's header is not a JSON object: no {"),
    ] as [(String?, String?, String)])
  func malformedToken(_ header: String?, _ claims: String?, _ words: String) {
    var push = TestPush()
    if let header { push.token.header = header }
    if let claims { push.token.claims = claims }
    let detail = push.explain()
    #expect(detail.contains(words), "\(detail)")
  }
}
