/// A bounded dictionary with two generations. When the younger one is full, the older one is dropped as a whole.
///
/// Setting an entry moves it to the younger generation, so at least the last `limit` entries are present.
struct TwoGenerations<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  private let limit: Int

  /// - Parameter limit: The maximum number of entries in each generation.
  init(limit: Int) { self.limit = limit }

  /// Whether there are no entries.
  var isEmpty: Bool { young.isEmpty && old.isEmpty }

  subscript(key: Key) -> Value? { young[key] ?? old[key] }

  /// Removes an entry and returns its value.
  mutating func remove(_ key: Key) -> Value? { young.removeValue(forKey: key) ?? old.removeValue(forKey: key) }

  /// Sets the value of an entry.
  mutating func set(_ key: Key, _ value: Value) {
    if !old.isEmpty { old[key] = nil }
    if young.count >= limit, young[key] == nil {
      old = young
      young = [:]
    }
    young[key] = value
  }
}
