internal import APNSRules

/// Device tokens that were answered 410, and who pushes to them still: `retried-410`.
struct DeadDevices: Sendable {
  private struct Death: Sendable {
    let seq: Int
    let endedAt: Int64
    let answer: String
    let push: PushKey
    /// By the registry, and not by a fault: the registry then knows when the device is back.
    let isKnown: Bool
  }

  private static let limit = 32_768

  private var deaths = TwoGenerations<PushKey, Death>(limit: limit)

  /// Whether no device token was answered 410.
  var isEmpty: Bool { deaths.isEmpty }

  /// Looks at an attempt that has ended.
  ///
  /// - Parameter isUnderWay: whether a push that came at this time may have left before an answer of that time was read.
  mutating func take(
    _ record: borrowing Record, _ push: PushKey, isUnderWay: (_ endedAt: Int64) -> Bool
  ) -> Earned? {
    let isGone = record.served.status == 410
    guard isGone || !deaths.isEmpty else { return nil }
    let facts = record.facts
    let defaultTopic = record.connection.defaultTopic(facts)
    let device = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard let death = deaths[device] else {
      guard isGone else { return nil }
      deaths.set(
        device,
        Death(
          seq: record.seq, endedAt: record.endedAt, answer: record.answerText, push: push,
          isKnown: record.verdict?.status == 410))
      return nil
    }
    let isAlive = record.verdict?.isAccepted == true
    if death.isKnown && isAlive {
      // It was registered anew.
      _ = deaths.remove(device)
      return nil
    }
    // A retry of the very push shows that its answer was read.
    guard record.arrivedAt >= death.endedAt, push == death.push || !isUnderWay(death.endedAt) else { return nil }
    if record.served.status == 200 { _ = deaths.remove(device) }
    return Earned(
      .retried410, with: [death.seq], .gone(answer: death.answer, after: record.arrivedAt &- death.endedAt))
  }
}
