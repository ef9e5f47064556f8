import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

/// Waiting, following events and exporting over HTTP.
@Suite struct WaitRouteTests {
  @Test func waitReturnsMatchingPushes() async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "a")
      async let answer = server.client.get("/api/v1/pushes/wait?topic=a&count=2&timeout=1m")
      #expect(await TestServer.eventually { server.state.inbox.listenerCount == 1 })
      server.recordPush(topic: "b")
      server.recordPush(topic: "a")
      let object = await answer.object
      #expect(object["satisfied"] as? Bool == true)
      #expect(object["matched"] as? Int == 2)
      #expect((object["items"] as? [[String: Any]])?.map { $0["seq"] as? Int } == [1, 3])
      #expect(object["seq"] as? Int == 3)
      #expect((object["nearest"] as? [Any])?.isEmpty == true)
      #expect(object["complete"] as? Bool == true)
      #expect(object["evicted"] as? Int == 0)
    }
  }

  @Test(arguments: [
    ("timeout=0s", 200, false), ("timeout=0s&strict=1", 412, false), ("timeout=0s&strict=0", 200, false),
    ("count=0&strict=1", 200, true), ("count==0&settle=20ms&strict=true", 200, true),
  ])
  func timeoutIsAnErrorOnlyOnRequest(query: String, status: Int, isSatisfied: Bool) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/api/v1/pushes/wait?\(query)")
      #expect(answer.status == status)
      #expect(answer.headers["content-type"] == "application/json")
      #expect(answer.object["satisfied"] as? Bool == isSatisfied)
      #expect((answer.object["message"] as? String)?.isEmpty == false)
    }
  }

  @Test func nearestPushesAreReported() async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "a")
      let answer = await server.client.get("/api/v1/pushes/wait?q=topic:a+status:200&timeout=0s")
      let nearest = (answer.object["nearest"] as? [[String: Any]])?.first
      #expect(nearest?["seq"] as? Int == 1)
      #expect(nearest?["met"] as? [String] == ["topic"])
      #expect(nearest?["missed"] as? [String] == ["status"])
    }
  }

  @Test(arguments: [
    ("count=x", "count"), ("timeout=1h", "timeout"), ("settle=x", "settle"), ("strict=maybe", "strict"),
    ("strict=1&strict=1", "strict"), ("topik=a", "topik"), ("settle=2s&timeout=1s", "settle"), ("limit=3", "limit"),
  ])
  func invalidQueryIsExplained(query: String, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/api/v1/pushes/wait?\(query)")
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
    }
  }

  @Test func stoppingTheServerEndsTheWait() async throws {
    try await TestServer.run { server in
      async let wait = server.client.get("/api/v1/pushes/wait?timeout=5m")
      async let events = server.client.get("/api/v1/events")
      #expect(await TestServer.eventually { server.state.inbox.listenerCount == 2 })
      await server.admin.stop(gracePeriod: .seconds(10))
      #expect(await wait.status == 503)
      #expect(await wait.detail.contains("the server stops"))
      #expect(await events.text.contains("event: end\ndata: {\"message\":\"the server stops\"}\n\n"))
    }
  }
}

@Suite struct EventRouteTests {
  @Test func allKindsOfEventsAreStreamed() async throws {
    try await TestServer.run { server in
      async let events = server.client.get("/api/v1/events?topic=a")
      #expect(await TestServer.eventually { server.state.events.readerCount == 1 })
      server.recordPush(topic: "a")
      server.recordPush(topic: "b")
      server.state.faults.setPaused(true)
      _ = await server.client.sendYAML(
        "POST", "/api/v1/rules", "name: mine\ndo: {respond: {reason: ServiceUnavailable}}\n")
      _ = await server.client.request("DELETE", "/api/v1/rules/mine")
      _ = await server.statuses()
      _ = await server.client.request("POST", "/api/v1/reset")
      await server.admin.stop(gracePeriod: .seconds(10))
      let text = await events.text
      #expect(await events.headers["content-type"] == "text/event-stream")
      #expect(text.contains(": apns-mock events\nid: "))
      // Matched anywhere in the text, because it contains the sizes of chunks between the events.
      let names = text.matches(of: /event: ([a-z.]+)\n/).map(\.1)
      #expect(names.count { $0 == "push" } == 1)
      #expect(names.contains("profile"))
      #expect(names.count { $0 == "rule" } == 2, "\(text)")
      #expect(names.contains("connection"))
      #expect(names.contains("reset"))
      #expect(text.contains(#""change":"added""#))
      #expect(text.contains(#""event":"accepted""#))
      let ids = text.matches(of: /id: ([0-9]+)\n/).compactMap { Int($0.1) }
      #expect(ids.count >= names.count)
      #expect(ids == ids.sorted())
    }
  }

