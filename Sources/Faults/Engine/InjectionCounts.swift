import APNSMockFaultModel

/// The number of injections per rule and action since the server started. Resets and changes of rules do not affect
/// it.
struct InjectionCounts: Sendable {
  /// A rule and the action it carried out.
  struct Key: Hashable, Sendable {
    var rule: String
    var action: Action.Name
  }

  /// The maximum number of keys counted separately; further ones are counted under the rule name `other`.
  static let limit = 200

  private var indices: [Key: Int] = [:]
  private var counts: [(key: Key, count: Int)] = []

  /// All counts, unordered.
  var all: [(key: Key, count: Int)] { counts }

  /// Counts an injection.
  ///
  /// - Returns: The index of its count, for `add(at:)`.
  mutating func add(_ injection: Injection) -> Int {
    var key = Key(rule: injection.rule, action: injection.action.name)
    if counts.count >= Self.limit, indices[key] == nil { key.rule = "other" }
    if let index = indices[key] {
      counts[index].count += 1
      return index
    }
    indices[key] = counts.count
    counts.append((key, 1))
    return counts.count - 1
  }

  /// Counts another injection of the same rule and action.
  mutating func add(at index: Int) { counts[index].count += 1 }
}
