import APNSMockClientCommands
import APNSMockFaultModel
import APNSMockFaults
import MockAPNS
import APNSMockTestSupport
import Testing

@testable import APNSMockCommand

/// The initial fault profile of `serve`, and the folder of profiles.
@Suite struct ProfileSettingsTests {
  private static let good = "name: mine\nparams: {rate: {type: probability, default: 1}}\n" + rules
  private static let rules =
    "rules: [{name: r, trigger: {probability: \"${rate}\"}, do: {respond: {status: 503}}}]\n"
  private static let bad = "name: spoilt\nrules:\n  - name: r\n    trigger: {probabilty: 0.5}\n    do: {close: {}}\n"

  private static func settings(
    flags: [Setting: [String]] = [:], _ environment: [String: String] = [:], file: String? = nil
  ) throws -> ServeSettings {
    let result = SettingSources(
      flags: flags, environment: environment, file: file.map { ConfigurationFile(path: "mock.yaml", yaml: $0) }
    ).merged()
    guard result.errors.isEmpty else {
      throw CommandFailure(.usage, result.errors.map(\.description).joined(separator: "\n"))
    }
    return result.settings
  }

  // MARK: - Sources

  typealias Row = (flag: String?, variable: String?, inline: String?, file: String?, profile: String?)

  private static let rows: [Row] = [
    (flag: "ack-lost", variable: "brownout", inline: nil, file: "half-open", profile: "ack-lost"),
    (flag: "ack-lost", variable: nil, inline: good, file: "half-open", profile: "ack-lost"),
    (flag: nil, variable: "brownout", inline: nil, file: "half-open", profile: "brownout"),
    (flag: nil, variable: nil, inline: good, file: "half-open", profile: "mine"),
    (flag: nil, variable: nil, inline: nil, file: "half-open", profile: "half-open"),
    (flag: nil, variable: "", inline: "", file: nil, profile: nil),
  ]

  @Test(arguments: rows)
  func sourcePrecedence(_ row: Row) throws {
    let (flag, variable, inline, file, profile) = row
    var settings = try Self.settings(
      flags: flag.map { [.profile: [$0]] } ?? [:],
      ["APNS_MOCK_PROFILE": variable ?? "", "APNS_MOCK_PROFILE_INLINE": inline ?? ""],
      file: file.map { "profile: \($0)" })
    _ = try settings.readProfiles()
    #expect(settings.configuration.profile?.profile.name == profile)
  }

  @Test func profileNameAndInlineTextAreExclusive() {
    let error = #expect(throws: CommandFailure.self) {
      try Self.settings(["APNS_MOCK_PROFILE": "brownout", "APNS_MOCK_PROFILE_INLINE": Self.good])
    }
    #expect(
      error?.description == "APNS_MOCK_PROFILE and APNS_MOCK_PROFILE_INLINE are both set: set only one of them")
  }

  @Test func everySourceCanDisableMagicTokens() throws {
    #expect(try Self.settings(["APNS_MOCK_MAGIC_TOKENS": "0"]).configuration.magicTokens == false)
    #expect(try Self.settings(["APNS_MOCK_MAGIC_TOKENS": "1"]).configuration.magicTokens)
    #expect(try Self.settings(file: "magic_tokens: off").configuration.magicTokens == false)
    #expect(try Self.settings(["APNS_MOCK_MAGIC_TOKENS": "1"], file: "magic_tokens: no").configuration.magicTokens)
  }

  @Test func parametersAreSet() throws {
    var settings = try Self.settings(flags: [.profile: ["flaky-503?rate=0.75&streak=2"]])
    _ = try settings.readProfiles()
    let parameters = try #require(settings.configuration.profile?.profile.parameters)
    #expect(parameters.map(\.value) == ["0.75", "2"])
    #expect(settings.configuration.profile?.reference == "flaky-503?rate=0.75&streak=2")
  }

  // MARK: - Errors

  /// Invalid settings, and the beginnings of the expected error lines.
  @Test(arguments: [
    (flags: ["flaky-504"], [:], ["error: --profile: unknown profile \"flaky-504\", did you mean \"flaky-503\"?"]),
    (
      flags: ["flaky-503?rte=1"], [:],
      ["error: --profile: flaky-503: params.rte: unknown parameter, did you mean \"rate\"?"]
    ),
    (flags: ["flaky-503?rate=20"], [:], ["error: --profile: flaky-503: params.rate: 20 is not a number in 0..1"]),
    (flags: ["/nowhere/at/all.yaml"], [:], ["error: --profile: /nowhere/at/all.yaml: cannot be read: No such file"]),
    (flags: [], ["APNS_MOCK_PROFILE": "flaky-504"], ["error: APNS_MOCK_PROFILE: unknown profile \"flaky-504\""]),
    (
      flags: [], ["APNS_MOCK_PROFILE_INLINE": bad],
      ["error: APNS_MOCK_PROFILE_INLINE:4:15: rules[0].trigger.probabilty: unknown, did you mean \"probability\"?"]
    ),
    (flags: [], ["APNS_MOCK_PROFILES": "/nowhere"], ["error: --profiles: /nowhere: cannot be read: No such file"]),
  ])
  func errorsNameTheirPosition(flags: [String], environment: [String: String], lines: [String]) throws {
    var settings = try Self.settings(flags: flags.isEmpty ? [:] : [.profile: flags], environment)
    let error = try #require(throws: CommandFailure.self) { try settings.readProfiles() }
    #expect(error.status == .usage)
    #expect(error.lines.count == lines.count)
    for (line, beginning) in zip(error.lines, lines) { #expect(line.hasPrefix(beginning), "\(line)") }
    #expect(error.lines == error.description.split(separator: "\n").map { "error: \($0)" })
  }

  @Test func invalidProfileFileIsReportedOnceWithItsPosition() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("spoilt.yaml", Self.bad)
    for profile in [nil, "spoilt", "healthy", file] {
      var settings = try Self.settings(
        flags: profile.map { [.profile: [$0]] } ?? [:], ["APNS_MOCK_PROFILES": folder.path])
      let error = try #require(throws: CommandFailure.self) { try settings.readProfiles() }
      #expect(error.lines.count == 1, "\(error.lines)")
      #expect(error.lines.first?.hasPrefix("error: \(file):4:15: rules[0].trigger.probabilty: unknown") == true)
      #expect(ExitResult(of: error).lines == error.lines, "editors find the place at the beginning of the line")
    }
  }

  @Test func profileInTheFolderIsSelectedByName() throws {
    let folder = try TemporaryFolder()
    _ = try folder.file("other.yaml", Self.good)
    var settings = try Self.settings(flags: [.profiles: [folder.path], .profile: ["mine?rate=0.5"]])
    let remarks = try settings.readProfiles()
    #expect(settings.configuration.profile?.profile.rules.map(\.name) == ["r"])
    #expect(remarks.warnings.isEmpty && remarks.notices.isEmpty)
  }

  @Test func overridingABuiltInProfileIsANotice() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("healthy.yaml", "params: {idle: {type: int, default: 1}}\nrules: []\n")
    var settings = try Self.settings(flags: [.profiles: [folder.path]])
    let remarks = try settings.readProfiles()
    #expect(remarks.notices == ["\(file) replaces the built-in profile healthy"])
    #expect(remarks.warnings.count == 1)
    #expect(remarks.warnings.first?.hasPrefix("\(file):1:10: warning: params.idle: ") == true, "\(remarks.warnings)")
  }
}
