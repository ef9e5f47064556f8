import APNSRules
import MockAPNS
import Testing

@testable import APNSMockCommand

/// The output of `config sample`.
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
