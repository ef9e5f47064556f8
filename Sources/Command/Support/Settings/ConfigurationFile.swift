import APNSMockRules
import APNSMockClientCommands
import APNSMockNotation

/// The config file: YAML whose keys are the flag names with `_` (or `-`), and an `apns:` map with the limits of APNs.
///
/// ```yaml
/// rules: strict
/// san: [push.test]
/// apns:
///   listen: 127.0.0.1:2197
///   token_max_age: 10m
///   device_rate: 5/1s
/// ```
///
/// `apns:` can also be an address or a list of addresses, like the flag.
struct ConfigurationFile: Sendable {
  /// The setting that a key of the file sets.
  enum Target: Sendable, Equatable {
    case setting(Setting)
    case rule(APNSSetting)

    /// The key in the file.
    var key: String {
      switch self {
      case .setting(let setting): setting.key
      case .rule(let rule): rule.rawValue
      }
    }
  }

  /// A key with its values.
  struct Entry: Sendable, Equatable {
    let target: Target
    let values: [String]
    /// The location in messages: `FILE:LINE:COLUMN: KEY`.
    let source: String
  }

  /// The specified path.
  let path: String
  /// The entries in the order of the file.
  private(set) var entries: [Entry] = []
  /// The errors in the file.
  private(set) var errors: [SettingError] = []

  /// Parses YAML. Does not throw; all errors are in `errors`.
  init(path: String, yaml: String) {
    self.path = path
    do throws(YAMLError) {
      readTop(try YAMLNode.parse(yaml)?.entries() ?? [])
    } catch {
      fail(error)
    }
  }

  /// Removes the entries of some settings, but keeps their errors.
  mutating func remove(_ settings: Set<Setting>) {
    entries.removeAll { entry in
      if case .setting(let setting) = entry.target { settings.contains(setting) } else { false }
    }
  }

  private func location(_ position: TextPosition?) -> String {
    position.map { "\(path):\($0.line):\($0.column)" } ?? path
  }

  private mutating func fail(_ error: YAMLError) {
    let message = error.message + (error.hint.map { ", \($0)" } ?? "")
    errors.append(SettingError("\(location(error.position)): \(message)"))
  }

  private mutating func readTop(_ entries: [YAMLNode.Entry]) {
    for entry in entries {
      if Self.key(entry) == Setting.apns.key, case .map(let settings) = entry.value.content {
        readRules(settings)
      } else if let setting = Setting(rawValue: Self.key(entry)) {
        read(entry, for: setting)
      } else {
        failUnknown(entry, among: Setting.allCases.map(\.key))
      }
    }
  }

  private mutating func readRules(_ entries: [YAMLNode.Entry]) {
    for entry in entries {
      if Self.key(entry) == Self.listen {
        read(entry, for: .apns)
      } else if let setting = APNSSetting(rawValue: Self.key(entry)) {
        guard let text = entry.value.text else {
          fail(entry, "expected one value, not \(entry.value.kind)")
          continue
        }
        add(.rule(setting), [text], at: entry.position)
      } else {
        failUnknown(entry, among: [Self.listen] + APNSSetting.allCases.map(\.rawValue))
      }
    }
  }

  private mutating func read(_ entry: YAMLNode.Entry, for setting: Setting) {
    switch entry.value.content {
    case .scalar(let scalar): add(.setting(setting), [scalar.text], at: entry.position)
    case .list(let elements) where setting.isList:
      let texts = elements.compactMap(\.text)
      guard texts.count == elements.count else { return fail(entry, "expected a list of scalars") }
      add(.setting(setting), texts, at: entry.position)
    default:
      fail(entry, "expected \(setting.isList ? "one value or a list of values" : "one value"), not \(entry.value.kind)")
    }
  }

  private mutating func add(_ target: Target, _ values: [String], at position: TextPosition) {
    // `max-bytes` and `max_bytes` are the same setting, but different keys in YAML.
    guard !entries.contains(where: { $0.target == target }) else {
      return fail(YAMLError(at: position, "\(target.key) is already set above"))
    }
    entries.append(Entry(target: target, values: values, source: "\(location(position)): \(target.key)"))
  }

  private mutating func fail(_ entry: YAMLNode.Entry, _ message: String) {
    fail(YAMLError(at: entry.position, "\(Self.key(entry)): \(message)"))
  }

  private mutating func failUnknown(_ entry: YAMLNode.Entry, among names: [String]) {
    let key = Self.key(entry)
    let guess = Spelling.nearest(to: key, among: names).map { "did you mean \($0)?" }
    fail(
      YAMLError(
        at: entry.position,
        "unknown setting \"\(key)\": "
          + (guess ?? "the settings are \(Spelling.choices(for: key, among: names)); to see all: apns-mock config")))
  }

  /// The key in `apns:` for the listeners' addresses.
  static let listen = "listen"

  private static func key(_ entry: YAMLNode.Entry) -> String { entry.key.replacing("-", with: "_") }
}
