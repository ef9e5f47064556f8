import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

@Suite struct PushRouteTests {
  @Test func filterAndCursorSelectPushes() async throws {
    try await TestServer.run { server in
      for number in 1...5 { server.recordPush(topic: number % 2 == 0 ? "com.acme.even" : "com.acme.odd") }
      let first = await server.client.get("/api/v1/pushes?topic=com.acme.*&limit=2")
      #expect(first.status == 200)
      #expect(first.headers["content-type"] == "application/json")
      let items = try #require(first.object["items"] as? [[String: Any]])
      #expect(items.map { $0["seq"] as? Int } == [1, 2])
      #expect(first.object["next"] as? Int == 2)
      #expect(first.object["matched"] as? Int == 5)
      #expect(first.object["total"] as? Int == 5)
      #expect(first.object["evicted"] as? Int == 0)
      #expect(first.object["complete"] as? Bool == true)
      let rest = await server.client.get("/api/v1/pushes?topic=com.acme.odd&after=2&order=desc")
      #expect((rest.object["items"] as? [[String: Any]])?.map { $0["seq"] as? Int } == [5, 3])
      #expect(rest.object["next"] is NSNull)
      #expect(!rest.text.contains("SECRET"))
    }
  }

  @Test func queryIsDecoded() async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "com.acme.a&b c+d")
      for query in ["topic=com.acme.a%26b%20c%2Bd", "topic=com.acme.a%26b+c%2bd", "%74opic=*%26*", "&&topic=com*&"] {
        #expect(await server.client.get("/api/v1/pushes?\(query)").object["matched"] as? Int == 1, "\(query)")
      }
    }
  }

  @Test(arguments: [
    ("topik=x", "topik", "did you mean topic?"), ("status=abc", "status", "whole number"),
    ("limit=5000", "limit", "from 0 to 1000"), ("topic=%zz", "percent-encoded", "%25"),
    ("topic=%ff", "percent-encoded", "%25"), ("topic=%4", "percent-encoded", "%25"), ("since=now", "since", "RFC 3339"),
    ("limt=3", "limt", "device_token"), ("topic", "topic", "Specify a value"),
  ])
  func invalidQueryIsExplained(query: String, detail: String, hint: String) async throws {
    try await TestServer.run { server in
      for (method, path) in [("GET", "/api/v1/pushes"), ("DELETE", "/api/v1/pushes")] {
        if method == "DELETE", query.hasPrefix("limit") { continue }
        let answer = await server.client.request(method, "\(path)?\(query)")
        #expect(answer.status == 400)
        #expect(answer.headers["content-type"] == "application/problem+json")
        #expect(answer.detail.contains(detail), "\(answer.detail)")
        #expect(answer.hint.contains(hint), "\(answer.hint)")
      }
    }
  }

  @Test func pushIsShownByNumber() async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "com.acme.one")
      let answer = await server.client.get("/api/v1/pushes/1")
      #expect(answer.status == 200)
      #expect(answer.object["seq"] as? Int == 1)
      #expect((answer.object["apns"] as? [String: Any])?["topic"] as? String == "com.acme.one")
      #expect(answer.object["attempts"] == nil)
    }
  }

  @Test func idShowsItsLatestAttempt() async throws {
    try await TestServer.run { server in
      let id = "27cfdc15-e305-27e0-e290-8fc98e115899"
      for body in ["{}", #"{"aps":{}}"#] {
        server.recordPush(id: id, body: body)
        server.recordPush()
      }
      let answer = await server.client.get("/api/v1/pushes/\(id.uppercased())")
      #expect(answer.object["seq"] as? Int == 3)
      #expect(answer.object["attempts"] as? [Int] == [1, 3])
      #expect(await server.client.get("/api/v1/pushes/\(id)/payload").text == #"{"aps":{}}"#)
    }
  }

  @Test func payloadIsReturnedByteForByte() async throws {
    try await TestServer.run { server in
      server.recordPush(body: "{ \"aps\" :\n{}}")
      server.recordPush(body: "<script>alert(1)</script>")
      server.recordPush(body: "")
      server.recordPush(body: String(repeating: "x", count: 5120), bodySize: 9000)
      let json = await server.client.get("/api/v1/pushes/1/payload")
      #expect(json.text == "{ \"aps\" :\n{}}")
      #expect(json.headers["content-type"] == "application/json")
      let page = await server.client.get("/api/v1/pushes/2/payload")
      #expect(page.text == "<script>alert(1)</script>")
      #expect(page.headers["content-type"] == "application/octet-stream")
      #expect(page.headers["x-content-type-options"] == "nosniff")
      #expect(await server.client.get("/api/v1/pushes/3/payload").body.isEmpty)
      #expect(await server.client.get("/api/v1/pushes/4/payload").body.count == 5120)
    }
  }

  @Test(arguments: [
    "2", "0", "99999999999999999999999", "nosuchid", "27cfdc15-e305-27e0-e290-8fc98e115899", "%2e%2e", "-1",
  ])
  func missingPushNamesTheRange(id: String) async throws {
    try await TestServer.run { server in
      server.recordPush()
      for suffix in ["", "/payload"] {
        let answer = await server.client.get("/api/v1/pushes/\(id)\(suffix)")
        #expect(answer.status == 404)
        #expect(answer.hint.contains("The inbox has 1 pushes"), "\(answer.hint)")
      }
    }
  }

  @Test func evictedPushIsReported() async throws {
    try await TestServer.run({ $0.maxRecords = 2 }) { server in
      for _ in 0..<5 { server.recordPush() }
      #expect(await server.client.get("/api/v1/pushes/1").hint.contains("3 were evicted"))
      let page = await server.client.get("/api/v1/pushes")
      #expect(page.object["evicted"] as? Int == 3)
      #expect(page.object["complete"] as? Bool == false)
    }
  }

  @Test func matchingPushesAreDeleted() async throws {
    try await TestServer.run { server in
      for topic in ["a", "b", "a", "b"] { server.recordPush(topic: topic) }
      let answer = await server.client.request("DELETE", "/api/v1/pushes?topic=a&before=3")
      #expect(answer.status == 200)
      #expect(answer.object["deleted"] as? Int == 1)
      #expect(await server.client.request("DELETE", "/api/v1/pushes?after=3").object["deleted"] as? Int == 1)
      #expect(state(of: server) == [2, 3])
      #expect(await server.client.request("DELETE", "/api/v1/pushes?all=true").object["deleted"] as? Int == 2)
      #expect(state(of: server).isEmpty)
      #expect(server.recordPush() == 5)
    }
  }

  private func state(of server: TestServer) -> [Int] {
    server.state.inbox.snapshot().page(.init()).items.map(\.seq)
  }

  @Test(arguments: [
    ("", "no pushes to delete", "all=true"), ("all=false", "all cannot be", "omitted"),
    ("all=", "all cannot be", "true"),
    ("all=true&topic=a", "excludes a filter", "Omit all=true"), ("all=true&all=true", "2 times", "once"),
    ("topic=a&limit=1", "unknown field \"limit\"", "The fields are"),
    ("order=asc", "unknown field \"order\"", "before"),
    ("al=true", "unknown field \"al\"", "The fields are"),
  ])
  func nothingIsDeletedWithoutAClearScope(query: String, detail: String, hint: String) async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "a")
      let answer = await server.client.request("DELETE", "/api/v1/pushes?\(query)")
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(answer.hint.contains(hint), "\(answer.hint)")
      #expect(state(of: server) == [1])
    }
  }
}
