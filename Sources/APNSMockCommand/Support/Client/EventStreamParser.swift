/// A parser of event streams (HTML Standard, section 9.2).
struct EventStreamParser {
  /// One event.
  struct Event: Equatable {
    /// The event's type.
    var name = "message"
    /// The event's data.
    var data: [UInt8] = []
  }

  /// The id of the last complete event, which identifies the position to resume at.
  private(set) var lastID: String?

  private var line: [UInt8] = []
  private var event = Event()
  private var hasData = false
  private var id: String?

  /// Prepares for a new stream that continues after the last complete event; discards a partial event.
  mutating func restart() {
    let lastID = lastID
    self = EventStreamParser()
    self.lastID = lastID
  }

  /// Parses the next bytes and returns the events they complete.
  mutating func parse(_ bytes: [UInt8]) -> [Event] {
    var events: [Event] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      if line.isEmpty {
        if hasData { events.append(event) }
        lastID = id ?? lastID
        id = nil
        event = Event()
        hasData = false
      } else {
        parseLine()
      }
      line.removeAll(keepingCapacity: true)
    }
    return events
  }

  private mutating func parseLine() {
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[min(colon + 1, line.endIndex)...]
    if value.first == UInt8(ascii: " ") { value.removeFirst() }
    switch String(decoding: line[..<colon], as: UTF8.self) {
    case "id": id = String(decoding: value, as: UTF8.self)
    case "event": event.name = String(decoding: value, as: UTF8.self)
    case "data":
      if hasData { event.data.append(UInt8(ascii: "\n")) }
      event.data += value
      hasData = true
    default: break
    }
  }
}
