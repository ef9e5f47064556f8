import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

/// Test pushes sent through the listener for providers.
@Suite struct SendRouteTests {
  private static let good = """
    {"token":"\(TestServer.deviceToken)","headers":{"apns-topic":"com.example.app","apns-push-type":"alert"},\
    "payload":{"aps":{"alert":"Hello"},"n":12345678901234567890}}
    """

  @Test func pushIsSentAsByAProvider() async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("POST", "/api/v1/send", Self.good)
      #expect(answer.status == 200, "\(answer.text)")
      #expect(answer.object["outcome"] as? String == "answered")
      #expect(answer.object["status"] as? Int == 200)
      #expect(answer.object["reason"] is NSNull)
      let push = (await server.client.get("/api/v1/pushes")).items.first
      let request = push?["request"] as? [String: Any]
      #expect((push?["apns"] as? [String: Any])?["id"] as? String == answer.object["apns_id"] as? String)
      #expect((push?["auth"] as? [String: Any])?["signature"] as? String == "valid")
      #expect((push?["connection"] as? [String: Any])?["tls"] as? String == "TLSv1.3")
      let body = await server.client.get("/api/v1/pushes/1/payload").text
      #expect(body == #"{"aps":{"alert":"Hello"},"n":12345678901234567890}"#)
      #expect((request?["size"] as? [String: Any])?["bytes"] as? Int == body.utf8.count)
    }
  }

  @Test(arguments: [
    (#"{"token":"zz","payload":{}}"#, 400, "BadDeviceToken"), (#"{"token":"ab12","payload":{}}"#, 400, "MissingTopic"),
    (#"{"token":"ab12","headers":{"apns-topic":"a.b"}}"#, 400, "PayloadEmpty"),
    (
      #"{"token":"ab12","headers":{"authorization":"bearer x","apns-topic":"a.b"},"payload":{}}"#, 403,
      "InvalidProviderToken"
    ),
    (#"{"token":"ab12","headers":{"apns-topic":"a.b","apns-priority":7},"payload":{}}"#, 400, "BadPriority"),
  ])
  func responseIsReturned(body: String, status: Int, reason: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("POST", "/api/v1/send", body)
      #expect(answer.status == 200)
      #expect(answer.object["status"] as? Int == status)
      #expect(answer.object["reason"] as? String == reason)
    }
  }

  @Test func payloadTextIsSentUnchanged() async throws {
    try await TestServer.run { server in
      let answer = await server.client.send(
        "POST", "/api/v1/send", #"{"token":"ab12","headers":{"apns-topic":"a.b"},"payload":"no JSON"}"#)
      #expect(answer.object["status"] as? Int == 200)
      #expect(await server.client.get("/api/v1/pushes/1/payload").text == "no JSON")
    }
  }

  @Test func faultOutcomeIsReturned() async throws {
    try await TestServer.run { server in
      #expect(
        await server.client.send(
          "POST", "/api/v1/rules", #"{"name":"r","do":{"reset_stream":{"code":"INTERNAL_ERROR"}}}"#
        )
        .status == 201)
      let reset = await server.client.send("POST", "/api/v1/send", Self.good)
      #expect(reset.status == 200)
      #expect(reset.object["outcome"] as? String == "reset")
      #expect((reset.object["message"] as? String)?.contains("2") == true)
      #expect(
        await server.client.send("PUT", "/api/v1/rules/r", #"{"do":{"reset_connection":{}}}"#).status == 200)
      let ended = await server.client.send("POST", "/api/v1/send", Self.good)
      #expect(ended.status == 200)
      #expect(ended.object["outcome"] as? String == "disconnected")
    }
  }

  @Test(arguments: [
    ("{}", "lacks token"), (#"{"token":"a b"}"#, "token has spaces"), (#"{"token":5}"#, "token must be a string"),
    (#"{"tokn":"ab"}"#, "tokn"), (#"{"token":"ab","headers":[]}"#, "headers must be an object"),
    (#"{"token":"ab","headers":{"a":{}}}"#, "headers.a"), (#"{"token":"ab","headers":{":path":"/"}}"#, "headers.:path"),
    (#"{"token":"ab","headers":{"a":"b\r\nc: d"}}"#, "headers.a"), (#"{"token":"ab\r\n"}"#, "token has"),
    ("[", "not JSON"),
  ])
  func invalidPushIsExplained(body: String, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("POST", "/api/v1/send", body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
      #expect(server.state.inbox.snapshot().count == 0)
    }
  }
}
