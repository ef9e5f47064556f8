import APNSMockRules
import APNSMockClientCommands
import MockAPNS
import APNSMockNotation

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
    /// The sources of the settings that have another value than their default.
    fileprivate var changed: [Setting: String] = [:]
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
    for setting in Setting.allCases {
      guard let source = result.changed[setting], let needed = setting.needed, result.changed[needed.setting] == nil
      else { continue }
      let flag = needed.setting.flag
      result.errors.append(SettingError("\(source) needs \(flag), such as \(flag) \(needed.example)"))
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

extension Setting {
  /// Whether these values are what the setting has if it is not specified.
  fileprivate func isDefault(_ values: [String]) -> Bool {
    guard case .value(let value) = documentation.default else { return values.isEmpty }
    return values.isEmpty || values == [value]
  }
}

extension SettingSources.Result {
  fileprivate mutating func apply(_ target: ConfigurationFile.Target, _ values: [String], from source: String) {
    do throws(InvalidSettingValue) {
      switch target {
      case .setting(let setting):
        try settings.set(setting, to: values)
        changed[setting] = setting.isDefault(values) ? nil : source
        if setting == .profile { settings.profile?.source = source }
      case .rule(let rule): try settings.configuration.settings.set(rule, to: values.first ?? "")
      }
    } catch {
      errors.append(SettingError(error, from: source))
    }
  }
}
