internal import APNSMockNotation

/// Values with keys, each of which is due at a time, or never.
struct DueTable<Value: Sendable>: Sendable {
  private var values: [UInt64: (value: Value, due: ServerTime?)] = [:]
  /// Some entries are of values that were removed or replaced.
  private var times = DueTimes()

  /// The value with this key; nil if there is none.
  subscript(key: UInt64) -> Value? { values[key]?.value }

  /// Adds a value in place of the one with the same key.
  ///
  /// - Parameter due: When it is due, in milliseconds since 1970; nil for never.
  mutating func set(_ value: Value, at key: UInt64, due: ServerTime?) {
    values[key] = (value, due)
    guard let due else { return }
    times.add(key, at: due)
    if times.isSparse(for: values.count) {
      times = DueTimes(values.compactMap { key, entry in entry.due.map { (key, $0) } })
    }
  }

  /// Changes the value with this key, if there is one. When it is due stays the same.
  mutating func update(_ key: UInt64, _ change: (inout Value) -> Void) {
    guard var entry = values[key] else { return }
    change(&entry.value)
    values[key] = entry
  }

  /// Removes and returns the value with this key; nil if there is none.
  @discardableResult
  mutating func remove(_ key: UInt64) -> Value? { values.removeValue(forKey: key)?.value }

  /// Removes and returns the value with this key if it is due by now; otherwise returns nil.
  mutating func remove(_ key: UInt64, ifDueAt now: ServerTime) -> Value? {
    guard let due = values[key]?.due, due <= now else { return nil }
    return remove(key)
  }

  /// Whether a value may be due.
  func isDue(at now: ServerTime) -> Bool { times.isDue(at: now) }

  /// Removes and returns values that are due, in the order of their times.
  ///
  /// - Parameter limit: The maximum number of due times to examine, which is reduced by the number examined. Some may be of
  ///   values that are gone, so that nothing is returned although `isDue`.
  mutating func takeDue(at now: ServerTime, limit: inout Int) -> [Value] {
    var due: [Value] = []
    while limit > 0, let key = times.popFirst(dueAt: now) {
      limit -= 1
      guard let entry = values[key], let time = entry.due, time <= now else { continue }
      values[key] = nil
      due.append(entry.value)
    }
    return due
  }
}

/// Times at which something is due for a key, such as the expiry of a stored push: a binary heap.
///
/// An entry stays until its time when it has no object any more, so who takes one checks whether it still holds.
struct DueTimes: Sendable {
  private typealias Entry = (time: ServerTime, key: UInt64)

  private var heap: [Entry] = []

  /// Creates an empty list.
  init() {}

  /// Creates a list with these entries.
  init(_ entries: some Sequence<(UInt64, ServerTime)>) {
    heap = entries.map { key, time in (time, key) }
    for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(from: index) }
  }

  /// Whether most entries have no object any more, if there are `count` objects.
  func isSparse(for count: Int) -> Bool { heap.count > 2 * count + 1024 }

  /// Whether the earliest time has come.
  func isDue(at now: ServerTime) -> Bool { heap.first.map { $0.time <= now } ?? false }

  mutating func add(_ key: UInt64, at time: ServerTime) {
    var index = heap.count
    heap.append((time, key))
    while index > 0, heap[index] < heap[(index - 1) / 2] {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Removes the earliest entry, of equal ones that with the smallest key, and returns its key; nil if none is due.
  mutating func popFirst(dueAt now: ServerTime) -> UInt64? {
    guard let first = heap.first, first.time <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink(from: 0)
    }
    return first.key
  }

  private mutating func sink(from start: Int) {
    var index = start
    while true {
      var least = index
      for child in 2 * index + 1...2 * index + 2 where child < heap.count && heap[child] < heap[least] { least = child }
      guard least != index else { return }
      heap.swapAt(index, least)
      index = least
    }
  }
}
