import APNSMockRules
import APNSMockClientCommands
import MockAPNS
import Testing

@testable import APNSMockCommand

/// The YAML file of `--config`.
@Suite struct ConfigurationFileTests {
  private static func merged(_ yaml: String) -> SettingSources.Result {
    SettingSources(file: ConfigurationFile(path: "mock.yaml", yaml: yaml)).merged()
  }

  @Test func readsAllSettings() {
    let merged = Self.merged(
      """
      # what this team uses
      admin: 127.0.0.1:0
      max-records: 10
      max_bytes: 1MiB
      san: [a.test, b.test]
      apns:
        listen: [127.0.0.1:0, 127.0.0.1:1]
        token_max_age: 10m
        throttle-on-4xx: on
        device_rate: 5/1s
        errors_before_goaway: off
      """)
    #expect(merged.errors.isEmpty)
    let configuration = merged.settings.configuration
    #expect(configuration.admin == MockServer.Endpoint(host: "127.0.0.1", port: 0))
    #expect(configuration.maxRecords == 10)
    #expect(configuration.maxBytes == 1_048_576)
    #expect(configuration.certificateNames == ["a.test", "b.test"])
    #expect(configuration.apns.map(\.port) == [0, 1])
    #expect(configuration.settings.tokenMaxAge == .seconds(600))
    #expect(configuration.settings.throttleOn4xx)
    #expect(configuration.settings.deviceRate == DeviceRate(count: 5, per: .seconds(1)))
    #expect(configuration.settings.errorsBeforeGoaway == nil)
  }

  @Test(arguments: [
    "apns: 127.0.0.1:9", "apns: [127.0.0.1:9]", "apns: {listen: '127.0.0.1:9'}", "apns:\n- 127.0.0.1:9",
  ])
  func apnsAcceptsAnAddressAListOrAMap(_ yaml: String) {
    let merged = Self.merged(yaml)
    #expect(merged.errors.isEmpty)
    #expect(merged.settings.configuration.apns == [MockServer.Endpoint(host: "127.0.0.1", port: 9)])
  }

  @Test(arguments: ["", "# nothing\n", "---\n", "{}"])
  func emptyFileChangesNothing(_ yaml: String) {
    let merged = Self.merged(yaml)
    #expect(merged.errors.isEmpty)
    #expect(merged.settings.configuration.apns == MockServer.Configuration().apns)
  }

  @Test(arguments: [
    (
      "rules: strict\nmax_record: 5",
      "mock.yaml:2:1: unknown setting \"max_record\": did you mean max_records?"
    ),
    (
      "apns:\n  token_maxage: 5m",
      "mock.yaml:2:3: unknown setting \"token_maxage\": did you mean token_max_age?"
    ),
    ("config: other.yaml", "mock.yaml:1:1: unknown setting \"config\""),
    ("seed: [1, 2]", "mock.yaml:1:1: seed: expected one value, not a list"),
    ("san: {a: b}", "mock.yaml:1:1: san: expected one value or a list of values, not a map"),
    ("san: [[a]]", "mock.yaml:1:1: san: expected a list of scalars"),
    ("apns:\n  max_streams: [1]", "mock.yaml:2:3: max_streams: expected one value, not a list"),
    ("max_bytes: 1MiB\nmax-bytes: 2MiB", "mock.yaml:2:1: max_bytes is already set above"),
    ("- seed", "mock.yaml:1:1: expected a map, not a list"),
    ("just text", "mock.yaml:1:1: expected a map, not a string"),
    ("seed: 1\nseed: 2", "mock.yaml:1:1: duplicate keys: seed"),
    ("seed: 'a\n", "mock.yaml:2:1: invalid YAML"),
    ("seed:", "mock.yaml:1:1: seed: \"\" is invalid"),
    ("apns: []", "mock.yaml:1:1: apns: \"\" is invalid: expected at least one HOST:PORT"),
  ])
  func errorsNameTheirLine(_ yaml: String, _ message: String) {
    let errors = Self.merged(yaml).errors.map(\.description)
    #expect(errors.count == 1)
    #expect(errors.first?.hasPrefix(message) == true, "\(errors)")
  }
}

/// The output of `config`.
@Suite struct SampleConfigurationTests {
  @Test func changesNothing() {
    let file = ConfigurationFile(path: "sample.yaml", yaml: SampleConfiguration.yaml)
    let merged = SettingSources(file: file).merged()
    #expect(file.errors.isEmpty && merged.errors.isEmpty && merged.warnings.isEmpty)
    var settings = merged.settings
    #expect(settings.profile != nil)
    settings.profile = nil
    let defaults = ServeSettings()
    // Equal dictionaries may list their elements in different orders.
    settings.configuration.profiles = defaults.configuration.profiles
    #expect(String(reflecting: settings) == String(reflecting: defaults))
  }

  @Test func hasEverySettingWithADescription() {
    let lines = SampleConfiguration.yaml.split(separator: "\n", omittingEmptySubsequences: false)
    for key in Setting.allCases.map(\.key) + APNSSetting.allCases.map(\.rawValue) {
      let index = lines.firstIndex { $0.drop(while: { " #".contains($0) }).hasPrefix("\(key):") }
      guard let index else {
        Issue.record("there is no \(key)")
        continue
      }
      #expect(lines[index - 1].drop(while: { $0 == " " }).hasPrefix("# "), "\(key)")
    }
  }
}
