package import APNSMockNotation
package import APNSMockFaultModel

/// What happened on the wire beyond an ordinary response, and the faults that caused it. Few records have such details.
///
/// They explain an attempt; its decision and its ending are stored with its result.
package struct WireDetails: Sendable {
  /// How the connection was closed because of this push.
  package enum CloseMethod: String, Sendable {
    /// The connection was closed with a TCP FIN.
    case fin
    /// The connection was reset with a TCP RST.
    case reset
  }

  /// A GOAWAY frame that was sent.
  package struct GoAway: Sendable, Equatable {
    /// The name of the error code.
    package let code: String
    /// The last stream ID.
    package let lastStream: Int32
    /// The debug data as text.
    package let debugData: String

    /// Creates a description of a GOAWAY frame that was sent.
    package init(code: String, lastStream: Int32, debugData: String) {
      self.code = code
      self.lastStream = lastStream
      self.debugData = debugData
    }
  }

  /// A violation of HTTP/2 by the client.
  package enum ProtocolViolation: Sendable, Equatable {
    /// The client opened the stream well after a GOAWAY with a lower last stream ID, by this many nanoseconds of
    /// machine time.
    case afterGoAway(lastStream: Int32, nanoseconds: Int64)
    /// The client opened one stream more than this limit, which it had acknowledged.
    case excessStreams(limit: UInt32)
    /// The request is malformed, with the violation in words.
    case malformed(String)
  }

  /// The end of a push that was forwarded to upstream.
  package struct UpstreamAnswer: Sendable, Equatable {
    /// The HTTP status; nil without a response.
    package let status: Int?
    /// The reason in the response's body; nil without one.
    package let reason: String?
    /// The `apns-id` of the response, truncated to 64 characters; nil without one.
    package let apnsID: String?
    /// Why there is no response, in one sentence; nil if there is one.
    package let problem: String?
    /// Nanoseconds from forwarding the push to its end; nil if it was not sent.
    package let latency: Int64?
    /// The number of the connection to upstream, from 1; nil if none was used.
    package let connection: Int?

    /// Creates a description.
    package init(
      status: Int? = nil, reason: String? = nil, apnsID: String? = nil, problem: String? = nil, latency: Int64? = nil,
      connection: Int? = nil
    ) {
      self.status = status
      self.reason = reason
      self.apnsID = apnsID.map { $0.utf8.count > 64 ? String($0.prefix(64)) : $0 }
      self.problem = problem
      self.latency = latency
      self.connection = connection
    }
  }

  /// The push whose rule ended the connection of another one.
  package enum Causer: Sendable, Equatable {
    /// The push with this `seq`.
    case seq(Int)
    /// The push this many records before, which was received in the same read.
    case before(Int)

    /// Returns the `seq` for a record with this `seq`.
    func seq(of record: Int) -> Int {
      switch self {
      case .seq(let seq): seq
      case .before(let distance): record - distance
      }
    }
  }

  /// The rules that fired; the rule that decided the attempt or ended its connection, if any, comes first.
  package let injections: Injections
  // Separate, because most faults only change the response and have no further effects.
  private let details: Details?

  private final class Details: Sendable {
    let unusualReason: String?
    let reset: String?
    let goAway: GoAway?
    let closed: CloseMethod?
    let violation: ProtocolViolation?
    let by: Causer?
    let endedAt: MonotonicTime?
    let upstream: UpstreamAnswer?

    init(
      unusualReason: String?, reset: String?, goAway: GoAway?, closed: CloseMethod?, violation: ProtocolViolation?,
      by: Causer?, endedAt: MonotonicTime?, upstream: UpstreamAnswer?
    ) {
      self.unusualReason = unusualReason
      self.reset = reset
      self.goAway = goAway
      self.closed = closed
      self.violation = violation
      self.by = by
      self.endedAt = endedAt
      self.upstream = upstream
    }
  }

  /// The only rule that fired, if there are no further effects.
  var onlyInjection: Injection? { details == nil && injections.count == 1 ? injections[0] : nil }

  /// The reason in the response's body, if APNs does not define it.
  package var unusualReason: String? { details?.unusualReason }
  /// The HTTP/2 name of the error code the stream was reset with.
  package var reset: String? { details?.reset }
  /// The GOAWAY that was sent because of this push.
  package var goAway: GoAway? { details?.goAway }
  /// How the connection was closed because of this push.
  package var closed: CloseMethod? { details?.closed }
  /// The violation of HTTP/2; nil if there was none.
  package var violation: ProtocolViolation? { details?.violation }
  /// The push whose rule, the first of `injections`, ended the connection; nil if no other push did.
  package var by: Causer? { details?.by }
  /// The violation of a malformed request in words.
  package var violationText: String? {
    if case .malformed(let text) = details?.violation { text } else { nil }
  }
  /// The time when a push without a response ended, in monotonic nanoseconds of machine time; nil if there was a
  /// response.
  package var endedAt: MonotonicTime? { details?.endedAt }
  /// What upstream did with a push that was forwarded to it; nil for other pushes.
  package var upstream: UpstreamAnswer? { details?.upstream }

  /// Returns these details with those of the end of the attempt.
  package func merging(_ end: WireDetails?) -> WireDetails {
    guard let end else { return self }
    return WireDetails(
      injections: end.injections, unusualReason: unusualReason, reset: end.reset ?? reset, goAway: end.goAway ?? goAway,
      closed: closed, violation: end.violation ?? violation, by: end.by ?? by, endedAt: end.endedAt ?? endedAt,
      upstream: end.upstream ?? upstream)
  }

  /// Creates a description of what was sent.
  package init(
    injections: Injections = [], unusualReason: String? = nil, reset: String? = nil, goAway: GoAway? = nil,
    closed: CloseMethod? = nil, violation: ProtocolViolation? = nil, by: Causer? = nil, endedAt: MonotonicTime? = nil,
    upstream: UpstreamAnswer? = nil
  ) {
    self.injections = injections
    let isPlain =
      unusualReason == nil && reset == nil && goAway == nil && closed == nil && violation == nil && by == nil
      && endedAt == nil && upstream == nil
    details =
      isPlain
      ? nil
      : Details(
        unusualReason: unusualReason, reset: reset, goAway: goAway, closed: closed, violation: violation,
        by: by, endedAt: endedAt, upstream: upstream)
  }
}
