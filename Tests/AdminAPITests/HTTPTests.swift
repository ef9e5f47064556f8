import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
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

  @Test func caCertificateIsServed() async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/ca.pem")
      #expect(answer.text == server.state.certificates.caPEM)
      #expect(answer.text.hasPrefix("-----BEGIN CERTIFICATE-----"))
    }
  }

  @Test func rootPageShowsAddresses() async throws {
    try await TestServer.run { server in
      let answer = await server.client.get("/")
      #expect(answer.headers["content-type"] == "text/plain; charset=utf-8")
      #expect(answer.text.contains("apns-mock 9.8.7"))
      #expect(answer.text.contains("https://\(server.state.apnsAddresses[0])"))
      #expect(answer.text.contains("http://127.0.0.1:\(server.admin.address.port)/api/v1/pushes"))
      #expect(!answer.text.contains(server.state.certificates.path))
    }
  }

  @Test(arguments: [
    ("/api/v1/pushs", "Did you mean /api/v1/pushes?"), ("/api/v1/statuz", "Did you mean /api/v1/status?"),
    ("/api/v1", "/openapi.json"), ("/favicon.ico", "/openapi.json"), ("/api/v1/pushes/1/payload/x", "/api/v1/pushes"),
    ("/%2e%2e/etc/passwd", "/openapi.json"), ("/readyz/x", "Did you mean /readyz?"),
  ])
  func unknownPathGetsASuggestion(path: String, hint: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get(path)
      #expect(answer.status == 404)
      #expect(answer.headers["content-type"] == "application/problem+json")
      #expect(answer.object["title"] as? String == "Not Found")
      #expect(answer.object["status"] as? Int == 404)
      #expect(answer.hint.contains(hint), "\(answer.hint)")
      #expect(answer.hint.utf8.count < 100, "it does not list every path")
    }
  }

  @Test(arguments: [
    ("POST", "/api/v1/pushes", "GET, DELETE, HEAD"), ("DELETE", "/api/v1/clock", "GET, PUT, HEAD"),
    ("GET", "/api/v1/reset", "POST"), ("PATCH", "/api/v1/devices/ab", "GET, PUT, DELETE, HEAD"),
    ("PURGE", "/livez", "GET, HEAD"), ("OPTIONS", "/api/v1/status", "GET, HEAD"), ("HEAD", "/api/v1/reset", "POST"),
    ("PUT", "/api/v1/profiles/lint", "POST"), ("GET", "/api/v1/connections/goaway", "POST"),
    ("POST", "/api/v1/profile/params", "PATCH"), ("POST", "/api/v1/profiles/mine", "GET, PUT, DELETE, HEAD"),
  ])
  func wrongMethodListsAllowedMethods(method: String, path: String, allow: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.request(method, path)
      #expect(answer.status == 405)
      #expect(answer.headers["allow"] == allow)
      #expect(answer.headers["content-type"] == "application/problem+json")
      if method != "HEAD" { #expect(answer.hint.contains(allow)) }
    }
  }

  @Test(arguments: AccessTests.everyRoute.filter { $0.0 == "GET" }.map(\.1) + ["/livez", "/readyz"])
  func headIsGetWithoutABody(path: String) async throws {
    try await TestServer.run { server in
      server.recordPush()
      let (get, head) = (await server.client.get(path), await server.client.request("HEAD", path))
      #expect(head.status == get.status)
      #expect(head.headers["content-type"] == get.headers["content-type"])
      // The status contains an uptime, and a streamed response has no length to compare.
      if !path.hasSuffix("/status"), let length = get.headers["content-length"] {
        #expect(head.headers["content-length"] == length)
      }
      #expect(head.body.isEmpty)
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

  @Test(arguments: changes)
  func bodyOverOneMiBIsRejected(method: String, path: String) async throws {
    try await TestServer.run { server in
      let json = [("content-type", "application/json")]
      let large = #"{"x":""# + String(repeating: "a", count: 1 << 20) + #""}"#
      #expect(await server.client.request(method, path, json, body: large).status == 413)
      // Announced without being sent, and in chunks without being announced.
      let announced = json + [("content-length", "99999999999")]
      let answer = await server.client.exchange(
        "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
          + announced.map { "\($0): \($1)\r\n" }.joined() + "\r\n")
      #expect(answer.status == 413)
      #expect(answer.headers["content-type"] == "application/problem+json")
      let chunk = String(repeating: "a", count: 65_536)
      let chunks = String(repeating: "10000\r\n\(chunk)\r\n", count: 17) + "0\r\n\r\n"
      #expect(
        await server.client.request(method, path, json + [("transfer-encoding", "chunked")], body: chunks).status == 413
      )
      #expect(await server.client.get("/livez").status == 200)
    }
  }

  @Test(arguments: changes)
  func jsonContentTypeIsRequired(method: String, path: String) async throws {
    try await TestServer.run { server in
      for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""] {
        let answer = await server.client.request(method, path, [("content-type", type)], body: "{}")
        #expect(answer.status == 415, "\(type)")
        #expect(answer.hint.contains("application/json"))
      }
      #expect(await server.client.request(method, path, body: "{}").status == 415)
      let accepted = await server.client.request(
        method, path, [("content-type", "Application/JSON ; charset=utf-8")], body: "{}")
      #expect(accepted.status != 415)
    }
  }

  @Test(arguments: changes)
  func encodedBodyIsRejected(method: String, path: String) async throws {
    try await TestServer.run { server in
      let json = ("content-type", "application/json")
      for coding in ["gzip", "br", "deflate", "gzip, identity"] {
        let answer = await server.client.request(method, path, [json, ("content-encoding", coding)], body: "{}")
        #expect(answer.status == 415, "\(coding)")
        #expect(answer.headers["accept-encoding"] == "identity")
        #expect(answer.detail.contains(coding))
      }
      let plain = await server.client.request(method, path, [json, ("content-encoding", "identity")], body: "{}")
      #expect(plain.status != 415)
    }
  }

  @Test(arguments: [
    ("[]", "no object"), ("3", "no object"), ("null", "no object"), ("{", "no member name in quotes at byte 1"),
    ("{\"by\":\"1h\",}", "at byte 11"), ("hello", "no JSON value at byte 0"), ("{\"b\u{0}\":1}", "at byte"),
    (String(repeating: "[", count: 100_000), "nested deeper"),
    (#"{"by":\#(String(repeating: "[", count: 100_000))"#, "nested deeper"),
    (#"{"a":1,"b":2}"#, "\"a\""),
  ])
  func saysWhatIsWrongWithABody(body: String, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send("POST", "/api/v1/clock/advance", body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
    }
  }

  @Test(arguments: [
    "GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /api/v1/pushes HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: localhost\r\nx: \(String(repeating: "a", count: 100_000))\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: localhost\r\n\(String(repeating: "x: y\r\n", count: 2000))\r\n",
  ])
  func garbageIsSurvived(text: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.exchange(text)
      #expect(answer.status == 400 || answer.status == 0)
      #expect(await server.client.get("/livez").status == 200)
    }
  }

  @Test(arguments: ["zz\r\nhello\r\n", "5\r\nhel", "-1\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n"])
  func invalidChunksAreSurvived(body: String) async throws {
    try await TestServer.run { server in
      server.recordPush()
      let answer = await server.client.exchange(
        "POST /api/v1/reset HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
          + "transfer-encoding: chunked\r\n\r\n\(body)", closesAfterwards: true)
      #expect(answer.status == 400 || answer.status == 0)
      #expect(server.state.inbox.snapshot().count == 1)
      #expect(await server.client.get("/livez").status == 200)
    }
  }

  @Test func severalRequestsOnOneConnection() async throws {
    try await TestServer.run { server in
      let request = "GET /livez HTTP/1.1\r\nhost: localhost\r\n"
      let answer = await server.client.exchange("\(request)\r\n\(request)\r\n\(request)connection: close\r\n\r\n")
      #expect(answer.text.components(separatedBy: "HTTP/1.1 200 OK").count == 3)
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
      let admin = try await AdminServer.start(server.state, at: Endpoint(host: "127.0.0.1", port: 0), version: "1")
      let client = RawClient(port: admin.address.port)
      async let silent = client.exchange("GET /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n")
      while await client.get("/livez").status != 200 {}
      await admin.stop(gracePeriod: .milliseconds(100))
      _ = await silent
      #expect(await client.get("/livez").status == 0)
    }
  }
}
