package import APNSMockNotation
package import APNSMockRules
internal import APNSMockFaultModel
package import APNSMockHTTPMessage

/// An attempt to send a push: the request, the verdict of APNs' rules, and the response.
///
/// A compact value: the bytes from the wire and the facts about them (positions in those bytes) share one block of
/// memory of exactly the needed size; JSON is made on demand. Copies share the block.
package struct Record: Sendable {
  /// The response that was sent to the client.
  package struct SentResponse: Sendable, Equatable {
    /// The HTTP status; nil if no response was sent.
    package var status: Int16?
    /// The reason in the response's body; nil without one.
    package var reason: Reason?
    /// Nanoseconds of machine time from the end of the request to the response; nil if no response was sent.
    package var latencyNanoseconds: Int64?

    /// Creates a description of a response, or of no response.
    package init(status: Int? = nil, reason: Reason? = nil, latencyNanoseconds: Int64? = nil) {
      self.status = status.map { Int16(max(0, min($0, Self.maxStatus))) }
      self.reason = reason
      self.latencyNanoseconds = latencyNanoseconds
    }

    /// The largest status that a record can have.
    static let maxStatus = 1023

    /// Whether the response is 400 `IdleTimeout`, which is equivalent to a GOAWAY.
    var isIdleTimeout: Bool { status == 400 && reason == .idleTimeout }
  }

  /// The result of an attempt.
  package struct Result: Sendable {
    /// What APNs did with the push, and how the attempt ended for the client.
    package var end: AttemptEnd
    /// The response that was sent.
    package var sentResponse: SentResponse
    /// Details beyond an ordinary response.
    package var wireDetails: WireDetails?
    /// The time of the end, in milliseconds since 1970 by the server's clock; nil while pending.
    package var finishedAt: ServerTime?
    /// The last state of the delivery to the device; nil if it is unknown.
    package var delivery: DeliveryState?

    /// Creates a result, or a pending one.
    package init(
      _ decision: Decision, _ ending: Ending, sentResponse: SentResponse = SentResponse(),
      wireDetails: WireDetails? = nil, finishedAt: ServerTime?, delivery: DeliveryState? = nil
    ) {
      end = AttemptEnd(decision, ending)
      self.sentResponse = sentResponse
      self.wireDetails = wireDetails
      self.finishedAt = finishedAt
      self.delivery = delivery
    }

    /// Whether APNs accepted the push.
    package var accepted: Bool { end.decision == .accepted }
    /// How the attempt ended.
    package var outcome: Outcome {
      Outcome(end.decision, end.ending, isIdleTimeout: sentResponse.isIdleTimeout)
    }
  }

  /// The record's only key: 1, 2, 3 … in the order of arrival, never reused. 0 until the inbox assigns it.
  package internal(set) var seq = 0
  // The memory it points to is written only while the record is made, so any number of threads may read it at once.
  nonisolated(unsafe) private(set) var content: RecordContent
  /// The wire outcome, if it is more than the injection in `content`.
  private var storedDetails: StoredDetails?
  private var result: PackedResult
  /// The number of this attempt among the attempts of its push, from 1.
  package let attempt: Int32
  /// The key shared by all attempts of the push. It does not depend on `apns-id`, whatever the active profile
  /// defines.
  package let pushKey: PushKey

  /// A reference, because few records have one.
  private final class StoredDetails: Sendable {
    let wireDetails: WireDetails?
    let origin: RecordOrigin?

    init(_ wireDetails: WireDetails?, origin: RecordOrigin? = nil) {
      (self.wireDetails, self.origin) = (wireDetails, origin)
    }
  }

  /// The server that received the push, if the record is one of a view of several servers; otherwise nil.
  package var origin: RecordOrigin? { storedDetails?.origin }

  /// Gives the record a `seq` among the records of several servers.
  ///
  /// - Parameters:
  ///   - seq: The new `seq`, which is internal.
  ///   - server: The name of the server that received the push.
  package mutating func renumber(_ seq: Int, of server: String) {
    storedDetails = StoredDetails(wireDetails, origin: RecordOrigin(server: server, seq: self.seq))
    self.seq = seq
  }

  /// Details beyond an ordinary response; nil for most records.
  package var wireDetails: WireDetails? {
    if let storedDetails { return storedDetails.wireDetails }
    return content.injection.map { WireDetails(injections: Injections($0)) }
  }

  /// Whether the response has a reason that APNs does not define.
  var hasUnusualReason: Bool { storedDetails?.wireDetails?.unusualReason != nil }

  /// The response that was sent.
  package var sentResponse: SentResponse { result.sentResponse }
  /// What APNs did with the push, and how the attempt ended for the client.
  package var end: AttemptEnd { result.end }
  /// How the attempt ended.
  package var outcome: Outcome { result.outcome }
  /// Whether APNs accepted the push, regardless of what the client learned of it.
  package var accepted: Bool { result.decision == .accepted }
  /// Whether a fault rule affected the attempt.
  package var isFaulted: Bool { wireDetails.map { !$0.injections.isEmpty } ?? false }
  /// The time of the end, in milliseconds since 1970 by the server's clock; nil while pending.
  package var finishedAt: ServerTime? { result.finishedAt }

  /// The last state of the delivery to the device. Nil for a device token that is not registered, for a push that was
  /// not accepted, and for requests that are not pushes.
  package var delivery: DeliveryState? {
    get { result.delivery }
    set { result.delivery = newValue }
  }

  /// Whether the record may still change: it is pending, or its delivery is not final.
  ///
  /// - Parameter includingDelivery: Whether changes of the delivery matter.
  func mayChange(includingDelivery: Bool) -> Bool {
    outcome == .pending || includingDelivery && accepted && delivery?.isFinal != true
  }

  /// The HTTP/2 stream of the request.
  package var stream: Int32 { head { $0.stream } }
  /// The connection of the request.
  package var connection: ConnectionFacts { head { $0.connection } }
  /// What the request asks for.
  package var kind: RequestKind {
    guard head({ $0.verdict.facts.deviceToken == nil }) else { return .push }
    return withHeaders { facts.kind(in: $0) }
  }
  /// The time when the request was complete, in milliseconds since 1970 by the server's clock.
  package var receivedAt: ServerTime { head { $0.receivedAt } }
  /// The size of the whole body in bytes; bytes beyond `HTTPRequest.bodyLimit` were not kept.
  package var bodySize: Int { head { Int($0.bodySize) } }
  /// The time when the request was complete, in monotonic nanoseconds of machine time: for the time between
  /// attempts, which changes of the server's clock do not affect.
  package var arrivedAt: MonotonicTime { head { $0.arrivedAt } }

  /// The verdict of APNs' rules; nil if the request was incomplete, so that there was nothing to evaluate.
  package var verdict: Verdict? { hasVerdict ? head { $0.verdict.verdict } : nil }

  /// When an accepted request took effect, in monotonic nanoseconds of machine time: when its response was sent; if there was
  /// none, when it ended, to the millisecond.
  package var acceptedAt: MonotonicTime {
    if let latency = sentResponse.latencyNanoseconds { return arrivedAt &+ latency }
    // The server's clock may have been moved in the meantime.
    let milliseconds = finishedAt.map { $0.subtractingReportingOverflow(receivedAt).partialValue } ?? 0
    return arrivedAt &+ min(max(0, milliseconds), 3_600_000) * 1_000_000
  }

  /// Whether the request was received completely.
  package var isRequestComplete: Bool { !head { $0.marks }.contains(.isIncomplete) }

  /// The `seq` of the push whose rule ended the connection; nil if no other push did.
  package var faultedBy: Int? { wireDetails?.by?.seq(of: serverSeq) }

  /// Whether there is a verdict.
  var hasVerdict: Bool { head { $0.marks }.contains(.hasVerdict) }

  /// Facts from the request's headers; positions are into the packed header fields.
  package var facts: PushFacts { head { $0.verdict.facts } }

  /// Sets the latency of a response that was prepared before the clock was read.
  ///
  /// - Parameter time: When the response was ready to be sent, in monotonic nanoseconds of machine time.
  package mutating func setLatency(respondedAt time: Int64) {
    result.setLatency(nanoseconds: time &- arrivedAt)
  }

  /// Moves the content to another arena, so that its current slab can be freed.
  mutating func move(to arena: RecordArena) { content = content.copied(to: arena) }

  /// Replaces the result, for a record that was pending or whose response was not sent. A result without a state of
  /// delivery keeps the current one.
  package mutating func finish(with result: consuming Result) {
    result.delivery = result.delivery ?? delivery
    self.result = PackedResult(result)
    let storedInjection = content.injection
    switch result.wireDetails {
    case nil: storedDetails = storedInjection == nil ? nil : StoredDetails(nil)
    // Store nothing if the outcome equals the injection in `content`.
    case let wireDetails?:
      storedDetails =
        storedInjection != nil && storedInjection == wireDetails.onlyInjection ? nil : StoredDetails(wireDetails)
    }
  }
}

