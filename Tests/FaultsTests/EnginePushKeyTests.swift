import APNSRules
import Faults
import HTTPMessage
import Testing

@Suite struct EnginePushKeyTests {
  static func key(of fixture: EngineFixture) -> String {
    let push = fixture.push
    return push.request.headers.bytes.withUnsafeBytes { headers in
      push.request.body.withUnsafeBytes { body in
        PushKey.text(headers: headers, facts: push.verdict.facts, defaultTopic: push.defaultTopic, body: body)
      }
    }
  }

  static let token = EngineFixture.deviceToken

  /// The first half of a SHA-256 over token, topic, push type and collapse id, each with a zero byte after it, and the
  /// body. Computed by another program.
  @Test(arguments: [
    (EngineFixture(), "a497d65908808ea49025cf476ab51651"),
    (EngineFixture { $0.deviceToken = token.uppercased() }, "a497d65908808ea49025cf476ab51651"),
    (EngineFixture { $0.fields.append(("apns-collapse-id", "game")) }, "aafe02db96bdae9453dd3a5f9249e15d"),
    (EngineFixture { ($0.fields, $0.body) = ([], "") }, "939560b45a5dbd893fad87aad84012f7"),
    (
      EngineFixture {
        ($0.fields, $0.body) = ([], "x")
        $0.certificate = ProviderCertificate(
          subjectUID: "com.acme.cert", topics: [], development: true, production: true, commonName: nil,
          fingerprint: "00")
      }, "f7ba34e35911c7c94936acc643b68183"
    ),
  ])
  func isAsDocumented(fixture: EngineFixture, key: String) {
    #expect(Self.key(of: fixture) == key)
  }
}
