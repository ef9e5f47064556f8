/// How often rules fired, since the server started: what no reset and no change of rules takes back.
struct InjectionCounts: Sendable {
  /// A rule and what it did.
  struct Key: Hashable, Sendable {
    var rule: String
    var action: Action.Name
  }

  /// So many are told apart; what further ones did counts under the name `other`.
  static let limit = 200

  private var places: [Key: Int] = [:]
  private var counts: [(key: Key, count: Int)] = []

  /// What was counted, in no order.
  var all: [(key: Key, count: Int)] { counts }

  /// - Returns: where it is counted, for `add(at:)`.
  mutating func add(_ injection: Injection) -> Int {
    var key = Key(rule: injection.rule, action: injection.action.name)
    if counts.count >= Self.limit, places[key] == nil { key.rule = "other" }
    if let place = places[key] {
      counts[place].count += 1
      return place
    }
    places[key] = counts.count
    counts.append((key, 1))
    return counts.count - 1
  }

  /// Counts one more of the same rule and action.
  mutating func add(at place: Int) { counts[place].count += 1 }
}
