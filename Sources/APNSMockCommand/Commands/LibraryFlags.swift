import ArgumentParser
import Faults
import Notation

/// The options of commands that load profiles without a server: from the built-in library and a folder.
struct LibraryFlags: ParsableArguments {
  @Option(name: .long, help: "A folder with fault profiles, in addition to the built-in ones. [APNS_MOCK_PROFILES]")
  var profiles: String?

  /// Returns the built-in profiles and those of the folder, and reports problems on standard error.
  func library(_ environment: [String: String] = Environment.variables) -> ProfileLibrary {
    guard let folder = profiles ?? environment.given(Setting.profiles.variable) else { return ProfileLibrary() }
    let reading = ProfileLibrary().reloading(folder: folder)
    for problem in reading.problems { StandardStream.error.line(problem.description) }
    return reading.library
  }

  /// Loads the profile a reference names, with its source.
  ///
  /// - Throws: `CommandFailure` with all problems.
  func loaded(_ reference: ProfileReference) throws -> (source: ProfileSource, loaded: LoadedProfile) {
    try ProfileFailure.told { () throws(ProfileFailure) in try library().loaded(reference) }
  }
}

extension ProfileFailure {
  /// Runs `work` with profiles or rules and converts their problems to a failure of status `usage`.
  ///
  /// - Throws: `CommandFailure` with one line per problem.
  static func told<Result>(_ work: () throws(ProfileFailure) -> Result) throws -> Result {
    do throws(ProfileFailure) {
      return try work()
    } catch {
      throw CommandFailure(.usage, lines: error.problems.map { $0.words() })
    }
  }
}
