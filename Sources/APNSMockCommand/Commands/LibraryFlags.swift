import ArgumentParser
import Faults
import Notation

/// What commands that need no server have in common: they know the built-in profiles and those of a folder.
struct LibraryFlags: ParsableArguments {
  @Option(name: .long, help: "A folder with fault profiles besides the built-in ones. [APNS_MOCK_PROFILES]")
  var profiles: String?

  /// The built-in profiles and those of the folder. What is wrong in there is said.
  func library(_ environment: [String: String] = Environment.variables) -> ProfileLibrary {
    guard let folder = profiles ?? environment.given(Setting.profiles.variable) else { return ProfileLibrary() }
    let reading = ProfileLibrary().reloading(folder: folder)
    for problem in reading.problems { StandardStream.error.line(problem.description) }
    return reading.library
  }

  /// The profile that a reference leads to, and the text it was made of.
  ///
  /// - Throws: `CommandFailure` with everything that is wrong with it.
  func loaded(_ reference: ProfileReference) throws -> (source: ProfileSource, loaded: LoadedProfile) {
    try ProfileFailure.told { () throws(ProfileFailure) in try library().loaded(reference) }
  }
}

extension ProfileFailure {
  /// Does something with profiles or rules; what is wrong with them is a mistake of whoever wrote them.
  ///
  /// - Throws: `CommandFailure` with every problem, a line each.
  static func told<Result>(_ work: () throws(ProfileFailure) -> Result) throws -> Result {
    do throws(ProfileFailure) {
      return try work()
    } catch {
      throw CommandFailure(.usage, lines: error.problems.map { $0.words() })
    }
  }
}
