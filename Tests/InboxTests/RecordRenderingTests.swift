import Foundation
import Testing

@testable import APNSMockInbox

/// Pushes in the formats of other tools.
@Suite struct RecordRenderingTests {
  private static func command(_ change: (inout PushFixture) -> Void = { _ in }) throws -> String {
    try PushFixture(change).record.curlCommand(
      to: "https://localhost:2197", authority: "/tmp/my certs/ca.pem",
      tokenCommand: "apns-mock token provider --certs d")
  }

  @Test func curlCommandRepeatsThePush() throws {
    let command = try Self.command()
    #expect(
      command == """
        curl -i --http2 --cacert '/tmp/my certs/ca.pem' -H "authorization: bearer ${TOKEN:-$(apns-mock token provider --certs d)}" -H 'apns-topic: com.acme.app' \
        -H 'apns-push-type: alert' --data-raw '{"aps":{"alert":"hi"}}' \
        https://localhost:2197/3/device/\(PushFixture.deviceToken)

        """)
    #expect(!command.contains("SECRET"))
  }

  @Test(arguments: [
    ("it's $(touch x)", #"'it'\''s $(touch x)'"#), ("@file", "--data-raw @file"), ("", "--data-raw ''"),
    ("a\nb", "'a\nb'"), ("`id`", "'`id`'"),
  ])
  func quotesForTheShell(body: String, expected: String) throws {
    #expect(try Self.command { $0.body = Array(body.utf8) }.contains(expected))
  }

  @Test func binaryBodyIsPiped() throws {
    let command = try Self.command { $0.body = [0, 0xFF, 0x41] }
    #expect(command.hasPrefix(#"printf '\000\377\101' | curl "#))
    #expect(command.contains("--data-binary @-"))
  }

  @Test(
    arguments: [
      ("x-empty", "", "-H 'x-empty;'"), ("x-quote", "it's", #"-H 'x-quote: it'\''s'"#),
      ("content-length", "22", nil),
    ] as [(String, String, String?)])
  func headerFieldsAreKept(name: String, value: String, expected: String?) throws {
    let command = try Self.command { $0.headers.append((name, value)) }
    #expect(command.contains(expected ?? name) == (expected != nil), "\(command)")
  }

  @Test func truncatedBodyIsMarked() {
    let error = #expect(throws: NotRenderable.self) { try Self.command { $0.bodySize = 9000 } }
    #expect(error?.message.contains("9000 bytes") == true)
  }

  @Test(arguments: [
    (#"{"aps":{}}"#, "com.acme.app", #"{"Simulator Target Bundle":"com.acme.app","aps":{}}"#),
    (" {\n}", "com.acme.app", "{\"Simulator Target Bundle\":\"com.acme.app\"\n}"),
    (#"{"aps":{}}"#, "com.acme.app.voip", #"{"Simulator Target Bundle":"com.acme.app","aps":{}}"#),
    (
      #"{"aps":{}}"#, "com.acme.app.push-type.liveactivity",
      #"{"Simulator Target Bundle":"com.acme.app","aps":{}}"#
    ),
    (#"{"Simulator Target Bundle":"b","aps":{}}"#, "a", #"{"Simulator Target Bundle":"b","aps":{}}"#),
  ])
  func simulatorFile(body: String, topic: String, expected: String) throws {
    let record = PushFixture {
      $0.body = Array(body.utf8)
      $0.headers = [("apns-topic", topic)]
    }.record
    let file = try record.simulatorFile()
    #expect(String(decoding: file, as: UTF8.self) == expected)
    #expect(try JSONSerialization.jsonObject(with: Data(file)) is [String: Any])
  }

  @Test(
    arguments: [
      ("[1]", "com.acme.app", "not a JSON object"), ("x", "com.acme.app", "not JSON"), ("", "com.acme.app", "empty"),
      ("{}", nil, "no topic"),
    ] as [(String, String?, String)])
  func missingSimulatorFileIsExplained(body: String, topic: String?, message: String) {
    let record = PushFixture {
      $0.body = Array(body.utf8)
      $0.headers = topic.map { [("apns-topic", $0)] } ?? []
    }.record
    let error = #expect(throws: NotRenderable.self) { try record.simulatorFile() }
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
  }
}
