internal import APNSMockRules

/// The newest updates of Live Activities whose device tokens are not registered, for `would-not-show`. Of registered ones the
/// registry of devices knows more.
struct ActivityUpdates: Sendable {
  /// What the activity of a device token shows.
  private struct Shown: Sendable {
    /// In seconds since 1970.
    var timestamp: Double
    var seq: Int
    var hasEnded = false
  }

  private static let limit = 32_768

  private var newest = GenerationalCache<PushKey, Shown>(limit: limit)

  /// Analyzes an attempt that has ended.
  mutating func analyze(_ record: borrowing Record) -> FindingEvidence? {
    guard record.facts.pushType == .liveactivity, record.accepted, record.delivery == nil, record.kind == .push else {
      return nil
    }
    let (facts, now) = (record.facts, record.receivedAt)
    guard let content = record.withBody({ ActivityContent(payload: $0, at: now) }), content.event != .start else {
      return nil
    }
    let defaultTopic = record.connection.defaultTopic(facts)
    let token = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard var shown = newest[token] else {
      newest[token] = Shown(timestamp: content.timestamp, seq: record.seq, hasEnded: content.event == .end)
      return nil
    }
    if content.event == .update {
      let problem: DisplayProblem? =
        shown.hasEnded
        ? .activityEnded(event: content.event.rawValue)
        : content.timestamp < shown.timestamp
          ? .olderThanShown(timestamp: content.timestamp, shown: shown.timestamp) : nil
      if let problem { return FindingEvidence(.wouldNotShow, with: [shown.seq], .notShown(problem)) }
    }
    shown.timestamp = max(shown.timestamp, content.timestamp)
    shown.seq = record.seq
    shown.hasEnded = shown.hasEnded || content.event == .end
    newest[token] = shown
    return nil
  }
}
