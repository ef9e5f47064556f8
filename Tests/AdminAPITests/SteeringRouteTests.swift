import APNSRules
import AdminAPI
import Foundation
import Inbox
import MockAPNS
import TestSupport
import Testing

@Suite struct ClockRouteTests {
  @Test func clockIsFrozenAdvancedAndResumed() async throws {
    try await TestServer.run { server in
      let client = server.client
      #expect(await client.get("/api/v1/clock").object["mode"] as? String == "real")
      let frozen = await client.send("PUT", "/api/v1/clock", #"{"mode":"frozen","now":"2026-01-31T12:00:00Z"}"#)
      #expect(frozen.status == 200)
      #expect(frozen.text == #"{"mode":"frozen","now":"2026-01-31T12:00:00.000Z"}"#)
      #expect(server.state.clock.now == 1_769_860_800_000)
      let advanced = await client.send("POST", "/api/v1/clock/advance", #"{"by":"1h30m"}"#)
      #expect(advanced.text == #"{"mode":"frozen","now":"2026-01-31T13:30:00.000Z"}"#)
      #expect(await client.send("POST", "/api/v1/clock/advance", #"{"by":"-1.5s"}"#).text.contains("13:29:58.500Z"))
      #expect(await client.send("PUT", "/api/v1/clock", #"{"mode":"frozen"}"#).text.contains("13:29:58.500Z"))
      #expect(await client.send("PUT", "/api/v1/clock", #"{"mode":"real"}"#).object["mode"] as? String == "real")
      #expect(server.state.clock.now > 1_769_860_800_000 + 86_400_000)
    }
  }

  @Test(arguments: [
    ("PUT", "/api/v1/clock", "{}", "lacks mode", "frozen"),
    ("PUT", "/api/v1/clock", #"{"mode":"frozn"}"#, "mode cannot be", "Did you mean frozen?"),
    ("PUT", "/api/v1/clock", #"{"mode":"real","now":"2026-01-31T12:00:00Z"}"#, "mode frozen", "/clock/advance"),
    ("PUT", "/api/v1/clock", #"{"mode":"frozen","now":"noon"}"#, "now cannot be", "RFC 3339"),
    ("PUT", "/api/v1/clock", #"{"mode":"frozen","now":5}"#, "now must be a string", "omit it"),
    ("PUT", "/api/v1/clock", #"{"mdoe":"frozen"}"#, "\"mdoe\"", "Did you mean mode?"),
    ("POST", "/api/v1/clock/advance", "{}", "lacks by", "20m"),
    ("POST", "/api/v1/clock/advance", #"{"by":"soon"}"#, "by cannot be \"soon\"", "20m"),
    ("POST", "/api/v1/clock/advance", #"{"by":3600}"#, "by must be a string", "omit it"),
  ])
  func invalidRequestIsExplained(method: String, path: String, body: String, detail: String, hint: String) async throws
  {
    try await TestServer.run { server in
      let answer = await server.client.send(method, path, body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(answer.hint.contains(hint), "\(answer.hint)")
      #expect(server.state.clock.mode == .real)
    }
  }
}

@Suite struct DeviceRouteTests {
  @Test func deviceIsRegisteredShownAndRemoved() async throws {
    try await TestServer.run { server in
      let client = server.client
      server.state.clock.freeze(at: 1_769_860_800_000)
      let made = await client.send("PUT", "/api/v1/devices/AB12", #"{"state":"unregistered","topic":"com.acme.app"}"#)
      #expect(made.status == 201)
      #expect(made.headers["location"] == "/api/v1/devices/ab12")
      #expect(
        made.text
          == #"{"token":"ab12","topic":"com.acme.app","environment":null,"state":"unregistered","since":"2026-01-31T12:00:00.000Z"}"#
      )
      #expect(server.state.devices.load()["ab12"]?.state == .unregistered)
      let changed = await client.send(
        "PUT", "/api/v1/devices/ab12",
        #"{"token":"Ab12","state":"expired","environment":"production","since":"2026-01-01T00:00:00Z"}"#)
      #expect(changed.status == 200)
      #expect(await client.get("/api/v1/devices/aB12").text == changed.text)
      #expect(changed.object["topic"] is NSNull)
      #expect(changed.object["since"] as? String == "2026-01-01T00:00:00.000Z")
      #expect(await client.send("POST", "/api/v1/devices", #"{"token":"00FF"}"#).object["state"] as? String == "online")
      let list = await client.get("/api/v1/devices")
      #expect((list.object["items"] as? [[String: Any]])?.map { $0["token"] as? String } == ["00ff", "ab12"])
      #expect(list.object["total"] as? Int == 2)
      let gone = await client.request("DELETE", "/api/v1/devices/ab12")
      #expect(gone.status == 204)
      #expect(gone.body.isEmpty)
      #expect(await client.request("DELETE", "/api/v1/devices/ab12").status == 404)
      #expect(await client.get("/api/v1/devices/ab12").hint.contains("online for all topics"))
    }
  }

  @Test(arguments: [
    ("PUT", "/api/v1/devices/xyz", "{}", "is not a device token"),
    ("PUT", "/api/v1/devices/abc", "{}", "is not a device token"),
    ("PUT", "/api/v1/devices/\(String(repeating: "a", count: 402))", "{}", "is not a device token"),
    ("POST", "/api/v1/devices", "{}", "lacks token"),
    ("POST", "/api/v1/devices", #"{"token":"zz"}"#, "is not a device token"),
    ("PUT", "/api/v1/devices/ab12", #"{"token":"ab13"}"#, "another device token"),
    ("PUT", "/api/v1/devices/ab12", #"{"state":"offline"}"#, "state cannot be \"offline\""),
    ("PUT", "/api/v1/devices/ab12", #"{"environment":"prod"}"#, "environment cannot be \"prod\""),
    ("PUT", "/api/v1/devices/ab12", #"{"topic":""}"#, "topic is empty"),
    ("PUT", "/api/v1/devices/ab12", #"{"topic":["a"]}"#, "topic must be a string"),
    ("PUT", "/api/v1/devices/ab12", #"{"since":"yesterday"}"#, "since cannot be"),
    ("PUT", "/api/v1/devices/ab12", #"{"sate":"online"}"#, "\"sate\""),
  ])
  func explainsWhatItCannotRegister(method: String, path: String, body: String, detail: String) async throws {
    try await TestServer.run { server in
      let answer = await server.client.send(method, path, body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains(detail), "\(answer.detail)")
      #expect(!answer.hint.isEmpty)
      #expect(server.state.devices.load().count == 0)
    }
  }
}

@Suite struct ServerRouteTests {
  @Test func statusIsReported() async throws {
    try await TestServer.run({ $0.maxRecords = 2 }) { server in
      for _ in 0..<3 { server.recordPush() }
      let status = await server.client.get("/api/v1/status").object
      #expect(status["version"] as? String == "9.8.7")
      #expect(status["phase"] as? String == "ready")
      #expect(status["seed"] as? Int == 7)
      #expect(status["environment"] as? String == "sandbox")
      #expect(status["rules"] as? String == "apple")
      let addresses = try #require(status["addresses"] as? [String: Any])
      #expect((addresses["admin"] as? [String: Any])?["port"] as? Int == server.admin.address.port)
      #expect((addresses["apns"] as? [[String: Any]])?.first?["port"] as? Int == server.state.apnsAddresses.first?.port)
      #expect((status["ca"] as? [String: Any])?["fingerprint"] as? String == server.state.certificates.caFingerprint)
      let inbox = try #require(status["inbox"] as? [String: Any])
      #expect(inbox["records"] as? Int == 2)
      #expect(inbox["evicted"] as? Int == 1)
      #expect(inbox["last_seq"] as? Int == 3)
      #expect((status["limits"] as? [String: Any])?["max_records"] as? Int == 2)
      #expect((status["warnings"] as? [String])?.count == 1)
    }
  }

  @Test(
    arguments: [
      (nil, everything), ("", everything), ("{}", everything), (#"{"all":true}"#, everything),
      (#"{"all":false}"#, []), (#"{"all":false,"clock":true}"#, ["clock"]),
      (#"{"keep":["profile","clock"]}"#, ["inbox", "rules", "counters", "devices"]),
      (#"{"all":true,"keep":"inbox"}"#, ["rules", "profile", "counters", "clock", "devices"]),
      (#"{"keep":[]}"#, everything), (#"{"keep":null,"all":null,"inbox":null}"#, everything),
      (#"{"clock":true}"#, ["clock"]), (#"{"devices":true,"inbox":true}"#, ["inbox", "devices"]),
      (#"{"inbox":false}"#, []), (#"{"profile":true,"rules":true}"#, ["rules", "profile"]),
    ] as [(String?, [String])])
  func namedScopesAreReset(body: String?, scopes: [String]) async throws {
    try await TestServer.run { server in
      server.recordPush()
      server.state.clock.freeze(at: 0)
      server.state.devices.update { $0.set(Device(token: "ab12", since: 0)) }
      let answer = await server.client.request(
        "POST", "/api/v1/reset", body == nil ? [] : [("content-type", "application/json")], body: body)
      #expect(answer.status == 200)
      #expect(answer.object["reset"] as? [String] == scopes)
      #expect((server.state.inbox.snapshot().count == 0) == scopes.contains("inbox"))
      #expect((server.state.clock.mode == .real) == scopes.contains("clock"))
      #expect((server.state.devices.load().count == 0) == scopes.contains("devices"))
    }
  }

  private static let everything = ["inbox", "rules", "profile", "counters", "clock", "devices"]

  @Test(arguments: [
    #"{"inbx":true}"#, #"{"inbox":"yes"}"#, #"{"inbox":1}"#, #"{"keep":["inbx"]}"#, #"{"keep":"inbx"}"#,
  ])
  func unknownScopeResetsNothing(body: String) async throws {
    try await TestServer.run { server in
      server.recordPush()
      let answer = await server.client.send("POST", "/api/v1/reset", body)
      #expect(answer.status == 400)
      #expect(answer.detail.contains("inb"))
      #expect(server.state.inbox.snapshot().count == 1)
    }
  }
}
