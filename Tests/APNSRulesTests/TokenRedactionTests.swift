import APNSMockHTTPMessage
import Testing

@testable import APNSMockRules

/// Which parts of a header field's value are removed before it is stored, and how the rest is shown and read back.
@Suite struct TokenRedactionTests {
  private static let signature = String(repeating: "c2ln", count: 16)
  private static let message = "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ.eyJpc3MiOiJCIiwiaWF0IjoxfQ"
  private static let token = message + "." + signature

  /// Returns the values of the fields of a request as they are stored.
  private static func stored(_ fields: [(String, String)]) -> [String] {
    let headers = HeaderList(fields)
    let facts = PushFacts(headers)
    var packed = headers.bytes
    packed.withUnsafeMutableBytes { facts.blankSignatures(in: $0) }
    var values: [String] = []
    packed.withUnsafeBytes { bytes in
      HeaderList.forEachField(in: bytes) { _, value in
        values.append(TokenRedaction.text(bytes[value]))
      }
    }
    return values
  }

  private static let redacted: [(name: String, value: String, shown: String)] = [
    ("proxy-authorization", "Bearer \(token)", "Bearer \(message).…"), ("x-authorization", token, "\(message).…"),
    ("cookie", "a=b; session=\(token); c=d", "a=b; session=\(message).…; c=d"),
    (":path", "/3/device/\(token)", "/3/device/\(message).…"),
    (":path", "/3/device/ab?jwt=\(token)&x=y", "/3/device/ab?jwt=\(message).…&x=y"),
    ("apns-topic", token, "\(message).…"), ("apns-collapse-id", token, "\(message).…"),
    ("x-two", "\(token) \(token)", "\(message).… \(message).…"),
    ("x-dots", "a.b.\(token)", "a.b.\(message).…"),
    // Encrypted: header.key.vector.text.tag.
    ("x-jwe", "\(message).\(signature).\(signature).\(signature)", "\(message).…"),
    // Without claims, and with a header that is not written compactly.
    ("x-detached", "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ..\(signature)", "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ..…"),
    ("x-pretty", "ewogICJhbGciOiJFUzI1NiJ9.e30.\(signature)", "ewogICJhbGciOiJFUzI1NiJ9.e30.…"),
    (
      "x-padded", "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ==.e30=.\(signature)+/=",
      "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ==.e30=.…"
    ),
  ]

  @Test(arguments: redacted)
  func signaturesAreRemovedEverywhere(name: String, value: String, shown: String) {
    #expect(Self.stored([(name, value)]) == [shown])
    let again = String(decoding: TokenRedaction.stored(shown), as: UTF8.self)
    #expect(Self.stored([(name, again)]) == [shown], "what is read back is shown alike")
  }

  @Test(arguments: [
    "com.example.app.with.a.very.long.name.that.is.longer.than.all.jwts.there.are.in.the.world",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
    "\(message) \(signature)", "eyJhbGciOiJFUzI1NiJ9", "eyJ.eyJ.\(signature)",
    "… and no token, but three dots … \(message)…",
    "/3/device/abababababababababababababababababababababababababababababababab",
  ])
  func otherValuesAreKept(value: String) {
    #expect(Self.stored([("x-value", value)]) == [value])
    #expect(String(decoding: TokenRedaction.stored(value), as: UTF8.self) == value)
  }

  /// The credential of `authorization` is removed even if it is no JWT, also from further fields of this name.
  @Test func authorizationNeedsNotHaveTheForm() {
    let values = Self.stored([
      ("authorization", "bearer a.b.secret"), ("authorization", "basic secret"), ("cookie", Self.token),
    ])
    #expect(values.map { $0.prefix { $0 != "\0" } } == ["bearer a.b.", "basic ", "\(Self.message).…"])
    #expect(values.allSatisfy { !$0.contains("secret") })
  }

  /// NUL in a value that is no signature is shown as it was received.
  @Test func otherZerosAreKept() {
    #expect(Self.stored([("apns-topic", "com.example\0app")]) == ["com.example\0app"])
    #expect(TokenRedaction.stored("a\0b…") == Array("a\0b…".utf8))
  }

  /// The search takes linear time: each of these would take minutes if it began anew at every position.
  @Test(.timeLimit(.minutes(1)), arguments: ["eyJ", "ey", "eyJhbGciOiJFUzI1NiJ9.", ".", "…", "a."])
  func longValuesAreSearchedOnce(part: String) {
    let value = String(repeating: part, count: 60_000 / part.utf8.count)
    for _ in 0..<20 { _ = TokenRedaction.stored(value) }
  }
}
