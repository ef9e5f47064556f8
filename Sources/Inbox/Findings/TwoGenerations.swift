/// A table that forgets: two generations, of which the older is dropped as a whole when the younger one is full.
///
/// What is set or changed counts as young again, so at least the last `limit` entries are there.
struct TwoGenerations<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  private let limit: Int

  /// - Parameter limit: how many entries each generation has at most.
  init(limit: Int) { self.limit = limit }

  /// Whether nothing is remembered.
  var isEmpty: Bool { young.isEmpty && old.isEmpty }

  subscript(key: Key) -> Value? { young[key] ?? old[key] }

  /// Takes an entry out.
  mutating func remove(_ key: Key) -> Value? { young.removeValue(forKey: key) ?? old.removeValue(forKey: key) }

  /// Puts an entry in.
  mutating func set(_ key: Key, _ value: Value) {
    if !old.isEmpty { old[key] = nil }
    if young.count >= limit, young[key] == nil {
      old = young
      young = [:]
    }
    young[key] = value
  }
}
