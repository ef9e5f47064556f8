import APNSMockAdminAPI
import Foundation
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

/// The listener's handling of HTTP itself.
@Suite struct HTTPTests {
  @Test func readinessFollowsThePhase() async throws {
    try await TestServer.run { server in
      for (phase, status) in [(ServerState.Phase.starting, 503), (.ready, 200), (.stopping, 503)] {
        server.state.phase = phase
        #expect(await server.client.get("/readyz").status == status)
        #expect(await server.client.get("/livez").status == 200)
      }
    }
  }

  @Test func rootPageShowsAddresses() async throws {
    try await TestServer.run { server in
      let response = await server.client.get("/")
      #expect(response.headers["content-type"] == "text/plain; charset=utf-8")
      #expect(response.text.contains("apns-mock 9.8.7"))
      #expect(response.text.contains("https://\(server.state.apnsAddresses[0])"))
      #expect(response.text.contains("http://127.0.0.1:\(server.admin.address.port)/api/v1/pushes"))
      #expect(!response.text.contains(server.state.certificates.path))
    }
  }

  private static let readable =
    [
      "/", "/ca.pem", "/livez", "/readyz", "/schema/fault-profile.json", "/page/modules/main.js", "/page/nothing",
    ]
    + [
      "pushes", "pushes/wait?timeout=0s", "export", "pushes/1/curl", "pushes/1/apns", "pushes/1", "pushes/1/payload",
      "status", "clock", "devices", "devices/ab", "keys", "profiles", "profiles/flaky-503", "profile", "rules",
      "rules/mine", "rules/mine/explain", "connections", "connections/c1", "nothing",
    ].map { "/api/v1/" + $0 }

  @Test func headIsGetWithoutABody() async throws {
    try await TestServer.run { server in
      server.recordPush()
      for path in Self.readable {
        let (get, head) = (await server.client.get(path), await server.client.request("HEAD", path))
        #expect(head.status == get.status, "\(path)")
        #expect(head.headers["content-type"] == get.headers["content-type"], "\(path)")
        // The status contains an uptime, and a streamed response has no length to compare.
        if !path.hasSuffix("/status"), let length = get.headers["content-length"] {
          #expect(head.headers["content-length"] == length, "\(path)")
        }
        #expect(head.body.isEmpty, "\(path)")
      }
    }
  }

  @Test func headResponseOfAStreamHasNoContentLength() async throws {
    try await TestServer.run { server in
      server.recordPush()
      for (path, type) in [("/api/v1/export", "application/x-ndjson"), ("/api/v1/events", "text/event-stream")] {
        let request = "host: localhost\r\n"
        let response = await server.client.exchange(
          "HEAD \(path) HTTP/1.1\r\n\(request)\r\nGET /livez HTTP/1.1\r\n\(request)connection: close\r\n\r\n")
        #expect(response.status == 200)
        #expect(response.headers["content-type"] == type)
        #expect(response.headers["content-length"] == nil)
        #expect(response.headers["transfer-encoding"] == "chunked")
        // The head is followed directly by the next response, without chunks.
        #expect(response.text.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(response.text.prefix(60))")
        #expect(response.text.hasSuffix(#"{"status":"live"}"#))
      }
    }
  }

  static let changes = [
    ("POST", "/api/v1/reset"), ("PUT", "/api/v1/clock"), ("POST", "/api/v1/clock/advance"), ("POST", "/api/v1/devices"),
    ("PUT", "/api/v1/devices/ab12"), ("PUT", "/api/v1/keys/ACMEKEY001"), ("PUT", "/api/v1/profiles/mine"),
    ("POST", "/api/v1/profiles/lint"), ("POST", "/api/v1/profiles/simulate"), ("POST", "/api/v1/profiles/reload"),
    ("PUT", "/api/v1/profile"), ("PATCH", "/api/v1/profile/params"), ("POST", "/api/v1/rules"),
    ("PUT", "/api/v1/rules/mine"), ("POST", "/api/v1/faults/halt"), ("POST", "/api/v1/faults/resume"),
    ("POST", "/api/v1/connections/goaway"), ("POST", "/api/v1/connections/reset"),
    ("POST", "/api/v1/connections/close"),
  ]

