internal import NIOConcurrencyHelpers

/// A count of a rule that a store keeps in a row.
struct CountRow: Hashable {
  enum Table: String {
    /// The traffic that met the condition.
    case matched
    /// The injections.
    case fired
    /// The steps that a sequence has taken.
    case steps
    /// `evaluations` and `fired`.
    case total
  }

  /// The largest count that is continued: more in a store is damage.
  static let limit = 1 << 48

  /// How often the rule was evaluated.
  static let evaluations = CountRow(table: .total, key: 0)
  /// How often it has fired.
  static let fired = CountRow(table: .total, key: 1)

  let table: Table
  /// A hash of what is counted: the rule, a device token, and so on.
  let key: Int

  /// The beginning of the names of all rows.
  static let prefix = "count/"

  init(table: Table, key: Int) { (self.table, self.key) = (table, key) }

  /// Returns the name of the row: `count/PROFILE/RULE/OCCURRENCE/TABLE/KEY`. The profile may contain slashes, and is empty for
  /// an added rule.
  func name(of rule: RuleCounters.Identity) -> String {
    "\(Self.prefix)\(rule.profile ?? "")/\(rule.name)/\(rule.occurrence)/\(table.rawValue)/\(key)"
  }

  /// Parses the name of a row.
  static func parse(_ name: String) -> (rule: RuleCounters.Identity, row: CountRow)? {
    guard name.hasPrefix(prefix) else { return nil }
    let parts = name.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 5, let key = Int(parts[parts.count - 1]), let occurrence = Int(parts[parts.count - 3]),
      let table = Table(rawValue: String(parts[parts.count - 2]))
    else { return nil }
    let profile = parts.dropLast(4).joined(separator: "/")
    let rule = RuleCounters.Identity(
      profile: profile.isEmpty ? nil : profile, name: String(parts[parts.count - 4]), occurrence: occurrence)
    return (rule, CountRow(table: table, key: key))
  }
}

extension RuleCounters {
  /// Returns the counts that have changed since the last call, as rows of a store; nil for a row to remove.
  package func takeChangedRows() -> [String: String?] {
    state.withLockedValue { state in
      var rows: [String: String?] = [:]
      for name in state.removedRows { rows[name] = .some(nil) }
      state.removedRows = []
      for (identity, id) in state.counterIDs {
        for (row, count) in state.counters[id]?.takeChangedRows() ?? [] {
          rows[row.name(of: identity)] = .some(count.map { String($0) })
        }
      }
      return rows
    }
  }

  /// Continues with stored counts of the active rules. Those of other rules are removed from the store.
  package func restore(_ rows: [String: String]) {
    state.withLockedValue { state in
      for (name, text) in rows where name.hasPrefix(CountRow.prefix) {
        if let (identity, row) = CountRow.parse(name), let count = Int(text), (0...CountRow.limit).contains(count),
          let id = state.counterIDs[identity]
        {
          state.counters[id]?.restore(count, row)
        } else {
          state.removedRows.insert(name)
        }
      }
    }
  }
}