  @Test func streamResumesAfterTheLastEventID() async throws {
    try await TestServer.run { server in
      let reader = try #require(server.state.events.follow())
      server.recordPush(topic: "a")
      server.recordPush(topic: "b")
      let place = reader.start
      async let header = server.client.get("/api/v1/events?last_event_id=999", [("last-event-id", "\(place + 1)")])
      async let parameter = server.client.get("/api/v1/events?last_event_id=\(place)")
      async let lost = server.client.get("/api/v1/events", [("last-event-id", "x")])
      #expect(await TestServer.eventually { server.state.events.readerCount == 4 })
      await server.admin.stop(gracePeriod: .seconds(10))
      #expect(await header.text.components(separatedBy: "event: push\n").count == 2)
      #expect(await parameter.text.components(separatedBy: "event: push\n").count == 3)
      #expect(await lost.text.contains("event: gap\n"))
    }
  }

  @Test(arguments: [
    "/api/v1/events", "/api/v1/export", "/api/v1/events/", "//api/v1/events", "/api/v1/events?topic=a",
  ])
  func foreignOriginIsRejected(path: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get(path, [("origin", "https://evil.example")])
      #expect(answer.status == 403 || answer.status == 404)
      #expect(server.state.events.readerCount == 0)
    }
  }

  @Test(arguments: ["last_event_id=x", "last_event_id=-1", "topik=a", "limit=1"])
  func invalidQueryIsExplained(query: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/api/v1/events?\(query)")
      #expect(answer.status == 400)
      #expect(!answer.hint.isEmpty)
    }
  }

  @Test func headRequestLeavesNoReader() async throws {
    try await TestServer.run { server in
      #expect(await server.client.request("HEAD", "/api/v1/events").status == 200)
      #expect(await TestServer.eventually { server.state.events.readerCount == 0 })
    }
  }
}

@Suite struct ExportRouteTests {
  @Test func exportContainsAllPushes() async throws {
    try await TestServer.run { server in
      for number in 1...1000 { server.recordPush(topic: number % 2 == 0 ? "even" : "odd") }
      let lines = await server.client.get("/api/v1/export?topic=even")
      #expect(lines.status == 200)
      #expect(lines.headers["content-type"] == "application/x-ndjson")
      let array = await server.client.get("/api/v1/export?format=json")
      #expect(array.headers["content-type"] == "application/json")
      #expect(lines.headers["transfer-encoding"] == "chunked")
      #expect(!array.text.contains("SECRET"))
    }
  }

  @Test(arguments: [("format=xml", "ndjson"), ("format=", "ndjson"), ("topik=a", "topic"), ("limit=3", "fields")])
  func invalidQueryIsExplained(query: String, hint: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/api/v1/export?\(query)")
      #expect(answer.status == 400)
      #expect(answer.hint.contains(hint), "\(answer.hint)")
    }
  }

  @Test func pushIsRenderedForOtherTools() async throws {
    try await TestServer.run { server in
      server.recordPush(topic: "com.acme.app")
      server.recordPush(body: "x")
      let curl = await server.client.get("/api/v1/pushes/1/curl")
      #expect(curl.headers["content-type"] == "text/plain; charset=utf-8")
      #expect(curl.text.contains(#"-H "authorization: bearer $TOKEN""#))
      #expect(curl.text.contains("https://localhost:\(server.state.apnsAddresses[0].port)/3/device/ab12"))
      let file = await server.client.get("/api/v1/pushes/1/apns")
      #expect(file.object["Simulator Target Bundle"] as? String == "com.acme.app")
      let bad = await server.client.get("/api/v1/pushes/2/apns")
      #expect(bad.status == 422)
      #expect(bad.detail.contains("push 2 cannot be represented as a file for xcrun simctl push: the body is not JSON"))
      #expect(await server.client.get("/api/v1/pushes/9/curl").status == 404)
    }
  }
}
