import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

/// Requests that a browser could be tricked into sending, and others that must be rejected.
@Suite struct AccessTests {
  static let everyRoute = [
    ("GET", "/"), ("GET", "/ca.pem"), ("GET", "/api/v1/pushes"), ("DELETE", "/api/v1/pushes?all=true"),
    ("GET", "/api/v1/pushes/wait?timeout=0s"), ("GET", "/api/v1/export"), ("GET", "/api/v1/pushes/1/curl"),
    ("GET", "/api/v1/pushes/1/apns"),
    ("GET", "/api/v1/pushes/1"), ("GET", "/api/v1/pushes/1/payload"), ("GET", "/api/v1/status"),
    ("POST", "/api/v1/reset"), ("GET", "/api/v1/clock"), ("PUT", "/api/v1/clock"), ("POST", "/api/v1/clock/advance"),
    ("GET", "/api/v1/devices"), ("POST", "/api/v1/devices"), ("GET", "/api/v1/devices/ab"),
    ("PUT", "/api/v1/devices/ab"),
    ("DELETE", "/api/v1/devices/ab"), ("GET", "/api/v1/keys"), ("PUT", "/api/v1/keys/K"), ("DELETE", "/api/v1/keys/K"),
    ("GET", "/schema/fault-profile.json"), ("GET", "/api/v1/profiles"), ("GET", "/api/v1/profiles/flaky-503"),
    ("PUT", "/api/v1/profiles/mine"), ("DELETE", "/api/v1/profiles/mine"), ("POST", "/api/v1/profiles/lint"),
    ("POST", "/api/v1/profiles/simulate"), ("POST", "/api/v1/profiles/reload"), ("GET", "/api/v1/profile"),
    ("PUT", "/api/v1/profile"), ("DELETE", "/api/v1/profile"), ("PATCH", "/api/v1/profile/params"),
    ("GET", "/api/v1/rules"), ("POST", "/api/v1/rules"), ("GET", "/api/v1/rules/mine"), ("PUT", "/api/v1/rules/mine"),
    ("DELETE", "/api/v1/rules/mine"), ("GET", "/api/v1/rules/mine/explain"), ("POST", "/api/v1/faults/halt"),
    ("POST", "/api/v1/faults/resume"), ("GET", "/api/v1/connections"), ("GET", "/api/v1/connections/c1"),
    ("POST", "/api/v1/connections/goaway"), ("POST", "/api/v1/connections/reset"),
    ("POST", "/api/v1/connections/close"),
    ("GET", "/page/modules/main.js"), ("GET", "/page/nothing"), ("POST", "/api/v1/send"),
    ("GET", "/api/v1/nothing"), ("PATCH", "/api/v1/clock"),
  ]

  @Test(arguments: everyRoute)
  func foreignHostIsRejectedOnEveryRoute(method: String, path: String) async throws {
    try await TestServer.run { server in
      server.recordPush()
      let answer = await server.client.request(method, path, [("host", "evil.example")])
      #expect(answer.status == 403)
      #expect(answer.detail.contains("evil.example"))
      #expect(answer.hint.contains("--allow-host"))
      #expect(server.state.inbox.snapshot().count == 1)
    }
  }

