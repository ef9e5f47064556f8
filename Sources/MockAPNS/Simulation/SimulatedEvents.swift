internal import APNSMockNotation

/// Events on a simulated clock, earliest first. Events at the same time keep their order of insertion.
struct SimulatedEvents<Event> {
  private struct Entry {
    let time: MonotonicTime
    let number: Int
    let event: Event

    func isBefore(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
  }

  /// A binary heap: each entry is before the two at twice its index plus 1 and 2.
  private var entries: [Entry] = []
  private var inserted = 0

  /// The time of the first event, in monotonic nanoseconds; nil for none.
  var nextTime: MonotonicTime? { entries.first?.time }

  /// Inserts an event.
  mutating func insert(_ event: Event, at time: MonotonicTime) {
    entries.append(Entry(time: time, number: inserted, event: event))
    inserted += 1
    var index = entries.count - 1
    while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
      entries.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Removes and returns the first event; nil for none.
  mutating func removeFirst() -> (event: Event, time: MonotonicTime)? {
    guard let last = entries.popLast() else { return nil }
    guard let first = entries.first else { return (last.event, last.time) }
    entries[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < entries.count && entries[child].isBefore(entries[least]) {
        least = child
      }
      if least == index { break }
      entries.swapAt(index, least)
      index = least
    }
    return (first.event, first.time)
  }
}
