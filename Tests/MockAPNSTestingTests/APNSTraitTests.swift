import MockAPNS
import Synchronization
import Testing

@testable import MockAPNSTesting

@Suite struct APNSTraitTests {
  @Test(.apns()) func serverAcceptsPushes() async throws {
    let server = try MockServer.current
    #expect(try await server.push() == 200)
    #expect(try server.pushes().map(\.isAccepted) == [true])
  }

  @Test(.apns(profile: "flaky-503?rate=1", seed: 7)) func profileAndSeedAreActive() async throws {
    let server = try MockServer.current
    #expect(try await server.push() == 503)
    #expect(server.state.faults.selection.seed == 7)

    server.reset()
    #expect(server.state.faults.selection.selectedProfile.reference == "flaky-503?rate=1")
  }

  @Test(.apns { $0.strictness = .strict }) func configurationIsChanged() throws {
    #expect(try MockServer.current.state.configuration.strictness == .strict)
  }

  @Test func serverIsMissingWithoutTheTrait() {
    let error = #expect(throws: MissingServerError.self) { try MockServer.current }
    #expect(error?.description.contains("add the trait `.apns()`") == true)
  }

  @Test func serverStopsAfterTheTest() async throws {
    let folder = Mutex("")
    try await run(.apns()) {
      let path = try MockServer.current.settings.caPath
      #expect(exists(path))
      folder.withLock { $0 = path }
    }
    #expect(!exists(folder.withLock { $0 }))
  }

  @Test func testDoesNotRunWithAnUnknownProfile() async {
    let error = await #expect(throws: MockServerError.self) {
      try await run(.apns(profile: "flaky-504")) { Issue.record("The test ran.") }
    }
    #expect(error?.description.contains("flaky-504") == true)
    #expect(error?.description.contains("flaky-503") == true)
  }

  @Test func invalidParameterIsAnError() async {
    await #expect(throws: MockServerError.self) { try await run(.apns(profile: "flaky-503?rat=1")) {} }
  }

  private func run(_ trait: APNSTrait, _ function: @Sendable () async throws -> Void) async throws {
    let test = try #require(Test.current)
    try await trait.provideScope(for: test, testCase: Test.Case.current, performing: function)
  }
}

@Suite(.apns(profile: "flaky-503?rate=1", seed: 7, failOnFindings: false)) struct APNSTraitOnSuiteTests {
  private let server: MockServer

  init() throws { server = try MockServer.current }

  @Test func initializerAndTestHaveTheSameServer() async throws {
    #expect(try MockServer.current === server)
    #expect(try await server.push() == 503)
  }

  @Test(.apns(profile: "healthy")) func innermostSettingsTakePrecedence() async throws {
    #expect(try await server.push() == 200)
    #expect(server.state.faults.selection.selectedProfile.reference == "healthy")
    #expect(server.state.faults.selection.seed == 7)
  }

  @Test(.apns(seed: 8)) func missingSettingsAreThoseOfTheSuite() async throws {
    #expect(try await server.push() == 503)
    #expect(server.state.faults.selection.seed == 8)
  }

  @Suite(.apns(profile: "healthy")) struct Inner {
    @Test func innermostSuiteTakesPrecedence() async throws {
      #expect(try await MockServer.current.push() == 200)
    }
  }
}

@Suite(.apns()) struct SeparateServerTests {
  private static let ports = Mutex<[Int: MockServer]>([:])

  @Test(arguments: 0..<8) func eachCaseHasItsOwnServer(number: Int) async throws {
    let server = try MockServer.current
    #expect(try await server.push() == 200)
    #expect(try server.pushes().map(\.seq) == [1])
    // Stopped servers stay in the table, so that two cases cannot have servers at the same address in memory.
    let isNew = Self.ports.withLock { servers in
      defer { servers[number] = server }
      return !servers.values.contains { $0 === server }
    }
    #expect(isNew)
  }

  @Test func childTasksHaveTheServer() async throws {
    let server = try MockServer.current
    async let status = MockServer.current.push()
    #expect(try await status == 200)
    #expect(try await Task { try MockServer.current }.value === server)
  }
}