extension Record {
  /// Creates a record of a request.
  ///
  /// - Parameters:
  ///   - request: The request. The signature of its provider token is not kept.
  ///   - verdict: The verdict of APNs' rules.
  ///   - hasVerdict: false for an incomplete request: only the facts of its verdict are kept.
  ///   - isRequestComplete: Whether the request was received completely.
  ///   - generatedID: The `apns-id` that the server generated, in ASCII; empty if the client sent one.
  ///   - attempt: The number of this attempt among the attempts of its push, from 1.
  ///   - receivedAt: The time when the request was complete, in milliseconds since 1970 by the server's clock.
  ///   - arrivedAt: The same time in monotonic nanoseconds of machine time; nil to derive it from `receivedAt`.
  ///   - result: The result, or pending.
  ///   - pushKey: The key of the push; nil to compute it.
  ///   - arena: The arena for the record's bytes; by default one for this record alone.
  package init(
    request: borrowing HTTPRequest, verdict: borrowing Verdict, hasVerdict: Bool = true, isRequestComplete: Bool = true,
    generatedID: borrowing ArraySlice<UInt8>, connection: borrowing ConnectionFacts, attempt: Int32 = 1,
    receivedAt: ServerTime, arrivedAt: MonotonicTime? = nil, result: consuming Result, pushKey: PushKey? = nil,
    in arena: borrowing RecordArena = .ofOne()
  ) {
    let pushKey = pushKey ?? PushKey(request, verdict.facts, defaultTopic: connection.defaultTopic(verdict.facts))
    let injection = result.wireDetails?.onlyInjection
    // Use the memberwise initializer: a handwritten one copies the whole value at its end.
    self.init(
      content: RecordContent(
        request, verdict, hasVerdict: hasVerdict, isComplete: isRequestComplete, generatedID, connection,
        receivedAt: receivedAt, arrivedAt: arrivedAt ?? receivedAt &* 1_000_000, injection: injection, in: arena),
      storedDetails: injection == nil ? result.wireDetails.map { StoredDetails($0) } : nil,
      result: PackedResult(result),
      attempt: attempt,
      pushKey: pushKey)
  }

