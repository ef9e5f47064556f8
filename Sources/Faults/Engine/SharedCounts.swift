internal import APNSRules
internal import Notation

/// Something that a rule counts for one key, such as a device token.
struct CountedKey: Hashable {
  /// What is counted.
  enum Kind: String, CaseIterable {
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

/// Counts of a rule that are not announced to other servers yet. While the store fails, only some are kept.
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
  /// What one rule has counted.
  struct RuleCounts {
    /// The rule; nil for magic device tokens.
    var rule: RuleCounters.Identity?
    /// The number of the request that created or last reset the sender's counter, but at least that of the newest message
    /// when the sender was started. A server whose own counter is newer ignores the counts.
    var since: Int
    var counts: [CountedKey: Int]
  }

  /// The maximum number to add to a counter.
  private static let limit = 1 << 32

  let rules: [RuleCounts]

  init(_ rules: [RuleCounts]) { self.rules = rules }

  /// The counts as JSON.
  package var json: String {
    var writer = JSONWriter()
    writer.array { writer in
      for counts in rules {
        writer.object { writer in
          writer.member("rule", counts.rule?.name)
          writer.member("profile", counts.rule?.profile)
          writer.member("occurrence", counts.rule?.occurrence ?? 0)
          writer.member("since", counts.since)
          for kind in CountedKey.Kind.allCases {
            // Each key is followed by its count.
            writer.arrayMember(kind.rawValue) { writer in
              for (counted, count) in counts.counts where counted.kind == kind {
                writer.integer(counted.key)
                writer.integer(count)
              }
            }
          }
        }
      }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads counts from JSON; nil if it is invalid.
  package init?(json text: String) {
    guard case .list(let list) = JSONValue(Array(text.utf8)[...]) else { return nil }
    var rules: [RuleCounts] = []
    for element in list.elements {
      guard let counts = RuleCounts(element, limit: Self.limit) else { return nil }
      rules.append(counts)
    }
    self.init(rules)
  }
}

extension SharedCounts.RuleCounts {
  fileprivate init?(_ value: JSONValue, limit: Int) {
    guard case .object(let object) = value else { return nil }
    let members = object.members
    guard let since = members["since"]?.integer, let occurrence = members["occurrence"]?.integer else { return nil }
    switch (members["rule"], members["profile"]) {
    case (.null, .null): rule = nil
    case (.text(let name), .null): rule = .init(profile: nil, name: name, occurrence: occurrence)
    case (.text(let name), .text(let profile)): rule = .init(profile: profile, name: name, occurrence: occurrence)
    default: return nil
    }
    self.since = since
    counts = [:]
    for kind in CountedKey.Kind.allCases {
      guard case .list(let list) = members[kind.rawValue] else { return nil }
      let numbers = list.elements.map(\.integer)
      for index in stride(from: 0, to: numbers.count, by: 2) {
        guard let key = numbers[index], index + 1 < numbers.count, let count = numbers[index + 1],
          (1...limit).contains(count)
        else { return nil }
        counts[CountedKey(kind: kind, key: key)] = count
      }
    }
  }
}

extension JSONValue {
  fileprivate var integer: Int? {
    guard case .number(let text) = self else { return nil }
    return Int(text)
  }
}
