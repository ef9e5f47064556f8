internal import APNSRules

/// Device tokens with a 410 response, and later pushes to them, for `retried-410`.
struct DeadDevices: Sendable {
  private struct Death: Sendable {
    let seq: Int
    let endedAt: Int64
    let answer: String
    let push: PushKey
    /// Whether the registry caused the 410, not a fault: then the registry also knows when the device is registered
    /// again.
    let isKnown: Bool
  }

  private static let limit = 32_768

  private var deaths = TwoGenerations<PushKey, Death>(limit: limit)

  /// Whether there was no 410 response.
  var isEmpty: Bool { deaths.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter isUnderWay: Returns whether the push may have been sent before the client read a response sent at
  ///   `endedAt`.
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
      // The device was registered again.
      _ = deaths.remove(device)
      return nil
    }
    // A retry of the same push shows that the client read its response.
    guard record.arrivedAt >= death.endedAt, push == death.push || !isUnderWay(death.endedAt) else { return nil }
    if record.served.status == 200 { _ = deaths.remove(device) }
    return Earned(
      .retried410, with: [death.seq], .gone(answer: death.answer, after: record.arrivedAt &- death.endedAt))
  }
}
