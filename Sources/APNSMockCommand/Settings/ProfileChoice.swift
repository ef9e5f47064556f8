import Faults
import MockAPNS
import Notation

/// Which fault profile `serve` begins with, and who says so.
struct ProfileChoice: Sendable, Equatable {
  /// Where its text is.
  enum Place: Sendable, Equatable {
    /// A profile of the library or a file, and how its knobs stand.
    case reference(ProfileReference)
    /// YAML in place of a name.
    case inline(String)
  }

  let place: Place
  /// The flag, the variable, or the line of a file.
  var source: String

  /// What the setting takes, in words.
  static let allowed = "a profile such as flaky-503?rate=0.5, or a file"

  /// A choice by name or path.
  init(_ reference: String, from source: String) throws(BadValue) {
    place = .reference(try ProfileReference(reference))
    self.source = source
  }

  /// A choice by its text.
  init(text: String, from source: String) {
    place = .inline(text)
    self.source = source
  }

  /// Whether it is found by a name.
  var isName: Bool {
    if case .reference(let reference) = place, case .name = reference.place { true } else { false }
  }

  /// The profile, and what is odd about it.
  ///
  /// - Throws: `ProfileFailure`.
  func loaded(from library: ProfileLibrary) throws(ProfileFailure) -> (ChosenProfile, warnings: [ProfileProblem]) {
    let source: ProfileSource
    let loaded: LoadedProfile
    switch place {
    case .reference(let reference): (source, loaded) = try library.loaded(reference)
    case .inline(let yaml):
      source = ProfileSource(name: Self.inlineName, text: yaml, origin: .inline)
      loaded = try library.profile(of: source)
    }
    return (ChosenProfile(source: source, profile: loaded.profile), loaded.warnings)
  }

  /// A problem as `serve` says it: `file:12:7: …`, or after the source where there is no line to point at.
  func line(_ problem: ProfileProblem) -> String {
    if case .inline = place, problem.file == Self.inlineName, problem.line != nil {
      return source + problem.description.dropFirst(Self.inlineName.count)
    }
    return problem.words(from: source)
  }

  /// How a text is called that does not say it.
  private static let inlineName = "inline"
}
