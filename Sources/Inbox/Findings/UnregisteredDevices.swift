internal import Notation

internal import APNSRules

/// Device tokens with a 410 response, and later pushes to them, for `retried-410`.
struct UnregisteredDevices: Sendable {
  private struct UnregisteredResponse: Sendable {
    let seq: Int
    let endedAt: MonotonicTime
    let response: String
    /// The pushes that have this response.
    var pushes: AnsweredPushes
    /// Whether the registry caused the 410, not a fault: then the registry also knows when the device is registered
    /// again.
    let isFromRegistry: Bool
  }

  private static let limit = 32_768

  private var responses = GenerationalCache<PushKey, UnregisteredResponse>(limit: limit)

  /// Whether there was no 410 response.
  var isEmpty: Bool { responses.isEmpty }

  /// Analyzes an attempt that has ended.
  mutating func analyze(_ record: borrowing Record, _ push: PushKey) -> FindingEvidence? {
    let is410 = record.sentResponse.status == 410 && record.end.ending == .response
    guard is410 || !responses.isEmpty else { return nil }
    let facts = record.facts
    let defaultTopic = record.connection.defaultTopic(facts)
    let device = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard var response = responses[device] else {
      guard is410 else { return nil }
      responses[device] = UnregisteredResponse(
        seq: record.seq, endedAt: record.endedAt, response: record.responseText,
        pushes: AnsweredPushes(push, at: record.endedAt),
        isFromRegistry: record.verdict?.status == 410)
      return nil
    }
    let isAcceptedAgain = record.verdict?.isAccepted == true
    if response.isFromRegistry && isAcceptedAgain {
      // The device was registered again.
      responses[device] = nil
      return nil
    }
    // A retry of the same push shows that the client read its response. Other pushes may have been sent before that.
    let delay = record.arrivedAt &- response.endedAt
    guard delay >= 0, response.pushes.contains(push, before: record.arrivedAt) || delay >= FindingThreshold.reaction
    else {
      if is410 {
        response.pushes.add(push, at: record.endedAt)
        responses[device] = response
      }
      return nil
    }
    if record.sentResponse.status == 200 { responses[device] = nil }
    return FindingEvidence(
      .retried410, with: [response.seq],
      .unregistered(response: response.response, after: delay))
  }
}

/// The first pushes that have the same rejection, each with the time of its response: a retry of one of them is reported
/// at once, because the client has read the response.
struct AnsweredPushes: Sendable {
  /// The maximum number of pushes. Retries of others are reported after `FindingThreshold.reaction`, as all pushes are.
  private static let limit = 32

  private var times: [PushKey: MonotonicTime]

  init(_ push: PushKey, at time: MonotonicTime) { times = [push: time] }

  /// Whether a push had its response before a time.
  func contains(_ push: PushKey, before time: MonotonicTime) -> Bool { times[push].map { $0 <= time } ?? false }

  /// Adds a push with the time of its response.
  mutating func add(_ push: PushKey, at time: MonotonicTime) {
    guard times.count < Self.limit, times[push] == nil else { return }
    times[push] = time
  }
}
