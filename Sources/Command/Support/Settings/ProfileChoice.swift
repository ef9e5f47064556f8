import APNSMockClientCommands
import APNSMockFaults
import MockAPNS
import APNSMockNotation

/// The initial fault profile of `serve` and the source of the setting.
struct ProfileChoice: Sendable, Equatable {
  /// The profile's text or where to find it.
  enum Content: Sendable, Equatable {
    /// A profile of the library or a file, with parameters.
    case reference(ProfileReference)
    /// The YAML text itself.
    case inline(String)
  }

  let content: Content
  /// The flag, variable or config file line that sets the profile.
  var source: String

  /// The description of valid values.
  static let allowed = "a profile such as flaky-503?rate=0.5, or a file"

  /// Creates a choice from a name or path.
  init(_ reference: String, from source: String) throws(InvalidSettingValue) {
    content = .reference(try ProfileReference(reference))
    self.source = source
  }

  /// Creates a choice from the profile's text.
  init(text: String, from source: String) {
    content = .inline(text)
    self.source = source
  }

  /// Whether the profile is specified by a name.
  var isName: Bool {
    if case .reference(let reference) = content, case .name = reference.place { true } else { false }
  }

  /// Loads the profile and returns it with its warnings.
  ///
  /// - Throws: `ProfileFailure`.
  func loaded(from library: ProfileLibrary) throws(ProfileFailure) -> (SelectedProfile, warnings: [ProfileProblem]) {
    let source: ProfileSource
    let loaded: LoadedProfile
    switch content {
    case .reference(let reference): (source, loaded) = try library.loaded(reference)
    case .inline(let yaml):
      source = ProfileSource(name: Self.inlineName, text: yaml, origin: .inline)
      loaded = try library.profile(of: source)
    }
    return (SelectedProfile(source: source, profile: loaded.profile), loaded.warnings)
  }

  /// Returns a problem as a line: `error: file:12:7: …`, or with the source if it has no line number.
  func line(_ problem: ProfileProblem) -> String {
    var problem = problem
    if case .inline = content, problem.file == Self.inlineName, problem.line != nil { problem.file = source }
    return problem.text(from: source)
  }

  /// The name of an inline profile in problems.
  private static let inlineName = "inline"
}
