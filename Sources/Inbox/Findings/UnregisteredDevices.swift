internal import APNSMockRules

/// Device tokens with a 410 response, and later pushes to them, for `retried-410`.
struct UnregisteredDevices: Sendable {
  private struct UnregisteredResponse: Sendable {
    let response: String
    var rejection: SharedRejection
    /// Whether the registry caused the 410, not a fault: then the registry also knows when the device is registered
    /// again.
    let isFromRegistry: Bool
  }

  private static let limit = 32_768

  private var responses = GenerationalCache<PushKey, UnregisteredResponse>(limit: limit)

  /// Whether there was no 410 response.
  var isEmpty: Bool { responses.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  mutating func analyze(
    _ record: borrowing Record, _ push: PushKey, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) -> FindingEvidence? {
    let is410 = record.sentResponse.status == 410 && record.end.ending == .response
    guard is410 || !responses.isEmpty else { return nil }
    let facts = record.facts
    let defaultTopic = record.connection.defaultTopic(facts)
    let device = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard var response = responses[device] else {
      guard is410 else { return nil }
      responses[device] = UnregisteredResponse(
        response: record.responseText, rejection: SharedRejection(record, push),
        isFromRegistry: record.verdict?.status == 410)
      return nil
    }
    let isAcceptedAgain = record.verdict?.isAccepted == true
    if response.isFromRegistry && isAcceptedAgain {
      // The device was registered again.
      responses[device] = nil
      return nil
    }
    guard let delay = response.rejection.delay(of: record, push, end) else {
      if is410 {
        response.rejection.add(record, push)
        responses[device] = response
      }
      return nil
    }
    if record.sentResponse.status == 200 { responses[device] = nil }
    return FindingEvidence(
      .retried410, with: [response.rejection.seq], .unregistered(response: response.response, after: delay))
  }
}
