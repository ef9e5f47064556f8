import APNSRules
import Foundation
import MockAPNS
import TLSEngine
import TestSupport
import Testing

@Suite struct KeyRouteTests {
  /// Returns a request body that adds the public key `pem`.
  static func body(_ pem: String, _ further: [String: Any] = [:]) throws -> String {
    let object = ["team_id": "ACMETEAM01", "public_key": pem].merging(further) { $1 }
    return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
  }

  @Test func publicKeyIsTrusted() async throws {
    let key = try ES256PrivateKey()
    try await TestServer.run { server in
      let client = server.client
      let version = server.state.keys.load().version
      let body = try Self.body(
        try key.publicKey.pem,
        ["environment": "sandbox", "topics": ["com.acme.app"], "related_key_id": "ACMEKEY002", "key_id": "ACMEKEY001"])
      let made = await client.send("PUT", "/api/v1/keys/ACMEKEY001", body)
      #expect(made.status == 201)
      #expect(made.headers["location"] == "/api/v1/keys/ACMEKEY001")
      #expect(
        made.text
          == #"{"key_id":"ACMEKEY001","team_id":"ACMETEAM01","environment":"sandbox","topics":["com.acme.app"],"related_key_id":"ACMEKEY002"}"#
      )
      #expect(await client.send("PUT", "/api/v1/keys/ACMEKEY001", body).status == 200)
      let ring = server.state.keys.load()
      #expect(ring.version > version)
      let message = Array("header.claims".utf8)
      let signature = try key.sign(message)
      let trusted = try #require(ring.keys["ACMEKEY001"])
      #expect(
        message.withUnsafeBytes { message in signature.withUnsafeBytes { trusted.verifies(.es256, message, $0) } })
      let list = await client.get("/api/v1/keys")
      #expect(
        (list.object["items"] as? [[String: Any]])?.map { $0["key_id"] as? String } == ["ACMEKEY001", "MOCKKEY001"])
      #expect(!list.text.contains("PRIVATE"))
      #expect(await client.request("DELETE", "/api/v1/keys/ACMEKEY001").status == 204)
      #expect(server.state.keys.load().keys["ACMEKEY001"] == nil)
      #expect(await client.request("DELETE", "/api/v1/keys/ACMEKEY001").hint.contains("MOCKKEY001"))
    }
  }

  @Test func privateKeyIsRejectedWithAdvice() async throws {
    let pem = try ES256PrivateKey().pem
    try await TestServer.run { server in
      let answer = await server.client.send("PUT", "/api/v1/keys/ACMEKEY001", try Self.body(pem))
      #expect(answer.status == 400)
      #expect(answer.detail.contains("PRIVATE key"))
      #expect(answer.detail.contains("was not stored"))
      #expect(answer.hint.contains("openssl pkey -in AuthKey_ACMEKEY001.p8 -pubout"))
      #expect(!answer.text.contains("BEGIN"))
      #expect(server.state.keys.load().keys["ACMEKEY001"] == nil)
    }
  }

  @Test(arguments: [
    ("ACMEKEY001", "{}", "lacks team_id"), ("ACMEKEY001", #"{"team_id":"ACMETEAM01"}"#, "lacks public_key"),
    ("ACMEKEY001", #"{"team_id":"ACMETEAM01","public_key":"hello"}"#, "public_key is invalid"),
    ("ACMEKEY001", #"{"team_id":"short","public_key":"x"}"#, "team_id \"short\""),
    ("short", #"{"team_id":"ACMETEAM01","public_key":"x"}"#, "key_id \"short\""),
    ("ACMEKEY001", #"{"key_id":"ACMEKEY002"}"#, "another key than the path"),
    ("ACMEKEY001", #"{"team":"ACMETEAM01"}"#, "\"team\""),
    ("ACMEKEY001", #"{"team_id":"ACMETEAM01","public_key":"x","topics":"com.acme"}"#, "public_key is invalid"),
  ])
  func invalidKeyIsExplained(keyID: String, body: String, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("PUT", "/api/v1/keys/\(keyID)", body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
      #expect(server.state.keys.load().keys.count == 1)
    }
  }

  @Test(
    arguments: [
      (["topics": "com.acme"], "topics must be a list of strings"),
      (["topics": [1]], "topics must be a list of strings"),
      (["environment": "moon"], "environment cannot be"), (["related_key_id": "x"], "related_key_id \"x\""),
    ] as [([String: any Sendable], String)])
  func invalidMembersOfAValidKeyAreExplained(further: [String: any Sendable], detail: String) async throws {
    let pem = try ES256PrivateKey().publicKey.pem
    try await TestServer.run { server in
      let answer = await server.client.send("PUT", "/api/v1/keys/ACMEKEY001", try Self.body(pem, further))
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
    }
  }
}
