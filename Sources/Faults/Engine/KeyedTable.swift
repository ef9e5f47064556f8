/// A table that forgets keys not used recently. It has two generations; when the younger is full, the older is
/// dropped as a whole. The size is bounded however many keys a hostile client creates.
struct KeyedTable<Value: Sendable>: Sendable {
  /// The maximum number of keys in each generation.
  static var generationLimit: Int { 32_768 }

  private var young: [Int: Value] = [:]
  private var old: [Int: Value] = [:]

  /// The number of keys in the table.
  var count: Int { young.count + old.count }

  /// The value of a key, given by its hash; nil if there is none. Setting a value makes the key the most recently
  /// used.
  subscript(key: Int) -> Value? {
    get { young[key] ?? old[key] }
    set {
      old.removeValue(forKey: key)
      if newValue != nil, young.count >= Self.generationLimit, young[key] == nil {
        old = young
        young = [:]
      }
      young[key] = newValue
    }
  }
}
