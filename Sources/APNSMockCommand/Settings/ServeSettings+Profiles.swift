import Faults
import MockAPNS

extension ServeSettings {
  /// Remarks about valid fault profiles.
  struct ProfileRemarks {
    /// The warnings.
    var warnings: [String] = []
    /// Information about correct but possibly unexpected facts.
    var notices: [String] = []
  }

  /// Loads the folder of fault profiles and the initial profile.
  ///
  /// - Throws: `CommandFailure` with one line per problem.
  mutating func readProfiles() throws -> ProfileRemarks {
    var remarks = ProfileRemarks()
    var lines: [String] = []
    var hasErrors = false
    func take(_ problems: [ProfileProblem], _ line: (ProfileProblem) -> String) {
      lines += problems.map(line)
      if problems.contains(where: { $0.severity == .error }) { hasErrors = true }
    }
    if let folder = configuration.profilesFolder {
      let reading = configuration.profiles.reloading(folder: folder)
      configuration.profiles = reading.library
      remarks.notices = reading.notices
      take(reading.problems) { $0.words(from: $0.file == folder ? Setting.profiles.flag : nil) }
    }
    // The name may refer to an invalid file of the folder, whose problems are already reported.
    if let profile, !(hasErrors && profile.isName) {
      do throws(ProfileFailure) {
        let (chosen, warnings) = try profile.loaded(from: configuration.profiles)
        configuration.profile = chosen
        take(warnings.filter { !lines.contains(profile.line($0)) }, profile.line)
      } catch {
        take(error.problems.filter { !lines.contains(profile.line($0)) }, profile.line)
      }
    }
    guard !hasErrors else { throw CommandFailure(.usage, lines: lines) }
    remarks.warnings = lines
    return remarks
  }
}
