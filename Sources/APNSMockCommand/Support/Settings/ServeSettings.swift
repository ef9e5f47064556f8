import FaultModel
import Faults
import Logging
import MockAPNS

/// The format of log lines.
enum LogFormat: String, CaseIterable, Sendable {
  /// Text for people.
  case text
  /// One JSON object per line.
  case json
}

/// The settings of `serve`, merged from flags, variables and the config file.
struct ServeSettings: Sendable {
  /// The configuration of the server.
  var configuration = Configuration()
  /// The initial fault profile; nil for the one without faults.
  var profile: ProfileChoice?
  /// Whether to generate an admin token (`--admin-token auto`).
  var generatesAdminToken = false
  /// The path of the port file to write.
  var portFile: String?
  /// The path to export the inbox to when the server stops.
  var exportOnExit: String?
  /// The format of log lines.
  var logFormat = LogFormat.text
  /// The minimum log level.
  var logLevel = Logger.Level.info
}

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
    func append(_ problems: [ProfileProblem], _ line: (ProfileProblem) -> String) {
      lines += problems.map(line)
      if problems.contains(where: { $0.severity == .error }) { hasErrors = true }
    }
    if let folder = configuration.profilesFolder {
      let reading = configuration.profiles.reloading(folder: folder)
      configuration.profiles = reading.library
      remarks.notices = reading.notices
      append(reading.problems) { $0.text(from: $0.file == folder ? Setting.profiles.flag : nil) }
    }
    // The name may refer to an invalid file of the folder, whose problems are already reported.
    if let profile, !(hasErrors && profile.isName) {
      do throws(ProfileFailure) {
        let (chosen, warnings) = try profile.loaded(from: configuration.profiles)
        configuration.profile = chosen
        append(warnings.filter { !lines.contains(profile.line($0)) }, profile.line)
      } catch {
        append(error.problems.filter { !lines.contains(profile.line($0)) }, profile.line)
      }
    }
    guard !hasErrors else { throw CommandFailure(.usage, lines: lines) }
    remarks.warnings = lines
    return remarks
  }
}