  /// Creates a record from an export or a database.
  ///
  /// - Parameters:
  ///   - seq: The record's `seq`.
  ///   - findings: The names of the findings of an imported record, which are not evaluated again; nil for others.
  ///   - arrivedAt: The time when the request was complete, in monotonic nanoseconds of machine time.
  ///   - pushKey: The key of the push; nil to compute it.
  ///   - arena: The arena for the record's bytes.
  init(
    seq: Int, request: HTTPRequest, verdict: Verdict?, facts: PushFacts, isRequestComplete: Bool, findings: [String]?,
    generatedID: ArraySlice<UInt8>, connection: ConnectionFacts, attempt: Int32, receivedAt: ServerTime,
    arrivedAt: MonotonicTime, result: Result, pushKey: PushKey? = nil, in arena: RecordArena
  ) {
    let names = findings.map { findings in
      var names = HeaderList()
      for name in findings { names.append(name: name, value: "") }
      return names
    }
    let injection = result.wireDetails?.onlyInjection
    self.init(
      seq: seq,
      content: RecordContent(
        request, verdict ?? Verdict(facts: facts), hasVerdict: verdict != nil, isComplete: isRequestComplete,
        generatedID,
        connection, receivedAt: receivedAt, arrivedAt: arrivedAt, injection: injection, importedFindings: names,
        in: arena),
      storedDetails: injection == nil ? result.wireDetails.map { StoredDetails($0) } : nil,
      result: PackedResult(result),
      attempt: attempt,
      pushKey: pushKey ?? PushKey(request, facts, defaultTopic: connection.defaultTopic(facts)))
  }
}

