import Faults
import MockAPNS

extension ServeSettings {
  /// What should be known about the fault profiles, though they can run.
  struct ProfileRemarks {
    /// What is odd in them.
    var warnings: [String] = []
    /// What is right and may surprise.
    var notices: [String] = []
  }

  /// Reads the folder of fault profiles and the profile to begin with.
  ///
  /// - Throws: `CommandFailure` with everything that is wrong, a line each.
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
    // A name may be one of the folder's bad files: that one's problems have been said.
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
