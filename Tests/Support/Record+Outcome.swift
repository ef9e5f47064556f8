package import APNSMockRules
package import APNSMockInbox

extension Record.Outcome {
  /// A decision and an ending with this outcome.
  ///
  /// - Parameter accepted: Whether the push is accepted, if its response is lost.
  package func end(accepted: Bool? = nil) -> (decision: Decision, ending: Ending) {
    switch self {
    case .accepted: (.accepted, .response)
    case .rejected: (.rejected, .response)
    case .responseLost: (accepted == false ? .rejected : .accepted, .disconnected)
    case .unanswered: (.notProcessed, .disconnected)
    case .unprocessed: (.notProcessed, .refused)
    case .incomplete: (.notProcessed, .incomplete)
    case .malformed: (.notProcessed, .malformed)
    case .pending: (.pending, .pending)
    case .unknown: (.unknown, .unknown)
    }
  }
}

extension Record.Result {
  /// Creates a result with an outcome.
  ///
  /// - Parameter accepted: Whether the push is accepted, if its response is lost.
  package init(
    outcome: Record.Outcome, accepted: Bool? = nil, sentResponse: Record.SentResponse = Record.SentResponse(),
    wireDetails: WireDetails? = nil, finishedAt: Int64?, delivery: DeliveryState? = nil
  ) {
    let end = outcome.end(accepted: accepted)
    self.init(
      end.decision, end.ending, sentResponse: sentResponse, wireDetails: wireDetails, finishedAt: finishedAt,
      delivery: delivery)
  }
}
