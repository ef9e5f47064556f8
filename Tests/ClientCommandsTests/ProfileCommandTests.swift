import APNSMockAdminAPI
import ArgumentParser
import APNSMockFaultModel
import APNSMockFaults
import MockAPNS
import APNSMockTestSupport
import APNSMockNotation
import Testing

@testable import APNSMockClientCommands

/// The commands `apns-mock profile`, `rule`, `faults` and `reset`, against a running server.
@Suite struct ProfileCommandTests {
  private struct Root: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "apns-mock", subcommands: CommandGroups.serving + CommandGroups.faults)
  }

  private static func flags(_ mock: TestServer) -> [String] { ["--json", "--admin", mock.admin.address.description] }

  private static func run(_ arguments: [String], _ mock: TestServer) async throws {
    var command = try Root.parseAsRoot(arguments + flags(mock))
    if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
  }

  private static func failure(_ arguments: [String], _ mock: TestServer) async throws -> CommandFailure {
    try await #require(throws: CommandFailure.self) { try await run(arguments, mock) }
  }

  @Test func profileIsActivatedAdjustedAndDeactivated() async throws {
    try await TestServer.run { mock in
      let faults = mock.state.faults
      try await Self.run(["profile", "use", "flaky-503?rate=0.5", "--seed", "7", "--ttl", "1h"], mock)
      #expect(faults.selection.selectedProfile.reference == "flaky-503?rate=0.5")
      #expect(faults.selection.seed == 7)
      #expect(faults.selection.endsAt != nil)
      try await Self.run(["profile", "set", "rate=0.25", "streak=3"], mock)
      #expect(faults.selection.selectedProfile.reference == "flaky-503?rate=0.25&streak=3")
      try await Self.run(["profile", "show"], mock)
      try await Self.run(["profile", "off"], mock)
      #expect(faults.selection.profile.name == "healthy")
    }
  }

  @Test func fileIsUploadedAndActivated() async throws {
    let folder = try TemporaryFolder()
    let good = try folder.file("file.yaml", "name: mine\nextends: [healthy]\n")
    let bad = try folder.file("bad.yaml", "name: bad\nsumary: x\n")
    try await TestServer.run { mock in
      try await Self.run(["profile", "use", good], mock)
      #expect(mock.state.faults.selection.profile.name == "mine")
      let failure = try await Self.failure(["profile", "use", bad], mock)
      #expect(failure.status == .usage)
      #expect(failure.lines.first?.hasPrefix("error: \(bad):2:1: sumary: unknown, did you mean \"summary\"?") == true)
      #expect(mock.state.faults.selection.profile.name == "mine")
    }
  }

  @Test(arguments: [
    (["profile", "use", "flaky-504"], "flaky-503"), (["profile", "use", "flaky-503?rate=2"], "rate"),
    (["profile", "set", "speed=1"], "speed"), (["profile", "set", "rate"], "of the form PARAMETER=VALUE"),
    (["profile", "set", "a=1", "a=2"], "set twice"), (["profile", "show", "flaky-504"], "flaky-503"),
    (["profile", "show", "flaky-503?rate=1"], "without parameters"), (["rule", "rm", "gone"], "gone"),
    (["rule", "explain", "gone"], "gone"), (["rule", "add", "{\"do\": {\"respnd\": {}}}"], "respond"),
  ])
  func invalidProfileArgumentsAreReported(_ arguments: [String], _ words: String) async throws {
    try await TestServer.run { mock in
      let failure = try await Self.failure(arguments, mock)
      #expect([.usage, .failed].contains(failure.status))
      #expect(failure.description.contains(words), "\(failure)")
      #expect(mock.state.faults.selection.profile.name == "healthy")
    }
  }

  @Test func rulesAreAddedAndRemoved() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("rule.yaml", "name: slow  # one second\ndo: {delay: {fixed: 1s}}\nttl: 1m\n")
    try await TestServer.run { mock in
      let faults = mock.state.faults
      try await Self.run(["rule", "add", #"{"name": "down", "do": {"respond": {"status": 503}}}"#], mock)
      try await Self.run(["rule", "add", file, "--ttl", "1h"], mock)
      #expect(faults.selection.added.map(\.rule.name) == ["slow", "down"])
      let ends = faults.selection.added.map { rule in rule.endsAt.map { ($0 - rule.addedAt) / 1_000_000_000 } }
      #expect(ends == [3600, nil], "the flag goes before what the file says")
      for command in [["rule", "ls"], ["rule", "explain", "down"], ["rule", "explain"]] {
        try await Self.run(command, mock)
      }
      try await Self.run(["rule", "rm", "slow"], mock)
      #expect(faults.selection.added.map(\.rule.name) == ["down"])
      try await Self.run(["reset", "--rules"], mock)
      #expect(faults.selection.added.isEmpty)
    }
  }

  @Test func faultsArePausedAndResumed() async throws {
    try await TestServer.run { mock in
      try await Self.run(["faults", "pause"], mock)
      #expect(mock.state.faults.selection.isPaused)
      try await Self.run(["faults", "resume"], mock)
      #expect(!mock.state.faults.selection.isPaused)
    }
  }

  @Test func onlyNamedScopesAreReset() async throws {
    try await TestServer.run { mock in
      try await Self.run(["profile", "use", "brownout"], mock)
      try await Self.run(["reset", "--counters"], mock)
      #expect(mock.state.faults.selection.profile.name == "brownout")
      try await Self.run(["reset", "--profile"], mock)
      #expect(mock.state.faults.selection.profile.name == "healthy")
    }
  }

  @Test(arguments: [["profile", "use", "healthy", "--ttl", "5"], ["rule", "add", "{}", "--ttl", "-1s"]])
  func timeToLiveNeedsAUnit(_ arguments: [String]) throws {
    let error = try #require(throws: (any Error).self) { try Root.parseAsRoot(arguments) }
    #expect(Root.fullMessage(for: error).contains("--ttl"))
  }

  // MARK: - Without a server

  @Test func filesAreLintedTogether() throws {
    let folder = try TemporaryFolder()
    let base = try folder.file("a-base.yaml", "name: base\nrules: [{name: r, do: {close: {}}}]\n")
    let other = try folder.file("other.yaml", "extends: [base]\nsummary: 7\nrules: [{do: {clos: {}}}]\n")
    let gone = folder.path + "/gone.yaml"
    let reports = ProfileLint.reports([other, base, gone], ProfileLibrary())
    #expect(reports.map(\.isValid) == [false, true, false])
    #expect(reports[1].problems.isEmpty)
    let lines = reports[0].problems.map(\.description)
    #expect(lines.allSatisfy { $0.hasPrefix("\(other):") }, "\(lines)")
    #expect(lines.contains { $0.contains("did you mean \"close\"?") }, "\(lines)")
    #expect(!lines.contains { $0.contains("there is no profile") }, "the other file is known")
    #expect(reports[2].problems.first?.description.hasPrefix("\(gone): cannot be read") == true)
    #expect(reports.map(\.text)[1] == "\(base): valid")
    #expect(reports[2].text == "\(gone): 1 error")
  }

  @Test(arguments: [
    ("4100", "410000" + "24"), ("4100:0", "41000000"), ("0503:3", "05030003"), ("0901", "09010000"),
  ])
  func magicTokenIsCreated(_ argument: String, _ digits: String) throws {
    let token = try TokenDevice.token(argument).text
    #expect(token.count == 64)
    #expect(token.hasPrefix("feedfacefeedface" + digits), "\(token)")
    #expect(MagicToken(token) != nil)
  }

  @Test(arguments: [("41", "4100"), ("4100:x", "from 0 to 9999"), ("4100:10000", "from 0 to 9999"), ("", "0901")])
  func invalidMagicTokenIsRejected(_ argument: String, _ words: String) throws {
    let error = try #require(throws: CommandFailure.self) { try TokenDevice.token(argument) }
    #expect(error.status == .usage)
    #expect(error.description.contains(words), "\(error)")
  }

  @Test func timeToLiveIsAddedToYAMLAndJSON() throws {
    for text in [#"{"do": {"close": {}}}"#, "do: {close: {}}\nttl: 5s # short\n", "---\ndo:\n  close: {}\n"] {
      let definition = try AddedRuleDefinition.parse(try RuleAdd.text(text, ttl: "2m"))
      #expect(definition.ttl == .seconds(120))
      #expect(definition.rule.action == .close)
    }
  }
}
