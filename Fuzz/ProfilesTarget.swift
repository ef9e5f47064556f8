import FaultModel
import Faults
import Notation

@testable import MockAPNS

/// Fuzzes YAML from users: fault profiles, added rules, and the list of trusted keys.
struct ProfilesTarget: FuzzTarget {
  private let library = ProfileLibrary()

  init() {}

  func run(_ bytes: UnsafeRawBufferPointer) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    let source = ProfileSource(name: "profile", text: text, origin: .sent)
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
    if let reference = try? ProfileReference(text) {
      let again = try? ProfileReference(reference.description)
      expect(again?.description == reference.description, "\(reference) changes when it is written")
    }
  }

  /// Checks that a profile can be run, and that its description and its simulation are valid JSON.
  private func inspect(_ profile: Profile) {
    var writer = JSONWriter()
    profile.write(to: &writer)
    expectJSON(writer.bytes)
    for rule in profile.rules.prefix(20) { inspect(rule) }
    var traffic = Simulation.Traffic()
    traffic.pushes = 20
    var json = JSONWriter()
    Simulation(profile: profile, seed: 7, traffic: traffic).run().write(to: &json)
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
