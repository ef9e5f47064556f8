import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockFaults
import APNSMockNotation

@testable import MockAPNS

/// Fuzzes YAML from users: fault profiles, added rules, fixtures, and the list of trusted keys.
struct ProfilesTarget: FuzzTarget {
  private let library = ProfileLibrary()

  init() {}

  func run(_ bytes: UnsafeRawBufferPointer) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    let source = ProfileSource(name: "profile", text: text, origin: .uploaded)
    let problems = library.problems(in: source)
    let hasErrors = problems.contains { $0.severity == .error }
    for problem in problems { expect(!"\(problem)".isEmpty, "a problem without words") }
    do throws(ProfileFailure) {
      let loaded = try library.profile(of: source)
      expect(!hasErrors, "a profile is read in which there are errors: \(problems)")
      inspect(loaded.profile)
    } catch {
      expect(hasErrors, "a profile cannot be read in which nothing is wrong: \(error)")
    }
    if let rule = try? AddedRuleDefinition.parse(text) { inspect(rule.rule) }
    _ = try? ProviderKeysText(text)
    inspectFixtures(Array(bytes))
    if let reference = try? ProfileReference(text) {
      let again = try? ProfileReference(reference.description)
      expect(again?.description == reference.description, "\(reference) changes when it is written")
    }
  }

  /// Checks that fixtures that can be loaded are the same after they were saved and loaded again.
  private func inspectFixtures(_ text: [UInt8]) {
    guard let saved = savedFixtures(text) else { return }
    expectJSON(saved)
    expect(savedFixtures(saved) == saved, "fixtures change when they are saved and loaded")
  }

  /// Loads and saves fixtures; returns nil if they have a mistake.
  private func savedFixtures(_ text: [UInt8]) -> [UInt8]? {
    let registry = DeviceRegistry(maxDevices: 1000)
    let defaults = FixtureDefaults(environment: .sandbox, teamID: "MOCKTEAM01")
    let reader = FixtureReader(defaults: defaults, limits: FixtureReader.clientText)
    var contents = FixtureReader.Contents()
    do {
      try registry.load(now: 0) { loader in
        let document = FixtureDocument(name: "fixtures", text: text)
        contents = try reader.read([document]) { device throws(DeviceError) in try loader.add(device) }
      }
    } catch {
      expect((error as? FileFailure)?.problems.isEmpty == false, "fixtures are rejected without a problem")
      return nil
    }
    guard
      var writer = try? FixtureWriter(
        apps: contents.apps, devices: registry, channels: contents.channels, teamID: defaults.teamID)
    else {
      expect(false, "fixtures that were loaded cannot be saved")
      return nil
    }
    var saved: [UInt8] = []
    while let piece = writer.next() { saved += piece }
    return saved
  }

  /// Checks that a profile can be run, and that its description and its simulation are valid JSON.
  private func inspect(_ profile: Profile) {
    var writer = JSONWriter()
    profile.write(to: &writer)
    expectJSON(writer.bytes)
    for rule in profile.rules.prefix(20) { inspect(rule) }
    var load = Simulation.Load()
    load.pushes = 20
    var json = JSONWriter()
    Simulation(profile: profile, seed: 7, load: load).run().write(to: &json)
    expectJSON(json.bytes)
  }

  private func inspect(_ rule: Rule) {
    var writer = JSONWriter()
    rule.write(to: &writer)
    expectJSON(writer.bytes)
  }

  private func expectJSON(_ bytes: [UInt8]) {
    let problem = bytes.withUnsafeBytes { JSONText.problem(in: $0) }
    expect(problem == nil, "what is shown is not JSON: \(problem?.description ?? "")")
  }
}
