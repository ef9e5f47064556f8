import APNSMockAdminAPI
import Foundation
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

/// Test pushes sent through the listener for providers.
@Suite struct SendRouteTests {
  private static let good = """
    {"token":"\(TestServer.deviceToken)","headers":{"apns-topic":"com.example.app","apns-push-type":"alert"},\
    "payload":{"aps":{"alert":"Hello"},"n":12345678901234567890}}
    """

  @Test func pushIsSentAsByAProvider() async throws {
    try await TestServer.run { server in
      let response = await server.client.send("POST", "/api/v1/send", Self.good)
      #expect(response.status == 200, "\(response.text)")
      #expect(response.object["outcome"] as? String == "answered")
      #expect(response.object["status"] as? Int == 200)
      #expect(response.object["reason"] is NSNull)
      let push = (await server.client.get("/api/v1/pushes")).items.first
      let request = push?["request"] as? [String: Any]
      #expect((push?["apns"] as? [String: Any])?["id"] as? String == response.object["apns_id"] as? String)
      #expect((push?["auth"] as? [String: Any])?["signature"] as? String == "valid")
      #expect((push?["connection"] as? [String: Any])?["tls"] as? String == "TLSv1.3")
      let body = await server.client.get("/api/v1/pushes/1/payload").text
      #expect(body == #"{"aps":{"alert":"Hello"},"n":12345678901234567890}"#)
      #expect((request?["size"] as? [String: Any])?["bytes"] as? Int == body.utf8.count)
    }
  }

  static let rejected = [
    (#"{"token":"zz","payload":{}}"#, 400, "BadDeviceToken"), (#"{"token":"ab12","payload":{}}"#, 400, "MissingTopic"),
    (#"{"token":"ab12","headers":{"apns-topic":"a.b"}}"#, 400, "PayloadEmpty"),
    (
      #"{"token":"ab12","headers":{"authorization":"bearer x","apns-topic":"a.b"},"payload":{}}"#, 403,
      "InvalidProviderToken"
    ),
    (#"{"token":"ab12","headers":{"apns-topic":"a.b","apns-priority":7},"payload":{}}"#, 400, "BadPriority"),
  ]

  @Test func responseIsReturned() async throws {
    try await TestServer.run { server in
      for (body, status, reason) in Self.rejected {
        let response = await server.client.send("POST", "/api/v1/send", body)
        #expect(response.status == 200, "\(body)")
        #expect(response.object["status"] as? Int == status, "\(body)")
        #expect(response.object["reason"] as? String == reason, "\(body)")
      }
    }
  }

  @Test func payloadTextIsSentUnchanged() async throws {
    try await TestServer.run { server in
      let response = await server.client.send(
        "POST", "/api/v1/send", #"{"token":"ab12","headers":{"apns-topic":"a.b"},"payload":"no JSON"}"#)
      #expect(response.object["status"] as? Int == 200)
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
}
