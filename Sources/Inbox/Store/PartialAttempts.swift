internal import APNSRules
internal import HTTPMessage
internal import Notation

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

  /// Whether an attempt with another `apns-id` and the same target may be the same push: the lengths of their bodies do not
  /// differ, and, if both have an id, are known.
  fileprivate func mayEqual(_ other: PartialPush) -> Bool {
    if let contentLength, let length = other.contentLength { return contentLength == length }
    return id == nil || other.id == nil
  }
}

extension PushKey {
  /// The key of the client's `apns-id`; nil without one.
  fileprivate init?(idIn packed: UnsafeRawBufferPointer, _ facts: PushFacts) {
    guard let id = facts.apnsID else { return nil }
    self.init(apnsID: UnsafeRawBufferPointer(rebasing: packed[id.indices]))
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
/// A later attempt is matched to the nearest of them that has the same `apns-id`, else to the nearest one with the same
/// device token, topic, push type, collapse id and `content-length`; and to no other. If one of the two has no
/// `content-length`, they match only if one of them has no `apns-id`: providers send different pushes to one device.
struct PartialAttempts<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let push: PartialPush
    /// When the attempt ended, in monotonic nanoseconds. Only attempts that arrive later can be retries.
    let endedAt: MonotonicTime
    let value: Value
  }

  /// The maximum number of attempts; beyond it the older half is dropped.
  private static var limit: Int { 1 << 15 }

  private var entries: [Int: Entry] = [:]
  private var numbersByID: [PushKey: [Int]] = [:]
  private var numbersByTarget: [PushKey: [Int]] = [:]
  private var next = 0

  init() {}

  /// Whether there are none.
  var isEmpty: Bool { entries.isEmpty }

  /// Adds an attempt that ended at a time in monotonic nanoseconds.
  mutating func add(_ push: PartialPush, endedAt: MonotonicTime, _ value: Value) {
    if entries.count >= Self.limit {
      for number in entries.keys.sorted().prefix(Self.limit / 2) { remove(number) }
    }
    entries[next] = Entry(push: push, endedAt: endedAt, value: value)
    if let id = push.id { numbersByID[id, default: []].append(next) }
    numbersByTarget[push.target, default: []].append(next)
    next += 1
  }

  /// Removes the attempt that a later one is matched to, and returns its value.
  ///
  /// - Parameter time: When the later attempt arrived, in monotonic nanoseconds.
  mutating func takeMatch(_ push: PartialPush, arrivedAt time: MonotonicTime) -> Value? {
    guard let number = number(for: push, arrivedAt: time) else { return nil }
    return remove(number)
  }

  private func number(for push: PartialPush, arrivedAt time: MonotonicTime) -> Int? {
    func hasEnded(_ number: Int) -> Bool { entries[number].map { $0.endedAt < time } ?? false }
    if let id = push.id, let number = numbersByID[id]?.last(where: hasEnded) { return number }
    return numbersByTarget[push.target]?.last { hasEnded($0) && entries[$0]?.push.mayEqual(push) == true }
  }

  @discardableResult
  private mutating func remove(_ number: Int) -> Value? {
    guard let entry = entries.removeValue(forKey: number) else { return nil }
    if let id = entry.push.id { Self.remove(number, of: id, from: &numbersByID) }
    Self.remove(number, of: entry.push.target, from: &numbersByTarget)
    return entry.value
  }

  private static func remove(_ number: Int, of key: PushKey, from numbers: inout [PushKey: [Int]]) {
    numbers[key]?.removeAll { $0 == number }
    if numbers[key]?.isEmpty == true { numbers[key] = nil }
  }
}