  @Test(arguments: [
    ("localhost", 200), ("LOCALHOST:8197", 200), ("localhost.", 200), ("app.localhost", 200), ("127.0.0.1", 200),
    ("127.0.0.1:1", 200), ("192.168.1.5:8197", 200), ("[::1]", 200), ("[::1]:8197", 200), ("[fe80::1]", 200),
    ("apns-mock", 200), ("apns-mock:8197", 200), ("ci.internal", 200), ("CI.internal:80", 200),
    ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403), ("evillocalhost", 403),
    ("xci.internal", 403), ("localhost:8197:1", 403), ("localhost:port", 403), ("[::1", 403), ("[::1]x", 403),
    ("[evil]", 403), ("", 403), (".", 403), ("127.1", 403), ("0x7f000001", 403), ("localhost@evil.example", 403),
  ])
  func ownHostsAreAccepted(host: String, status: Int) async throws {
    try await TestServer.run({ $0.allowedHosts = ["ci.Internal"] }) { server in
      #expect(await server.client.get("/api/v1/status", [("host", host)]).status == status)
    }
  }

  @Test func hostIsRequiredExceptForHealthChecks() async throws {
    try await TestServer.run { server in
      #expect(await server.client.exchange("GET /api/v1/status HTTP/1.1\r\nconnection: close\r\n\r\n").status == 403)
      #expect(await server.client.exchange("GET /readyz HTTP/1.1\r\nconnection: close\r\n\r\n").status == 200)
      #expect(await server.client.get("/livez", [("host", "evil.example")]).status == 200)
    }
  }

  @Test(arguments: [
    ("http://evil.example", 403), ("null", 403), ("", 403), ("file://", 403), ("http://127.0.0.1", 403),
    ("http://127.0.0.1:1", 403), ("http://localhost:PORT", 403), ("http://127.0.0.1:PORT.evil.example", 403),
    ("ftp://127.0.0.1:PORT", 403), ("http://127.0.0.1:PORT", 200), ("https://127.0.0.1:PORT", 200),
    ("HTTP://127.0.0.1:PORT", 403),
  ])
  func onlyOwnOriginsMayUseTheAPI(origin: String, status: Int) async throws {
    try await TestServer.run { server in
      server.recordPush()
      let origin = origin.replacing("PORT", with: String(server.admin.address.port))
      let answer = await server.client.request("DELETE", "/api/v1/pushes?all=true", [("origin", origin)])
      #expect(answer.status == status)
      #expect((server.state.inbox.snapshot().count == 0) == (status == 200))
      #expect(await server.client.get("/api/v1/pushes", [("origin", origin)]).status == status)
    }
  }

  @Test(arguments: everyRoute.filter { $0.0 != "GET" })
  func foreignOriginIsRejectedOnEveryMutatingRoute(method: String, path: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.request(method, path, [("origin", "https://evil.example")])
      #expect(answer.status == 403)
      #expect(answer.detail.contains("https://evil.example"))
    }
  }

  @Test func originDefaultPortsAreImplied() async throws {
    try await TestServer.run { server in
      for (host, origin) in [("localhost", "http://localhost:80"), ("localhost:443", "https://localhost")] {
        let answer = await server.client.request("POST", "/api/v1/reset", [("host", host), ("origin", origin)])
        #expect(answer.status == 200, "\(host) \(origin)")
      }
    }
  }

  @Test func responsesNeverAllowOtherOrigins() async throws {
    try await TestServer.run { server in
      let preflight = await server.client.request(
        "OPTIONS", "/api/v1/pushes", [("origin", "https://evil.example"), ("access-control-request-method", "DELETE")])
      #expect(preflight.status == 403)
      for answer in [preflight, await server.client.get("/api/v1/pushes", [("origin", "https://evil.example")])] {
        #expect(!answer.headers.keys.contains { $0.hasPrefix("access-control") })
      }
    }
  }

  @Test(arguments: everyRoute.filter { $0.1.hasPrefix("/api/") })
  func tokenIsRequiredOnEveryRoute(method: String, path: String) async throws {
    try await TestServer.run({ $0.adminToken = "s3cret" }) { server in
      let answer = await server.client.request(method, path)
      #expect(answer.status == 401)
      #expect(answer.headers["www-authenticate"] == "Bearer")
      #expect(answer.headers["content-type"] == "application/problem+json")
    }
  }

  @Test(arguments: [
    ("Bearer s3cret", 200), ("bearer s3cret", 200), ("Bearer s3cre", 401), ("Bearer s3crett", 401),
    ("Bearer s3crets3cret", 401), ("Bearer ", 401), ("Bearer", 401), ("s3cret", 401), ("Basic s3cret", 401), ("", 401),
    ("Bearer S3CRET", 401),
  ])
  func tokenIsCompared(authorization: String, status: Int) async throws {
    try await TestServer.run({ $0.adminToken = "s3cret" }) { server in
      let answer = await server.client.get("/api/v1/status", [("authorization", authorization)])
      #expect(answer.status == status)
      #expect(!answer.text.contains("s3cret"))
    }
  }

  @Test(arguments: ["/", "/ca.pem", "/page/modules/main.js", "/livez", "/readyz"])
  func publicRoutesNeedNoToken(path: String) async throws {
    try await TestServer.run({ $0.adminToken = "s3cret" }) { server in
      #expect(await server.client.get(path).status == 200)
    }
  }

  @Test(arguments: everyRoute + [("GET", "/livez"), ("GET", "/readyz"), ("HEAD", "/api/v1/pushes")])
  func everyResponseHasTheSecurityHeaders(method: String, path: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.request(method, path)
      #expect(answer.headers["x-content-type-options"] == "nosniff")
      #expect(answer.headers["cache-control"] == "no-store")
      #expect(answer.headers["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
    }
  }

  @Test(arguments: [
    ("http://evil.example/api/v1/pushes", 403), ("http://evil.example:80/api/v1/pushes", 403),
    ("HTTP://EVIL.example/api/v1/pushes", 403), ("http://evil.example?x", 403), ("http://", 403),
    ("http://user@localhost/api/v1/pushes", 403),
    ("http://localhost/api/v1/pushes", 200), ("http://127.0.0.1:1/api/v1/pushes", 200),
    ("http://evil.example/livez", 200),
  ])
  func hostOfAnAbsoluteTargetIsChecked(target: String, status: Int) async throws {
    try await TestServer.run { server in
      let answer = await server.client.get(target)
      #expect(answer.status == status, "\(answer.text)")
      if status != 200 { #expect(!answer.hint.isEmpty) }
    }
  }

  @Test func originIsComparedWithAnAbsoluteTarget() async throws {
    try await TestServer.run { server in
      let foreign = [("origin", "http://127.0.0.1:\(server.admin.address.port)")]
      #expect(await server.client.request("DELETE", "http://localhost/api/v1/devices/ab", foreign).status == 403)
      #expect(await server.client.request("DELETE", "/api/v1/devices/ab", foreign).status == 404)
    }
  }
}
