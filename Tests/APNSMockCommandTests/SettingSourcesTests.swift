import APNSMockClientCommands
import MockAPNS
import Testing

@testable import APNSMockCommand

/// The priority of settings: flag, environment variable, file, default.
@Suite struct SettingSourcesTests {
  private static func file(_ yaml: String) -> ConfigurationFile { ConfigurationFile(path: "mock.yaml", yaml: yaml) }

  @Test(arguments: [
    (flag: "1", variable: "2", file: "3", result: UInt64(1)),
    (flag: nil, variable: "2", file: "3", result: 2),
    (flag: nil, variable: nil, file: "3", result: 3),
    (flag: "1", variable: nil, file: nil, result: 1),
    (flag: nil, variable: "", file: "3", result: 3),
    (flag: nil, variable: nil, file: nil, result: nil),
  ])
  func sourcePrecedence(flag: String?, variable: String?, file: String?, result: UInt64?) {
    var sources = SettingSources()
    sources.flags[.seed] = flag.map { [$0] }
    sources.environment["APNS_MOCK_SEED"] = variable
    sources.file = file.map { Self.file("seed: \($0)") }
    let merged = sources.merged()
    #expect(merged.errors.isEmpty)
    #expect(merged.settings.configuration.seed == result)
  }

  @Test func listReplacesListOfLowerSource() {
    let merged = SettingSources(
      flags: [.san: ["c.test"]], environment: ["APNS_MOCK_SAN": "b.test"], file: Self.file("san: [a.test]")
    ).merged()
    #expect(merged.settings.configuration.certificateNames == ["c.test"])
  }

  @Test func variableHoldsACommaSeparatedList() {
    let merged = SettingSources(environment: ["APNS_MOCK_APNS": "127.0.0.1:0, [::1]:1"]).merged()
    #expect(merged.errors.isEmpty)
    #expect(merged.settings.configuration.apns.map(\.description) == ["127.0.0.1:0", "[::1]:1"])
  }

  @Test func invalidValueNamesItsSource() {
    let merged = SettingSources(
      flags: [.rules: ["tough"]], environment: ["APNS_MOCK_MAX_BYTES": "much"],
      file: Self.file("\n\nthreads: none\napns: {first_streams: 0}")
    ).merged()
    #expect(
      merged.errors.map(\.description) == [
        "mock.yaml:3:1: threads: \"none\" is invalid: expected a whole number from 1 to 1024",
        "mock.yaml:4:8: first_streams: \"0\" is invalid: expected a whole number from 1 to 1073741824",
        "APNS_MOCK_MAX_BYTES: \"much\" is invalid: expected a size such as 512KiB, 256MiB or 1GiB",
        "--rules: \"tough\" is invalid: expected apple, strict or lenient",
      ])
  }

  @Test func invalidValueIsAnErrorEvenIfOverridden() {
    let merged = SettingSources(flags: [.seed: ["1"]], environment: ["APNS_MOCK_SEED": "x"]).merged()
    #expect(merged.errors.count == 1)
  }

  @Test(arguments: [
    ("APNS_MOCK_MAX_RECORD", "APNS_MOCK_MAX_RECORDS"), ("APNS_MOCK_ENVIROMENT", "APNS_MOCK_ENVIRONMENT"),
    ("APNS_MOCK_RULE", "APNS_MOCK_RULES"),
  ])
  func unknownVariableIsAWarningWithASuggestion(_ name: String, _ guess: String) {
    let merged = SettingSources(environment: [name: "1"]).merged()
    #expect(merged.errors.isEmpty)
    #expect(merged.warnings == ["unknown variable \(name) has no effect: did you mean \(guess)?"])
  }

  @Test func noSuggestionForDistantNames() {
    let merged = SettingSources(environment: ["APNS_MOCK_XYZZY": "1"]).merged()
    #expect(merged.warnings == ["unknown variable APNS_MOCK_XYZZY has no effect"])
  }

  @Test(arguments: [
    "APNS_MOCK_CA", "APNS_MOCK_KEY", "APNS_MOCK_KEY_ID", "APNS_MOCK_TEAM_ID", "APNS_MOCK_ADMIN", "APNS_MOCK_CONFIG",
    "APNS_MOCK_PORT_FILE", "APNSX", "HOME",
  ])
  func namesOfOtherSettingsAreNotReported(_ name: String) {
    let merged = SettingSources(environment: [name: "127.0.0.1:1"]).merged()
    #expect(merged.warnings.isEmpty)
    #expect(merged.errors.isEmpty)
  }

  @Test func adminTokenIsReadFromAFile() {
    let sources = SettingSources(
      environment: ["APNS_MOCK_ADMIN_TOKEN_FILE": "/run/token"], readFile: { $0 == "/run/token" ? " s3cret\n" : "" })
    #expect(sources.merged().settings.configuration.adminToken == "s3cret")
  }

  @Test func unreadableAdminTokenFileIsAnError() {
    let sources = SettingSources(
      environment: ["APNS_MOCK_ADMIN_TOKEN_FILE": "gone"],
      readFile: { throw CommandFailure(.usage, "\($0): cannot be read: No such file or directory") })
    #expect(
      sources.merged().errors.map(\.description) == [
        "APNS_MOCK_ADMIN_TOKEN_FILE: gone: cannot be read: No such file or directory"
      ])
  }

  @Test func twoAdminTokensAreAnError() {
    let sources = SettingSources(
      environment: ["APNS_MOCK_ADMIN_TOKEN_FILE": "file", "APNS_MOCK_ADMIN_TOKEN": "a"], readFile: { _ in "b" })
    #expect(
      sources.merged().errors.map(\.description) == [
        "APNS_MOCK_ADMIN_TOKEN and APNS_MOCK_ADMIN_TOKEN_FILE are both set: set only one of them"
      ])
  }
}
