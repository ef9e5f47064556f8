internal import APNSMockRules
internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// What is known of a push from its header fields alone.
struct PartialPush: Sendable {
  /// The key of the client's `apns-id`; nil without one.
  let id: PushKey?
  /// The key of device token, topic, push type and collapse id.
  let target: PushKey
  /// The value of `content-length`; nil without one.
  let contentLength: Int64?

  /// Reads packed header fields.
  ///
  /// - Parameter defaultTopic: The topic of a push without `apns-topic`.
  init(headers packed: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?) {
    id = PushKey(idIn: packed, facts)
    target = PushKey(withoutBodyOf: packed, facts, defaultTopic: defaultTopic)
    var length: Int64?
    HeaderList.forEachField(in: packed) { name, value in
      guard packed[name.indices].elementsEqual("content-length".utf8) else { return }
      length = Int64(String(decoding: packed[value.indices], as: UTF8.self))
    }
    contentLength = length
  }
}

extension PushKey {
  /// The key of the client's `apns-id`; nil without one.
  fileprivate init?(idIn packed: UnsafeRawBufferPointer, _ facts: PushFacts) {
    guard let id = facts.apnsID else { return nil }
    self.init(apnsID: packed[id])
  }
}

extension Record {
  /// The key of the client's `apns-id`; nil without one.
  var idKey: PushKey? {
    let facts = facts
    return facts.apnsID == nil ? nil : withHeaders { PushKey(idIn: $0, facts) }
  }

  /// What is known of the push from its header fields.
  var partialPush: PartialPush {
    let facts = facts
    let defaultTopic = connection.defaultTopic(facts)
    return withHeaders { PartialPush(headers: $0, facts, defaultTopic: defaultTopic) }
  }
}

/// Attempts whose body is not known, because their request did not become complete, and whose push is not known either.
///
/// A later attempt is matched to the latest of them that has the same `apns-id`; else to the latest one with the same device
/// token, topic, push type, collapse id and `content-length`; and to no other. If one of the two has no `content-length`, they match
/// only if one of them has no `apns-id`: providers send different pushes to one device.
///
/// A client decides how many attempts have the same target, so the match is found by binary search.
struct PartialAttempts<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let push: PartialPush
    let endedAt: MonotonicTime
    let value: Value
  }

  /// Attempts of which a later one may be a repetition.
  private enum Likeness: Hashable, Sendable {
    case id(PushKey)
    case target(PushKey)
    case targetWithoutID(PushKey)
    case contentLength(PushKey, Int64)
    case unknownLength(PushKey, hasID: Bool)

    /// Returns all that an attempt belongs to.
    static func all(of push: PartialPush) -> [Likeness] {
      let target = push.target
      let length = push.contentLength.map { contentLength(target, $0) } ?? unknownLength(target, hasID: push.id != nil)
      return [.target(target), length, push.id.map { id($0) } ?? targetWithoutID(target)]
    }

    /// Returns those whose attempts a later one with another `apns-id` may repeat.
    static func repeated(by push: PartialPush) -> [Likeness] {
      let target = push.target
      guard let length = push.contentLength else {
        return [push.id == nil ? .target(target) : .targetWithoutID(target)]
      }
      return [.contentLength(target, length), .unknownLength(target, hasID: false)]
        + (push.id == nil ? [.unknownLength(target, hasID: true)] : [])
    }
  }

  /// Attempts with one key, in the order in which they ended.
  private struct EndedAttempts: Sendable {
    private var attempts: [(endedAt: MonotonicTime, number: Int)] = []

    var isEmpty: Bool { attempts.isEmpty }

    /// The last attempt that ended before a time.
    func last(before time: MonotonicTime) -> (endedAt: MonotonicTime, number: Int)? {
      let count = attempts.partitioningIndex { $0.endedAt >= time }
      return count == 0 ? nil : attempts[count - 1]
    }

    mutating func insert(_ number: Int, endedAt time: MonotonicTime) {
      attempts.insert((time, number), at: attempts.partitioningIndex { $0.endedAt > time })
    }

    mutating func remove(_ number: Int, endedAt time: MonotonicTime) {
      let index = attempts.partitioningIndex { ($0.endedAt, $0.number) >= (time, number) }
      if index < attempts.count, attempts[index].number == number { attempts.remove(at: index) }
    }
  }

  /// The maximum number of attempts; beyond it the older half is dropped.
  private static var limit: Int { 1 << 13 }

  private var entries: [Int: Entry] = [:]
  private var alike: [Likeness: EndedAttempts] = [:]
  private var next = 0
  /// When the latest attempt ended, in monotonic nanoseconds.
  private(set) var lastEnd: MonotonicTime = 0
  /// Whether attempts were dropped because there were too many.
  private(set) var isTruncated = false

  init() {}

  /// Whether there are none.
  var isEmpty: Bool { entries.isEmpty }

  /// Adds an attempt that ended at a time in monotonic nanoseconds.
  mutating func add(_ push: PartialPush, endedAt time: MonotonicTime, _ value: Value) {
    if entries.count >= Self.limit { dropOlderHalf() }
    lastEnd = max(lastEnd, time)
    insert(next, Entry(push: push, endedAt: time, value: value))
    next += 1
  }

  /// Removes the attempt that a later one is matched to, and returns its value.
  ///
  /// - Parameter time: When the later attempt arrived, in monotonic nanoseconds. Only attempts that ended before can be earlier
  ///   attempts of its push.
  mutating func takeMatch(_ push: PartialPush, arrivedAt time: MonotonicTime) -> Value? {
    let match =
      push.id.flatMap { alike[.id($0)]?.last(before: time) }
      ?? Likeness.repeated(by: push).compactMap { alike[$0]?.last(before: time) }.max { $0 < $1 }
    guard let match, let entry = entries.removeValue(forKey: match.number) else { return nil }
    for likeness in Likeness.all(of: entry.push) {
      alike[likeness]?.remove(match.number, endedAt: entry.endedAt)
      if alike[likeness]?.isEmpty == true { alike[likeness] = nil }
    }
    return entry.value
  }

  private mutating func insert(_ number: Int, _ entry: Entry) {
    entries[number] = entry
    for likeness in Likeness.all(of: entry.push) {
      alike[likeness, default: EndedAttempts()].insert(number, endedAt: entry.endedAt)
    }
  }

  private mutating func dropOlderHalf() {
    isTruncated = true
    let kept = entries.sorted { $0.key < $1.key }.suffix(Self.limit / 2)
    entries = [:]
    alike = [:]
    for (number, entry) in kept { insert(number, entry) }
  }
}
