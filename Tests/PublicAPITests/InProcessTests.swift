import APNSMockTestSupport
import Foundation
import Logging
import MockAPNS
import Testing

/// What a Swift test does with a server of its own, without the trait of `MockAPNSTesting`.
@Suite struct InProcessTests {
  private struct Payload: Decodable, Equatable {
    struct APS: Decodable, Equatable { let alert: String }
    let aps: APS
  }

  @Test func serverStopsAfterTheBody() async throws {
    let (path, sum) = try await MockServer.withServer(.small) { server in
      #expect(FileManager.default.fileExists(atPath: server.settings.caPath))
      return (server.settings.caPath, 3)
    }
    #expect(sum == 3)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test func serverStopsAfterAnErrorOfTheBody() async throws {
    var configuration = MockServer.Configuration.small
    let folder = configuration.certificates
    configuration.seed = 7
    await #expect(throws: CancellationError.self) {
      try await MockServer.withServer(configuration) { _ in throw CancellationError() }
    }
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  /// The variable with which `untrustingClient` passes a logger.
  private static let variable = "APNS_MOCK_TEST_LOGS"

  @Test func untrustingClient() async throws {
    func connect(_ server: MockServer) async throws {
      let outcome = try await ChildProgram.run(["curl", "--silent", server.settings.url])
      #expect(outcome.status != 0)
    }
    if ProcessInfo.processInfo.environment[Self.variable] == nil {
      try await MockServer.withServer(.small, connect)
    } else {
      try await MockServer.withServer(.small, logger: Logger(label: "apns-mock"), connect)
    }
  }

  #if os(Linux)
    /// Test bundles of macOS cannot be started directly.
    @Test(arguments: [false, true]) func nothingIsLoggedWithoutALogger(hasLogger: Bool) async throws {
      let program = [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "untrustingClient"]
      let output = try await ChildProgram.run((hasLogger ? ["env", "\(Self.variable)=1"] : []) + program).output
      #expect(output.contains("untrustingClient() passed"))
      #expect(output.contains("the client does not trust this server's CA") == hasLogger, "\(output)")
    }
  #endif

  /// Each mistake in a configuration is an error that users can catch, in the terms of the library.
  @Test(arguments: ["fixture", "authority", "address", "in use", "name"])
  func startErrorsSpeakOfTheLibrary(_ part: String) async throws {
    try await MockServer.withServer(.small) { other in
      var configuration = MockServer.Configuration.small
      var kind = MockServerError.Kind.invalidCertificates
      var name = "MockServer.Configuration.certificateNames"
      switch part {
      case "fixture":
        (configuration.fixtures, kind, name) = (["/nowhere/fixtures.yaml"], .invalidInput, "fixtures.yaml")
      case "authority": (configuration.clientAuthorities, name) = (["/nowhere/ca.pem"], "/nowhere/ca.pem")
      case "address":
        configuration.apns = [MockServer.Endpoint(host: "192.0.2.1", port: 0)]
        (kind, name) = (.addressUnavailable, "MockServer.Configuration.apns")
      case "in use":
        configuration.apns = other.addresses
        (kind, name) = (.addressUnavailable, "already in use")
      default: configuration.certificateNames = ["not a name"]
      }
      let error = await #expect(throws: MockServerError.self) { try await MockServer.start(configuration) }
      #expect(error?.kind == kind)
      #expect(error?.description.contains(name) == true, "\(error?.description ?? "")")
      #expect(error?.description.contains("--") == false, "\(error?.description ?? "")")
    }
  }

  @Test func limitsSpeakOfTheLibrary() async throws {
    var configuration = MockServer.Configuration.small
    (configuration.maxDevices, configuration.maxRecords) = (1, 1)
    try await MockServer.withServer(configuration) { server in
      try server.register(device: "ab12")
      let limit = #expect(throws: MockServerError.self) { try server.register(device: "cd34") }
      #expect(limit?.description.contains("raise MockServer.Configuration.maxDevices") == true)
      for _ in 1...2 { try await server.send() }
      let evicted = #expect(throws: MockServerError.self) { try server.check(failOnFindings: true) }
      #expect(evicted?.kind == .inconclusive)
      #expect(evicted?.description.hasSuffix("raise MockServer.Configuration.maxRecords") == true)
    }
  }

