public import APNSRules

/// An error response with only a status and a body, the same for every push. Created once per rule.
public struct PlainAnswer: Sendable {
  /// The HTTP status; never 200.
  public let status: Int
  /// The reason in the body; nil without one.
  public let reason: Reason?
  /// The whole body.
  public let body: [UInt8]
}

extension Action {
  /// The action's response if it is a plain one and the action does nothing else; otherwise nil.
  var plainAnswer: PlainAnswer? {
    // A 410 contains the current time, and recording a reason that APNs does not have needs more than a plain
    // response.
    guard case .respond(let answer) = self, answer.status != 200, answer.status != 410, !answer.latches,
      answer.headers.isEmpty, answer.reason == nil || answer.knownReason != nil
    else { return nil }
    return PlainAnswer(status: answer.status, reason: answer.knownReason, body: answer.body(now: 0))
  }
}

extension Action.Answer {
  /// Returns the response body.
  ///
  /// - Parameter now: the settable clock, in milliseconds since 1970.
  package func body(now: Int64) -> [UInt8] {
    if let body { return body }
    let timestamp: Int64? =
      switch timestamp {
      case _ where status != 410: nil
      case .relative(let time): now.addingReportingOverflow(time.wholeMilliseconds).partialValue
      case .absolute(let time): time
      }
    if let knownReason { return knownReason.body(timestamp: timestamp) }
    return reason.map { Reason.body(of: $0, timestamp: timestamp) } ?? []
  }
}

extension Duration {
  /// The duration in whole milliseconds, possibly negative, clamped to the range of Int64.
  fileprivate var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    return product.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
  }
}