/// The result of an attempt, packed into twenty bytes; with optionals each record would be eight bytes larger. The
/// wire details are stored elsewhere.
struct PackedResult: Sendable {
  /// Milliseconds since 1970; `Int64.min` for nil.
  private let finished: Int64
  /// Nanoseconds; `Int64.min` for nil.
  private var latency: Int64
  /// Bits 0 to 9: the HTTP status, 0 for nil. Bits 10 to 12: the number of the decision.
  private let statusAndDecision: UInt16
  private let reason: Reason?
  /// Bits 0 to 3: the number of the ending. Bits 4 to 7: the raw value of the delivery's state; 0 for nil.
  private var states: UInt8

  init(_ result: borrowing Record.Result) {
    finished = result.finishedAt ?? .min
    latency = result.sentResponse.latencyNanoseconds ?? .min
    statusAndDecision = UInt16(result.sentResponse.status ?? 0) & 0x3FF | UInt16(result.end.decision.number) << 10
    reason = result.sentResponse.reason
    states = (result.delivery?.rawValue ?? 0) << 4 | result.end.ending.number
  }

  var finishedAt: ServerTime? { finished == .min ? nil : finished }

  var decision: Decision { Decision(number: UInt8(statusAndDecision >> 10)) }

  var ending: Ending { Ending(number: states & 0xF) }

  var end: AttemptEnd { AttemptEnd(decision, ending) }

  private var status: UInt16 { statusAndDecision & 0x3FF }

  var outcome: Record.Outcome {
    Record.Outcome(decision, ending, isIdleTimeout: status == 400 && reason == .idleTimeout)
  }

  var delivery: DeliveryState? {
    get { DeliveryState(rawValue: states >> 4) }
    set { states = states & 0xF | (newValue?.rawValue ?? 0) << 4 }
  }

  var sentResponse: Record.SentResponse {
    Record.SentResponse(
      status: status == 0 ? nil : Int(status), reason: reason, latencyNanoseconds: latency == .min ? nil : latency)
  }

  /// Sets the latency if there is a response and no latency yet.
  mutating func setLatency(nanoseconds: Int64) {
    if status != 0, latency == .min { latency = nanoseconds }
  }
}

extension Decision {
  /// The index in `allCases`.
  var number: UInt8 {
    switch self {
    case .accepted: 0
    case .rejected: 1
    case .notProcessed: 2
    case .pending: 3
    case .unknown: 4
    }
  }

  fileprivate init(number: UInt8) {
    switch number {
    case 0: self = .accepted
    case 1: self = .rejected
    case 2: self = .notProcessed
    case 3: self = .pending
    default: self = .unknown
    }
  }
}

extension Ending {
  /// The index in `allCases`.
  var number: UInt8 {
    switch self {
    case .response: 0
    case .refused: 1
    case .malformed: 2
    case .reset: 3
    case .cancelled: 4
    case .incomplete: 5
    case .disconnected: 6
    case .pending: 7
    case .unknown: 8
    }
  }

  fileprivate init(number: UInt8) {
    switch number {
    case 0: self = .response
    case 1: self = .refused
    case 2: self = .malformed
    case 3: self = .reset
    case 4: self = .cancelled
    case 5: self = .incomplete
    case 6: self = .disconnected
    case 7: self = .pending
    default: self = .unknown
    }
  }
}

extension Record.Outcome {
  /// The index in `allCases`.
  var number: UInt8 {
    switch self {
    case .accepted: 0
    case .rejected: 1
    case .responseLost: 2
    case .unanswered: 3
    case .unprocessed: 4
    case .incomplete: 5
    case .malformed: 6
    case .pending: 7
    case .unknown: 8
    }
  }
}