  @Test func bodyOverOneMiBIsRejected() async throws {
    try await TestServer.run { server in
      let json = [("content-type", "application/json")]
      let large = #"{"x":""# + String(repeating: "a", count: 1 << 20) + #""}"#
      let chunk = String(repeating: "a", count: 65_536)
      let chunks = String(repeating: "10000\r\n\(chunk)\r\n", count: 17) + "0\r\n\r\n"
      for (method, path) in Self.changes {
        #expect(await server.client.request(method, path, json, body: large).status == 413, "\(path)")
        // Announced without being sent.
        let announced = await server.client.exchange(
          "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
            + "content-length: 99999999999\r\n\r\n")
        #expect(announced.status == 413, "\(path)")
        #expect(announced.headers["content-type"] == "application/problem+json")
        // In chunks without being announced.
        let chunked = json + [("transfer-encoding", "chunked")]
        #expect(await server.client.request(method, path, chunked, body: chunks).status == 413, "\(path)")
        #expect(await server.client.get("/livez").status == 200)
      }
    }
  }

  @Test func jsonContentTypeIsRequired() async throws {
    try await TestServer.run { server in
      for (method, path) in Self.changes {
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""]
        {
          let response = await server.client.request(method, path, [("content-type", type)], body: "{}")
          #expect(response.status == 415, "\(path) \(type)")
          #expect(response.hint.contains("application/json"), "\(path) \(type)")
        }
        #expect(await server.client.request(method, path, body: "{}").status == 415, "\(path)")
        let accepted = await server.client.request(
          method, path, [("content-type", "Application/JSON ; charset=utf-8")], body: "{}")
        #expect(accepted.status != 415, "\(path)")
      }
    }
  }

  @Test func encodedBodyIsRejected() async throws {
    try await TestServer.run { server in
      let json = ("content-type", "application/json")
      for (method, path) in Self.changes {
        for coding in ["gzip", "br", "deflate", "gzip, identity"] {
          let response = await server.client.request(method, path, [json, ("content-encoding", coding)], body: "{}")
          #expect(response.status == 415, "\(path) \(coding)")
          #expect(response.headers["accept-encoding"] == "identity")
          #expect(response.detail.contains(coding), "\(response.detail)")
        }
        let plain = await server.client.request(method, path, [json, ("content-encoding", "identity")], body: "{}")
        #expect(plain.status != 415, "\(path)")
      }
    }
  }

  private static let garbage = [
    "GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /api/v1/pushes HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: localhost\r\nx: \(String(repeating: "a", count: 100_000))\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: localhost\r\n\(String(repeating: "x: y\r\n", count: 2000))\r\n",
  ]

  @Test func garbageIsSurvived() async throws {
    try await TestServer.run { server in
      server.recordPush()
      for text in Self.garbage {
        let response = await server.client.exchange(text)
        #expect(response.status == 400 || response.status == 0, "\(text.prefix(60))")
        #expect(await server.client.get("/livez").status == 200)
      }
      for chunks in ["zz\r\nhello\r\n", "5\r\nhel", "-1\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n"] {
        let response = await server.client.exchange(
          "POST /api/v1/reset HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
            + "transfer-encoding: chunked\r\n\r\n\(chunks)", closesAfterwards: true)
        #expect(response.status == 400 || response.status == 0, "\(chunks)")
        #expect(server.state.inbox.snapshot().count == 1)
        #expect(await server.client.get("/livez").status == 200)
      }
    }
  }

  @Test func severalRequestsOnOneConnection() async throws {
    try await TestServer.run { server in
      let request = "GET /livez HTTP/1.1\r\nhost: localhost\r\n"
      let response = await server.client.exchange("\(request)\r\n\(request)\r\n\(request)connection: close\r\n\r\n")
      #expect(response.text.components(separatedBy: "HTTP/1.1 200 OK").count == 3)
    }
  }

  @Test func portInUseIsReported() async throws {
    try await TestServer.run { server in
      let error = await #expect(throws: ListenError.self) {
        try await AdminServer.start(server.state, at: server.admin.address, version: "1")
      }
      #expect(error?.isInUse == true)
      #expect(error?.description.contains("--admin") == true)
    }
  }

  @Test func silentClientDoesNotPreventStop() async throws {
    try await TestServer.run { server in
      let admin = try await AdminServer.start(
        server.state, at: MockServer.Endpoint(host: "127.0.0.1", port: 0), version: "1")
      let client = RawClient(port: admin.address.port)
      async let silent = client.exchange("GET /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n")
      while await client.get("/livez").status != 200 {}
      await admin.stop(gracePeriod: .milliseconds(100))
      _ = await silent
      #expect(await client.get("/livez").status == 0)
    }
  }
}
