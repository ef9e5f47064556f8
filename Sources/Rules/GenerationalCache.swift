/// A dictionary of bounded size that discards entries that were not set recently.
///
/// It has two generations. Setting an entry moves it to the younger one; when that is full, the older one is dropped as
/// a whole. At least the last `limit` entries are therefore present, and at most twice as many, however many keys a
/// hostile client creates.
@usableFromInline
package struct GenerationalCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline var young: [Key: Value] = [:]
  @usableFromInline var old: [Key: Value] = [:]
  @usableFromInline let limit: Int

  /// Creates an empty cache.
  ///
  /// - Parameter limit: The maximum number of entries in each generation.
  @inlinable
  package init(limit: Int) { self.limit = limit }

  /// Whether there are no entries.
  @inlinable package var isEmpty: Bool { young.isEmpty && old.isEmpty }

  /// The number of entries.
  @inlinable package var count: Int { young.count + old.count }

  /// The value of an entry; nil if there is none. Setting nil removes the entry.
  @inlinable
  package subscript(key: Key) -> Value? {
    get { young[key] ?? old[key] }
    set {
      if !old.isEmpty { old[key] = nil }
      if newValue != nil, young.count >= limit, young[key] == nil {
        old = young
        young = [:]
      }
      young[key] = newValue
    }
  }

  /// Removes an entry and returns its value; nil if there is none.
  @inlinable @discardableResult
  package mutating func removeValue(forKey key: Key) -> Value? {
    young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
  }
}
