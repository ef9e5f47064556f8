import APNSRules
import MockAPNS
import Notation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The sources of settings. Flags override variables, variables override the config file, the file overrides defaults.
struct SettingSources {
  /// The values of the specified flags.
  var flags: [Setting: [String]] = [:]
  /// All environment variables.
  var environment: [String: String] = [:]
  /// The config file, if specified.
  var file: ConfigurationFile?
  /// The values of settings that no source specifies.
  var defaults = ServeSettings()
  /// Reads a file that a variable specifies.
  var readFile: (String) throws -> String = { path in throw SettingError("\(path): cannot be read") }

  /// The merged settings.
  struct Result {
    var settings: ServeSettings
    /// Problems that do not prevent the start.
    var warnings: [String] = []
    /// Problems that prevent the start. All specified values are validated, also those that another source overrides.
    var errors: [SettingError] = []
  }

  /// Merges the sources.
  func merged() -> Result {
    var result = Result(settings: defaults)
    if let file {
      result.errors = file.errors
      for entry in file.entries { result.apply(entry.target, entry.values, from: entry.source) }
    }
    applyVariables(to: &result)
    for setting in Setting.allCases {
      if let values = flags[setting] { result.apply(.setting(setting), values, from: setting.flag) }
    }
    return result
  }

  private func applyVariables(to result: inout Result) {
    for setting in Setting.allCases {
      guard let value = environment.given(setting.variable) else { continue }
      result.apply(.setting(setting), setting.isList ? Setting.list(value) : [value], from: setting.variable)
    }
    applyInlineProfile(to: &result)
    if let path = environment.given(EnvironmentVariables.adminTokenFile) {
      if environment.given(Setting.adminToken.variable) != nil {
        result.errors.append(
          SettingError(
            "\(Setting.adminToken.variable) and \(EnvironmentVariables.adminTokenFile) are both set: set only one of them"
          ))
      }
      do {
        let token = try readFile(path).trimmed
        result.apply(.setting(.adminToken), [token], from: "\(EnvironmentVariables.adminTokenFile) (\(path))")
      } catch {
        result.errors.append(SettingError("\(EnvironmentVariables.adminTokenFile): \(error)"))
      }
    }
    for name in environment.keys.sorted()
    where name.hasPrefix(EnvironmentVariables.prefix) && !EnvironmentVariables.known.contains(name) {
      let guess = EnvironmentVariables.nearest(to: name).map { ": did you mean \($0)?" } ?? ""
      result.warnings.append("unknown variable \(name) has no effect\(guess)")
    }
  }

  private func applyInlineProfile(to result: inout Result) {
    guard let text = environment.given(EnvironmentVariables.profileInline) else { return }
    if environment.given(Setting.profile.variable) != nil {
      result.errors.append(
        SettingError(
          "\(Setting.profile.variable) and \(EnvironmentVariables.profileInline) are both set: set only one of them"))
    }
    result.settings.profile = ProfileChoice(text: text, from: EnvironmentVariables.profileInline)
  }
}

extension SettingSources.Result {
  fileprivate mutating func apply(_ target: ConfigurationFile.Target, _ values: [String], from source: String) {
    do throws(InvalidSettingValue) {
      switch target {
      case .setting(let setting):
        try settings.set(setting, to: values)
        if setting == .profile { settings.profile?.source = source }
      case .rule(let rule): try settings.configuration.settings.set(rule, to: values.first ?? "")
      }
    } catch {
      errors.append(SettingError(error, from: source))
    }
  }
}

extension [String: String] {
  /// Returns the value of a variable. Empty variables count as unset, as in shell scripts and Compose files.
  func given(_ name: String) -> String? {
    guard let value = self[name], !value.isEmpty else { return nil }
    return value
  }
}

/// The environment variables of the program.
enum EnvironmentVariables {
  /// The common prefix of all names.
  static let prefix = "APNS_MOCK_"
  /// The path of the config file, like `--config`.
  static let config = prefix + "CONFIG"
  /// The path of a file with the admin token, which keeps the token out of the environment.
  static let adminTokenFile = prefix + "ADMIN_TOKEN_FILE"
  /// The text of a fault profile, instead of the name in `APNS_MOCK_PROFILE`.
  static let profileInline = prefix + "PROFILE_INLINE"
  /// The path of the server's CA, set by `exec` for its program.
  static let ca = prefix + "CA"
  /// The path of the server's provider key, its key id and team id, set by `exec` for its program.
  static let key = prefix + "KEY"
  static let keyID = prefix + "KEY_ID"
  static let teamID = prefix + "TEAM_ID"
  /// The path of the program, with which the client libraries of this project start it.
  static let binary = prefix + "BINARY"

  /// The names of all variables that any command uses.
  static let known =
    Setting.allCases.map(\.variable) + [
      config, adminTokenFile, profileInline, ca, key, keyID, teamID, binary,
    ]

  /// Returns the known name most similar to `name`, compared without the prefix.
  static func nearest(to name: String) -> String? {
    Spelling.nearest(to: String(name.dropFirst(prefix.count)), among: known.map { String($0.dropFirst(prefix.count)) })
      .map { prefix + $0 }
  }
}

/// The environment of this process.
enum Environment {
  /// All environment variables.
  static var variables: [String: String] { ProcessInfo.processInfo.environment }
}

/// An error in a setting, in one line: the source, the problem and the repair.
struct SettingError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// Creates an error for an invalid value.
  ///
  /// - Parameter source: The flag, the variable, or the config file line.
  init(_ bad: InvalidSettingValue, from source: String) {
    description = "\(source): \"\(bad.value)\" is invalid: expected \(bad.allowed)"
  }
}