  @Test func verifyTakesYAMLJSONAndValues() async throws {
    try await MockServer.withServer(.small) { server in
      try await server.send()
      try await server.verify("expect: [{match: {token: ab12}, count: {exactly: 1}}]\nnothing_lost: true")
      try await server.verify(#"{"expect": [{"match": "token:ab12"}]}"#)
      try await server.verify(
        .init(
          .exactly(1, .token("ab12") && .accepted), .atLeast(1, .topic("com.example.*")), .atMost(0, .status(410)),
          noOthers: true, nothingLost: true, noFindings: ["retried-410"]))
      let failure = await #expect(throws: MockServerError.self) {
        try await server.verify(.init(.exactly(2, .payload("/aps/alert", "Hello"))))
      }
      #expect(failure?.kind == .verificationFailed)
      let misspelled = await #expect(throws: MockServerError.self) { try await server.verify("expect: [{mach: x}]") }
      #expect("\(try #require(misspelled))".hasPrefix("/expect/0/mach: unknown, did you mean \"match\"?"))
      for text in ["expect: [\n\t- 1]", "expect: 3", "", "[]"] {
        let error = await #expect(throws: MockServerError.self) { try await server.verify(text) }
        #expect(error?.kind == .invalidInput, "\(text)")
      }
    }
  }

  @Test func failuresNameTheCallAndTheNearestPush() async throws {
    try await MockServer.withServer(.small) { server in
      try await server.send()
      // Not in a macro, whose line would be that of the call.
      let wait = await failure { try await server.wait(matching: .token("cd34"), timeout: .milliseconds(10)) }
      #expect(wait?.location?.line == #line - 1)
      #expect(wait?.location?.file == #filePath)
      #expect(wait?.description.contains("token: wanted \"cd34\", found \"ab12\"") == true)
      #expect(wait?.description.hasSuffix(#"    alert  {"aps":{"alert":"Hello"}}"#) == true)

      try server.addRule(.init(do: .respond(status: 503)))
      try await server.send()
      let lost = await failure { try await server.assertNothingLost() }
      #expect(lost?.location?.line == #line - 1)
      let count = await failure { try await server.verify(.init(.exactly(3, .token("ab12")))) }
      #expect(count?.location?.line == #line - 1)
      let findings = await failure { try server.check(failOnFindings: true) }
      #expect(findings?.location?.line == #line - 1)
      #expect(server.report().contains(#"     alert  {"aps":{"alert":"Hello"}}"#))
    }
  }

  private func failure(_ body: () async throws -> Void) async -> MockServerError? {
    do {
      try await body()
      return nil
    } catch {
      return error as? MockServerError
    }
  }

  @Test func pushesAreValues() async throws {
    try await MockServer.withServer(.small) { server in
      try await server.send()
      try await server.send()
      let pushes = try server.pushes()
      #expect(try pushes == server.pushes())
      #expect(pushes[0] != pushes[1])
      #expect(pushes[0].header("APNS-Topic") == "com.example.app")
      #expect(pushes[0].header("apns-id") == nil)
      #expect(try pushes[0].payload(as: Payload.self) == Payload(aps: .init(alert: "Hello")))
      #expect(throws: DecodingError.self) { try pushes[0].payload(as: [Int].self) }
    }
  }

