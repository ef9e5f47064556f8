internal import APNSMockHTTPMessage

/// The result of an attempt in format 1 of exports: a word, and whether APNs' rules accepted
/// the push. What follows from it for the decision and the ending.
package struct FormerResult {
  /// `accepted`, `rejected`, `faulted`, `pending` or `aborted`.
  enum Outcome: String {
    case accepted, rejected, faulted, pending, aborted
  }

  let outcome: Outcome
  let accepted: Bool
  /// The status of the response that was sent; nil without one.
  let status: Int?
  /// The status of the verdict; nil if there was nothing to validate.
  let verdictStatus: Int?
  /// The name of the RST_STREAM code that was sent.
  let reset: String?
  /// Whether a GOAWAY was sent whose last stream is below this one.
  let isExcluded: Bool
  /// Whether the connection was closed because of this push.
  let isClosed: Bool

  /// The contradiction between the members in words; nil if there is none.
  var contradiction: String? {
    switch (outcome, accepted) {
    case (.accepted, false): "outcome is accepted, and accepted is false"
    case (.rejected, true): "outcome is rejected, and accepted is true"
    case (.pending, _) where status != nil: "outcome is pending, and a response was sent"
    case (_, true) where verdictStatus == nil: "accepted is true without a verdict"
    case (_, true) where !HTTPStatus.isSuccess(verdictStatus ?? 0): "accepted is true, and the verdict rejects the push"
    default: nil
    }
  }

  /// The decision and the ending, `unknown` where they do not follow.
  var end: AttemptEnd {
    if outcome == .pending { return .pending }
    let ending: Ending =
      if status != nil {
        .response
      } else if reset == "REFUSED_STREAM" || isExcluded {
        .refused
      } else if verdictStatus == nil, reset == "PROTOCOL_ERROR" {
        .malformed
      } else if reset != nil {
        .reset
      } else if isClosed {
        .disconnected
      } else {
        .unknown
      }
    let decision: Decision =
      if accepted {
        .accepted
      } else if let status {
        HTTPStatus.isSuccess(status) ? .unknown : .rejected
      } else if verdictStatus.map({ HTTPStatus.isSuccess($0) }) ?? true {
        .notProcessed
      } else {
        .unknown
      }
    return AttemptEnd(decision, ending)
  }

  /// The assignments of SQL that end the attempts of a server that has ended without doing that: their connections were lost.
  package static let disconnection = """
    ending = 'disconnected', finished_at = received_at, decision = replace(decision, 'pending', 'unknown'), \
    outcome = CASE WHEN decision IN ('accepted', 'rejected') THEN 'response_lost' ELSE 'unknown' END
    """
}
