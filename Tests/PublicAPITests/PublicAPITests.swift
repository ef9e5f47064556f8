import Foundation
import MockAPNS
import APNSMockTestSupport
import Testing

@Suite struct PublicAPITests {
  private static let device = "ab12"

  @Test func acceptedPushIsInTheInbox() async throws {
    try await withServer { server in
      #expect(try await send(to: server.settings) == 200)

      let push = try #require(try server.pushes(matching: "topic:com.example.app").first)
      #expect(push.seq == 1)
      #expect(push.attempt == 1)
      #expect(push.deviceToken == Self.device)
      #expect(push.topic == "com.example.app")
      #expect(push.pushType == "alert")
      #expect(push.priority == 10)
      #expect(push.apnsID != nil)
      #expect(push.headers.contains { $0.name == "apns-topic" && $0.value == "com.example.app" })
      #expect(String(decoding: push.payload, as: UTF8.self) == #"{"aps":{"alert":"Hello"}}"#)
      #expect(push.outcome == .accepted)
      #expect(push.isAccepted)
      #expect(push.status == 200)
      #expect(push.reason == nil)
      #expect(push.description == "push 1, attempt 1 to ab12: accepted, 200")
      #expect(push.json.contains(#""seq":1"#))
      #expect(try server.pushes(matching: "status:410").isEmpty)
      #expect(throws: MockServerError.self) { try server.pushes(matching: "stauts:410") }
    }
  }

  @Test func waitReturnsThePushesOrNamesTheNearest() async throws {
    try await withServer { server in
      async let pushes = server.wait(for: 1, matching: "token:ab12")
      _ = try await send(to: server.settings)
      #expect(try await pushes.map(\.seq) == [1])

      let error = await #expect(throws: MockServerError.self) {
        try await server.wait(for: 1, matching: "topic:com.example.app status:410", timeout: .milliseconds(10))
      }
      #expect(error?.kind == .timedOut)
      #expect(error?.description.contains("status: wanted") == true)
    }
  }

  @Test func devicesAndClockAffectTheResponse() async throws {
    try await withServer { server in
      try server.unregister(device: Self.device)
      server.advanceClock(by: .seconds(60))
      #expect(try await send(to: server.settings) == 410)
      #expect(try server.pushes().first?.reason == "Unregistered")

      server.reset([.devices])
      #expect(try server.pushes().count == 1)
      #expect(try await send(to: server.settings) == 200)
      #expect(throws: MockServerError.self) { try server.unregister(device: "not hexadecimal") }
    }
  }

  @Test func profilesAndRulesInjectFaults() async throws {
    try await withServer { server in
      try server.useProfile("flaky-503?rate=1", seed: 7)
      #expect(try await send(to: server.settings) == 503)
      #expect(try server.pushes().first?.faultRule != nil)
      server.pauseFaults()
      #expect(try await send(to: server.settings) == 200)
      server.reset()
      #expect(try server.pushes().isEmpty)

      let name = try server.addRule(#"{"do": {"respond": {"reason": "InternalServerError"}}, "trigger": {"every": 1}}"#)
      #expect(try await send(to: server.settings) == 500)
      server.removeRule(name)
      #expect(try await send(to: server.settings) == 200)
      #expect(throws: MockServerError.self) { try server.useProfile("no-such-profile") }
      #expect(throws: MockServerError.self) { try server.addRule("do: nothing") }
    }
  }

  @Test func verificationReportsWhatDiffers() async throws {
    try await withServer { server in
      _ = try await send(to: server.settings)
      try await server.verify(#"{"expect": [{"match": "token:ab12", "count": {"exactly": 1}}]}"#)
      let error = await #expect(throws: MockServerError.self) {
        try await server.verify(#"{"expect": [{"name": "two", "match": "token:ab12", "count": {"exactly": 2}}]}"#)
      }
      #expect(error?.kind == .verificationFailed)
      #expect(error?.description.contains("two") == true)
      #expect(server.findings().isEmpty)
    }
  }

  @Test func invalidKeyIsRejected() async throws {
    try await withServer { server in
      #expect(throws: MockServerError.self) {
        try server.trustKey(id: "ABCDEFGHIJ", teamID: "ABCDEFGHIJ", publicKey: "not a key")
      }
    }
  }

  @Test func temporaryFolderIsRemovedOnStop() async throws {
    let server = try await MockServer.start()
    #expect(FileManager.default.fileExists(atPath: server.settings.caPath))
    await server.stop()
    #expect(!FileManager.default.fileExists(atPath: server.settings.caPath))
  }

  /// A server that cannot start leaves no folder with private keys, wherever it fails.
  @Test(arguments: ["fixture", "authority", "address", "name"])
  func temporaryFolderIsRemovedAfterAFailure(of part: String) async throws {
    var configuration = MockServer.Configuration.ephemeral()
    let folder = configuration.certificates
    switch part {
    case "fixture": configuration.fixtures = ["/nowhere/fixtures.yaml"]
    case "authority": configuration.clientAuthorities = ["/nowhere/ca.pem"]
    case "address": configuration.apns = [MockServer.Endpoint(host: "192.0.2.1", port: 0)]
    default: configuration.certificateNames = ["not a name"]
    }
    await #expect(throws: (any Error).self) { _ = try await MockServer.start(configuration) }
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  @Test func serverWithoutReferencesStops() async throws {
    let settings = try await Self.settingsOfADroppedServer()
    #expect(!FileManager.default.fileExists(atPath: settings.caPath))
    // Its port is free again once its event loops have ended.
    var configuration = MockServer.Configuration.ephemeral()
    configuration.apns = [MockServer.Endpoint(host: settings.host, port: settings.port)]
    var restarted: MockServer?
    for _ in 0..<600 {
      restarted = try? await MockServer.start(configuration)
      if restarted != nil { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    try await #require(restarted).stop()
  }

  private static func settingsOfADroppedServer() async throws -> MockServer.ClientSettings {
    let server = try await MockServer.start()
    #expect(FileManager.default.fileExists(atPath: server.settings.caPath))
    return server.settings
  }

  /// Runs `body` with a server of its own.
  private func withServer(_ body: (MockServer) async throws -> Void) async throws {
    var configuration = MockServer.Configuration.ephemeral()
    configuration.threads = 1
    configuration.strictness = .apple
    try await MockServer.withServer(configuration, body)
  }

  /// Sends an alert with curl and the provider certificate, and returns the status of the response.
  private func send(to settings: MockServer.ClientSettings) async throws -> Int? {
    let curl = try await ChildProgram.run([
      "curl", "--silent", "--http2", "--output", "/dev/null", "--write-out", "%{http_code}",
      "--cacert", settings.caPath, "--cert", settings.certificatePath, "--key", settings.certificateKeyPath,
      "--header", "apns-topic: \(settings.topic)", "--header", "apns-push-type: alert",
      "--data", #"{"aps":{"alert":"Hello"}}"#, "\(settings.url)/3/device/\(Self.device)",
    ])
    return Int(curl.output)
  }
}
