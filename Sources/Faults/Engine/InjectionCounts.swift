/// How often rules fired, since the server started: what no reset and no change of rules takes back.
struct InjectionCounts: Sendable {
  /// A rule and what it did.
  struct Key: Hashable, Sendable {
    var rule: String
    var action: Action.Name
  }

  /// So many are told apart; what further ones did counts under the name `other`.
  static let limit = 200

  private(set) var counts: [Key: Int] = [:]

  mutating func add(_ injection: Injection) {
    var key = Key(rule: injection.rule, action: injection.action.name)
    if counts.count >= Self.limit, counts[key] == nil { key.rule = "other" }
    counts[key, default: 0] += 1
  }
}
