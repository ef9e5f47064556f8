/// Values by key, of which the ones not used lately are forgotten: two generations, of which the older is dropped as a
/// whole when the younger one is full. Bounded however many keys a hostile client makes.
struct KeyedTable<Value: Sendable>: Sendable {
  /// How many keys each generation remembers.
  static var generationLimit: Int { 32_768 }

  private var young: [Int: Value] = [:]
  private var old: [Int: Value] = [:]

  /// How many keys are remembered.
  var count: Int { young.count + old.count }

  /// The value of a key, by a hash of it; nil if there is none. Setting one makes the key the one used last.
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
