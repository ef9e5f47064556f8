import APNSRules
import MockAPNS
import Yams
import Notation

/// The config file: YAML whose keys are the names of the flags with `_` (or `-`), and an `apns:` map with the numbers
/// behind the rules.
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
/// `apns:` may also be an address or a list of them, as the flag is.
struct ConfigurationFile: Sendable {
  /// What a key of the file is about.
  enum Target: Sendable, Equatable {
    case setting(Setting)
    case rule(APNSSetting)

    /// The key.
    var key: String {
      switch self {
      case .setting(let setting): setting.key
      case .rule(let rule): rule.rawValue
      }
    }
  }

  /// One key with its values.
  struct Entry: Sendable, Equatable {
    let target: Target
    let values: [String]
    /// `FILE:LINE: KEY`.
    let source: String
  }

  /// The path it was read from, as it was given.
  let path: String
  /// The keys, in their order.
  private(set) var entries: [Entry] = []
  /// What is wrong in the file.
  private(set) var errors: [SettingError] = []

  /// Reads YAML. It does not fail: everything that is wrong is in `errors`.
  init(path: String, yaml: String) {
    self.path = path
    do {
      switch try compose(yaml: yaml) {
      case nil: break
      case .mapping(let map)?: readTop(map)
      case .scalar(let scalar)? where scalar.string.isEmpty: break
      case let node?: fail("the file is a map of settings, KEY: VALUE", at: node.mark)
      }
    } catch {
      errors.append(SettingError(Self.describe(error, in: path)))
    }
  }

  /// Forgets what it says about some settings. What is wrong there is still wrong.
  mutating func leaveOut(_ settings: Set<Setting>) {
    entries.removeAll { entry in
      if case .setting(let setting) = entry.target { settings.contains(setting) } else { false }
    }
  }

  private func place(_ mark: Mark?) -> String { mark.map { "\(path):\($0.line)" } ?? path }

  private mutating func fail(_ words: String, at mark: Mark?) {
    errors.append(SettingError("\(place(mark)): \(words)"))
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
          fail("\(key) takes one value", at: keyNode.mark)
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
      guard texts.count == list.count else { return fail("\(setting.key) takes a list of plain values", at: mark) }
      add(.setting(setting), texts, at: mark)
    default: fail("\(setting.key) takes \(setting.isList ? "a value or a list of values" : "one value")", at: mark)
    }
  }

  private mutating func add(_ target: Target, _ values: [String], at mark: Mark?) {
    // The same key in both spellings, `max-bytes` and `max_bytes`, which YAML takes for two.
    guard !entries.contains(where: { $0.target == target }) else {
      return fail("\(target.key) is set above already", at: mark)
    }
    entries.append(Entry(target: target, values: values, source: "\(place(mark)): \(target.key)"))
  }

  private mutating func failUnknown(_ key: String, among names: [String], at mark: Mark?) {
    let guess = Spelling.nearest(to: key, among: names).map { "did you mean \($0)? " } ?? ""
    fail("there is no setting \"\(key)\": \(guess)the settings here are \(names.joined(separator: ", "))", at: mark)
  }

  /// The key of `apns:` for the addresses of the listeners.
  static let listen = "listen"

  private static func key(_ node: Node) -> String {
    (node.scalar?.string ?? "").replacing("-", with: "_")
  }

  private static func describe(_ error: any Error, in path: String) -> String {
    switch error as? YamlError {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      "\(path):\(mark.line): this is not YAML: \(problem)"
    case .duplicatedKeysInMapping(let keys, let context):
      "\(path):\(context.mark.line): more than once in this map: \(keys.joined(separator: ", "))"
    case .reader(let problem, _, _, _): "\(path): this is not YAML: \(problem)"
    default: "\(path): this is not YAML: \(error)"
    }
  }
}