  @Test func incomingPushesAreASequence() async throws {
    try await MockServer.withServer(.small) { server in
      try await server.send()
      async let seqs = server.incomingPushes(matching: .accepted).prefix(3).reduce(into: []) { $0.append($1.seq) }
      for _ in 1...2 { try await server.send() }
      #expect(try await seqs == [1, 2, 3])
      await #expect(throws: MockServerError.self) {
        for try await _ in server.incomingPushes(matching: "stauts:200") {}
      }
      async let count = server.incomingPushes().reduce(0) { count, _ in count + 1 }
      await server.stop()
      #expect(try await count == 3)
    }
  }

  @Test func rulesAreValues() async throws {
    try await MockServer.withServer(.small) { server in
      let name = try server.addRule(.init("third", when: .topic("com.example.*"), every: 3, do: .respond(status: 503)))
      #expect(name == "third")
      for _ in 1...3 { try await server.send() }
      #expect(try server.pushes(matching: .status(503) && .rule("third")).map(\.seq) == [3])
      try server.addRule(.init("third", probability: 1, times: 1, do: .respond(reason: "InternalServerError")))
      try await server.send()
      #expect(try server.pushes(matching: .reason("InternalServerError")).count == 1)
      for action in [.goAway, .resetStream, .resetConnection, .delay(.seconds(2))] as [MockServer.Rule.Action] {
        try server.addRule(.init("other", times: 1, do: action))
      }
      #expect(throws: MockServerError.self) { try server.addRule(.init(every: 0, do: .goAway)) }
    }
  }

  /// Values with every character that has a meaning in queries.
  @Test(arguments: ["a b", "\"", "\\", "a:b", ">3", "!x", "\n\t", "é"]) func queryValuesAreLiteral(_ text: String)
    async throws
  {
    try await MockServer.withServer(.small) { server in
      let pushes = try server.pushes(matching: .topic(text) && .payload("/aps/alert", text))
      #expect(pushes.isEmpty)
    }
  }

  @Test func clockAndDevicesCanBeRead() async throws {
    try await MockServer.withServer(.small) { server in
      server.freezeClock()
      let before = server.now
      server.advanceClock(by: .seconds(60))
      #expect(server.now.timeIntervalSince(before) == 60)

      let app = MockServer.Device.App(
        bundleID: "com.example.app", environment: .sandbox, tokens: ["alert": ["ab12"], "liveactivity_start": ["9c01"]])
      let device = MockServer.Device(id: "anna", apps: [app])
      let channel = MockServer.BroadcastChannel(
        bundleID: "com.example.app", environment: .sandbox, id: "dHN0LXNyY2gtY2hubA==", messageStoragePolicy: 1)
      try server.load(devices: [device], channels: [channel])
      #expect(server.devices == [device])
      #expect(server.channels == [channel])
      #expect(server.notifications(on: "anna") == [])
      #expect(server.notifications(on: "bert") == nil)
      try await server.send()
      #expect(server.notifications(on: "anna")?.map(\.seq) == [1])

      try server.load(fixtures: "devices: [{id: bert, state: offline}]")
      #expect(server.devices.map(\.id) == ["anna", "bert"])
      #expect(server.devices.last?.state == .offline)
      let error = #expect(throws: MockServerError.self) { try server.load(fixtures: "devices: [{id: ab12}]") }
      #expect(error?.kind == .invalidInput)
      #expect(server.devices.count == 2)
    }
  }
}

extension MockServer.Configuration {
  /// A configuration for a test that sends few pushes.
  fileprivate static var small: MockServer.Configuration {
    var configuration = MockServer.Configuration.ephemeral()
    configuration.threads = 1
    configuration.shutdownTimeout = .milliseconds(100)
    return configuration
  }
}

extension MockServer {
  /// Sends an alert to the device token ab12 with curl and the provider certificate.
  fileprivate func send() async throws {
    _ = try await ChildProgram.run([
      "curl", "--silent", "--http2", "--output", "/dev/null", "--cacert", settings.caPath,
      "--cert", settings.certificatePath, "--key", settings.certificateKeyPath,
      "--header", "apns-topic: \(settings.topic)", "--header", "apns-push-type: alert",
      "--data", #"{"aps":{"alert":"Hello"}}"#, "\(settings.url)/3/device/ab12",
    ])
  }
}
