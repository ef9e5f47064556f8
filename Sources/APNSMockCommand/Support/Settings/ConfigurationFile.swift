import APNSRules
import MockAPNS
import Yams
import Notation

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
    /// The location in messages: `FILE:LINE: KEY`.
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
    do {
      switch try compose(yaml: yaml) {
      case nil: break
      case .mapping(let map)?: readTop(map)
      case .scalar(let scalar)? where scalar.string.isEmpty: break
      case let node?: fail("the file must be a map of settings, KEY: VALUE", at: node.mark)
      }
    } catch {
      errors.append(SettingError(Self.describe(error, in: path)))
    }
  }

  /// Removes the entries of some settings, but keeps their errors.
  mutating func remove(_ settings: Set<Setting>) {
    entries.removeAll { entry in
      if case .setting(let setting) = entry.target { settings.contains(setting) } else { false }
    }
  }

  private func location(_ mark: Mark?) -> String { mark.map { "\(path):\($0.line)" } ?? path }

  private mutating func fail(_ message: String, at mark: Mark?) {
    errors.append(SettingError("\(location(mark)): \(message)"))
  }

  private mutating func readTop(_ map: Node.Mapping) {
    for (keyNode, value) in map {
      let key = Self.key(keyNode)
      if key == Setting.apns.key, case .mapping(let settings) = value {
        readRules(settings)
      } else if let setting = Setting(rawValue: key) {
        read(value, for: setting, at: keyNode.mark)
      } else {
        failUnknown(key, among: Setting.allCases.map(\.key), at: keyNode.mark)
      }
    }
  }

  private mutating func readRules(_ map: Node.Mapping) {
    for (keyNode, value) in map {
      let key = Self.key(keyNode)
      if key == Self.listen {
        read(value, for: .apns, at: keyNode.mark)
      } else if let setting = APNSSetting(rawValue: key) {
        guard case .scalar(let scalar) = value else {
          fail("\(key) must have one value", at: keyNode.mark)
          continue
        }
        add(.rule(setting), [scalar.string], at: keyNode.mark)
      } else {
        failUnknown(key, among: [Self.listen] + APNSSetting.allCases.map(\.rawValue), at: keyNode.mark)
      }
    }
  }

  private mutating func read(_ value: Node, for setting: Setting, at mark: Mark?) {
    switch value {
    case .scalar(let scalar): add(.setting(setting), [scalar.string], at: mark)
    case .sequence(let list) where setting.isList:
      let texts = list.compactMap { $0.scalar?.string }
      guard texts.count == list.count else { return fail("\(setting.key) must be a list of scalars", at: mark) }
      add(.setting(setting), texts, at: mark)
    default: fail("\(setting.key) must be \(setting.isList ? "a value or a list of values" : "one value")", at: mark)
    }
  }

  private mutating func add(_ target: Target, _ values: [String], at mark: Mark?) {
    // `max-bytes` and `max_bytes` are the same setting, but different keys in YAML.
    guard !entries.contains(where: { $0.target == target }) else {
      return fail("\(target.key) is already set above", at: mark)
    }
    entries.append(Entry(target: target, values: values, source: "\(location(mark)): \(target.key)"))
  }

  private mutating func failUnknown(_ key: String, among names: [String], at mark: Mark?) {
    let guess = Spelling.nearest(to: key, among: names).map { "did you mean \($0)? " } ?? ""
    fail("unknown setting \"\(key)\": \(guess)the settings are \(names.joined(separator: ", "))", at: mark)
  }

  /// The key in `apns:` for the listeners' addresses.
  static let listen = "listen"

  private static func key(_ node: Node) -> String {
    (node.scalar?.string ?? "").replacing("-", with: "_")
  }

  private static func describe(_ error: any Error, in path: String) -> String {
    switch error as? YamlError {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      "\(path):\(mark.line): invalid YAML: \(problem)"
    case .duplicatedKeysInMapping(let keys, let context):
      "\(path):\(context.mark.line): duplicate keys: \(keys.joined(separator: ", "))"
    case .reader(let problem, _, _, _): "\(path): invalid YAML: \(problem)"
    default: "\(path): invalid YAML: \(error)"
    }
  }
}
