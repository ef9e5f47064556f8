import APNSMockRules
import APNSMockAdminAPI
import APNSMockDevices
import Foundation
import MockAPNS
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

/// Pages and limits of the lists of devices, keys and profiles.
@Suite struct ListPageTests {
  /// Returns the member `name` of each item, page by page of `limit` items, following `next`.
  private func all(_ path: String, _ name: String, limit: Int, _ client: RawClient) async throws -> [[String]] {
    var pages: [[String]] = []
    var after: String?
    repeat {
      let query = "limit=\(limit)" + (after.map { "&after=\($0)" } ?? "")
      let response = await client.get("\(path)?\(query)")
      try #require(response.status == 200, "\(response.text)")
      let items = try #require(response.object["items"] as? [[String: Any]])
      pages.append(items.compactMap { $0[name] as? String })
      after = response.object["next"] as? String
    } while after != nil && pages.count < 100
    return pages
  }

  /// Returns a request body that adds the public key `pem`.
  private func body(_ pem: String, _ others: [String: Any] = [:]) throws -> String {
    let object = ["team_id": "ACMETEAM01", "public_key": pem].merging(others) { $1 }
    return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
  }

  @Test func devicesArePaged() async throws {
    try await TestServer.run { server in
      for token in ["cc", "aa", "bb", "ee", "dd"] {
        #expect(await server.client.send("PUT", "/api/v1/devices/\(token)", "{}").status == 201)
      }
      let path = "/api/v1/devices"
      let short = try await all(path, "token", limit: 2, server.client)
      #expect(short == [["cc", "aa"], ["bb", "ee"], ["dd"]], "in the order of registration")
      let whole = try await all(path, "token", limit: 5, server.client)
      #expect(whole == [["cc", "aa", "bb", "ee", "dd"]])
      // The last item of a page was removed before the next page was requested.
      let next = try #require(await server.client.get("\(path)?limit=2").object["next"] as? String)
      _ = await server.client.request("DELETE", "/api/v1/devices/aa")
      let rest = await server.client.get("\(path)?after=\(next)")
      #expect((rest.object["items"] as? [[String: Any]])?.compactMap { $0["token"] as? String } == ["bb", "ee", "dd"])
      #expect(rest.object["total"] as? Int == 4)
    }
  }

  @Test func devicesAreSearched() async throws {
    try await TestServer.run { server in
      for number in 0..<1200 {
        try server.state.devices.set(
          SingleToken(
            token: String(format: "%08x", number), topic: "com.example.\(number % 2)",
            state: number == 1100 ? .unregistered : .online, since: 0))
      }
      let path = "/api/v1/devices"
      let one = await server.client.get("\(path)?search=UNREG")
      #expect(one.items.map { $0["token"] as? String } == ["0000044c"])
      #expect(one.object["total"] as? Int == 1200)
      // 00000440 to 0000044f, and 00000044.
      #expect(await server.client.get("\(path)?search=0000044").items.count == 17)
      // More tokens than are compared at once.
      var found = 0
      var after: String?
      repeat {
        let page = await server.client.get("\(path)?search=example.1&limit=250" + (after.map { "&after=\($0)" } ?? ""))
        found += page.items.count
        after = page.object["next"] as? String
      } while after != nil
      #expect(found == 600)
      let known = await server.client.get("\(path)?tokens=0000044c,ffff,00000001")
      #expect(known.items.map { $0["token"] as? String } == ["0000044c", "00000001"])
      #expect(await server.client.get("\(path)?tokens=xyz").status == 400)
      #expect(await server.client.get("\(path)?search=\(String(repeating: "a", count: 256))").status == 400)
    }
  }

  @Test func profilesArePaged() async throws {
    try await TestServer.run { server in
      let whole = try await all("/api/v1/profiles", "name", limit: 1000, server.client)
      #expect(whole.count == 1)
      let pages = try await all("/api/v1/profiles", "name", limit: 10, server.client)
      #expect(pages.count == 3)
      #expect(pages.flatMap(\.self) == whole[0])
    }
  }

  @Test func devicesAreBounded() async throws {
    try await TestServer.run({ $0.maxDevices = 1000 }) { server in
      for index in 0..<1000 {
        try server.state.devices.set(SingleToken(token: String(format: "%08x", index), state: .unregistered, since: 0))
      }
      let full = await server.client.send("PUT", "/api/v1/devices/ffffffff", "{}")
      #expect(full.status == 409)
      #expect(full.detail.contains("1000"))
      #expect(full.hint.contains("--max-devices"))
      #expect(await server.client.send("PUT", "/api/v1/devices/00000001", "{}").status == 200, "one that is there")
      #expect(await server.client.request("DELETE", "/api/v1/devices/00000002").status == 204)
      #expect(await server.client.send("PUT", "/api/v1/devices/ffffffff", "{}").status == 201)
    }
  }

  @Test func keysAreBounded() async throws {
    let pem = try ES256PrivateKey().publicKey.pem
    try await TestServer.run { server in
      let trusted = try #require(server.state.keys.load().keys.values.first)
      server.state.keys.update { ring in
        let additionalNames = (0..<TrustedKeySet.limit - 1).map { index in
          TrustedKey(
            keyID: String(format: "KEY%07d", index), teamID: trusted.teamID, verifies: { _, _, _ in false })
        }
        ring = TrustedKeySet(version: ring.version + 1, keys: ring.keys.values + additionalNames)
      }
      let key = try body(pem)
      let full = await server.client.send("PUT", "/api/v1/keys/ACMEKEY001", key)
      #expect(full.status == 409)
      #expect(full.detail.contains("\(TrustedKeySet.limit)"))
      #expect(await server.client.send("PUT", "/api/v1/keys/KEY0000001", key).status == 200, "one that is there")
      let topics = try body(pem, ["topics": (0...400).map { "com.acme.app\($0)" }])
      let tooMany = await server.client.send("PUT", "/api/v1/keys/KEY0000001", topics)
      #expect(tooMany.status == 400)
      #expect(tooMany.detail.contains("401 topics"))
    }
  }
}
