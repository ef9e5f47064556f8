internal import APNSRules
internal import Notation

/// Something that rules count for one key, such as a device token.
struct CountedKey: Hashable {
  /// What is counted.
  enum Kind: String {
    /// Pushes that matched, for `first`, `after` and `every`.
    case matched
    /// Injections, for `times`.
    case injected
    /// Steps of a sequence.
    case steps
  }

  let kind: Kind
  let key: Int
}

/// Counts that are not announced to other servers yet. While the store fails, only some are kept.
struct UnannouncedCounts {
  private(set) var counts: [CountedKey: Int] = [:]

  mutating func add(_ kind: CountedKey.Kind, _ key: Int) {
    let counted = CountedKey(kind: kind, key: key)
    guard counts.count < RuleCounter.keyLimit || counts[counted] != nil else { return }
    counts[counted, default: 0] &+= 1
  }
}

/// What the rules of one server have counted, for the other servers that share its store.
package struct SharedCounts {
  /// What one rule has counted for one key.
  struct Entry {
    /// The rule; nil for magic device tokens.
    var rule: RuleCounters.Identity?
    var counted: CountedKey
    var count: Int
  }

  /// The number of the newest request for all servers that was executed before these pushes were counted.
  package let request: Int
  let entries: [Entry]

  init(after request: Int, _ entries: [Entry]) { (self.request, self.entries) = (request, entries) }

  /// The counts as JSON.
  package var json: String {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("request", request)
      writer.arrayMember("counts") { writer in
        for entry in entries {
          writer.object { writer in
            writer.member("rule", entry.rule?.name)
            writer.member("profile", entry.rule?.profile)
            writer.member("occurrence", entry.rule?.occurrence ?? 0)
            writer.member("kind", entry.counted.kind.rawValue)
            writer.member("key", entry.counted.key)
            writer.member("count", entry.count)
          }
        }
      }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads counts from JSON; nil if it is invalid.
  package init?(json text: String) {
    guard case .object(let object) = JSONValue(Array(text.utf8)[...]) else { return nil }
    let members = object.members
    guard let request = members["request"]?.integer, case .list(let counts) = members["counts"] else { return nil }
    self.init(after: request, counts.elements.compactMap(Entry.init))
  }
}

extension SharedCounts.Entry {
  fileprivate init?(_ value: JSONValue) {
    guard case .object(let object) = value else { return nil }
    let members = object.members
    guard case .text(let text) = members["kind"], let kind = CountedKey.Kind(rawValue: text),
      let key = members["key"]?.integer, let count = members["count"]?.integer
    else { return nil }
    var rule: RuleCounters.Identity?
    if case .text(let name) = members["rule"] {
      rule = RuleCounters.Identity(profile: nil, name: name, occurrence: members["occurrence"]?.integer ?? 0)
      if case .text(let profile) = members["profile"] { rule?.profile = profile }
    }
    self.init(rule: rule, counted: CountedKey(kind: kind, key: key), count: count)
  }
}

extension JSONValue {
  fileprivate var integer: Int? {
    guard case .number(let text) = self else { return nil }
    return Int(text)
  }
}
