public import APNSRules
internal import Faults
public import HTTPMessage

/// One push as it came, what APNs would say to it, and what was said: what the inbox keeps of each attempt.
///
/// A compact value: what came off the wire stands in one piece of memory of exactly its size together with what is known
/// about it, which are positions in it, and JSON is made when somebody asks for it. Copies share that piece.
public struct Record: Sendable {
  /// How an attempt ended.
  public enum Outcome: String, CaseIterable, Sendable {
    /// APNs took it and said so.
    case accepted
    /// The rules of APNs refused it.
    case rejected
    /// A fault was injected.
    case faulted
    /// It is held and has no answer yet.
    case pending
    /// The client went away before it was answered, or broke the protocol so that no answer followed.
    case aborted
  }

  /// What went out to the client.
  public struct Served: Sendable, Equatable {
    /// The HTTP status; nil when no answer was sent.
    public var status: Int16?
    /// The reason in the answer's body; nil without one.
    public var reason: Reason?
    /// Nanoseconds of machine time from the end of the request to its answer; nil when no answer was sent.
    public var latencyNanoseconds: Int64?

    /// An answer, or none.
    public init(status: Int? = nil, reason: Reason? = nil, latencyNanoseconds: Int64? = nil) {
      self.status = status.map(Int16.init(clamping:))
      self.reason = reason
      self.latencyNanoseconds = latencyNanoseconds
    }
  }

  /// How the story of an attempt ends.
  public struct End: Sendable {
    /// How it ended.
    public var outcome: Outcome
    /// Whether APNs took the push.
    public var accepted: Bool
    /// What went out.
    public var served: Served
    /// What else there is to tell.
    public var aftermath: Aftermath?
    /// When, in milliseconds since 1970 of the server's clock; nil while it has not ended.
    public var finishedAt: Int64?

    /// An end, or that there is none yet.
    public init(outcome: Outcome, accepted: Bool, served: Served, aftermath: Aftermath? = nil, finishedAt: Int64?) {
      self.outcome = outcome
      self.accepted = accepted
      self.served = served
      self.aftermath = aftermath
      self.finishedAt = finishedAt
    }
  }

  /// The record's only key: 1, 2, 3 … in the order of arrival, never used twice. 0 before the inbox has it.
  public internal(set) var seq = 0
  // What it leads to is written while the record is made and never after that, so any number of threads may read it at once.
  nonisolated(unsafe) private(set) var content: RecordContent
  /// What there is to tell beyond an ordinary answer, where that is more than the injection in `content`, or less.
  private var further: Further?
  private var end: KeptEnd
  /// How often this push came until now, from 1.
  public let attempt: Int32
  /// The same for all attempts of its push; without regard to its `apns-id`, whatever a profile says.
  public let pushKey: PushKey

  /// Few records have one, so it stands apart from them.
  private final class Further: Sendable {
    let aftermath: Aftermath?

    init(_ aftermath: Aftermath?) { self.aftermath = aftermath }
  }

  /// What there is to tell beyond an ordinary answer; nil for most.
  public var aftermath: Aftermath? {
    if let further { return further.aftermath }
    return content.injection.map { Aftermath(injections: Injections($0)) }
  }

  /// Whether the answer has a reason that APNs has not.
  var hasUnusualReason: Bool { further?.aftermath?.unusualReason != nil }

  /// What went out.
  public var served: Served { end.served }
  /// How it ended.
  public var outcome: Outcome { end.outcome }
  /// Whether APNs took the push, whatever the client was told.
  public var accepted: Bool { end.accepted }
  /// When its story ended, in milliseconds since 1970 of the server's clock; nil while it is pending.
  public var finishedAt: Int64? { end.finishedAt }

  /// The HTTP/2 stream it came on.
  public var stream: Int32 { head { $0.stream } }
  /// The connection it came on.
  public var connection: ConnectionFacts { head { $0.connection } }
  /// When it was complete, in milliseconds since 1970 of the server's clock.
  public var receivedAt: Int64 { head { $0.receivedAt } }
  /// How many bytes of body came in all; what is beyond `HTTPRequest.bodyLimit` was not kept.
  public var bodySize: Int { head { Int($0.bodySize) } }
  /// When it was complete, in monotonic nanoseconds of machine time: for the time between attempts, which no setting of
  /// the server's clock changes.
  public var arrivedAt: Int64 { head { $0.arrivedAt } }

  /// What APNs would say. Nil if the request did not come whole, so that there was nothing to judge.
  public var verdict: Verdict? { isJudged ? head { $0.verdict.verdict } : nil }

  /// Whether there is a verdict.
  var isJudged: Bool { head { $0.marks }.contains(.judged) }

  /// What the request's headers say; positions are into the packed header fields.
  public var facts: PushFacts { head { $0.verdict.facts } }

  /// Says when the answer was ready to leave, for one that was given before the clock was read.
  ///
  /// - Parameter moment: monotonic nanoseconds of machine time.
  public mutating func wasAnswered(at moment: Int64) { end.wasAnswered(afterNanoseconds: moment - arrivedAt) }

  /// Moves what it keeps, so that the slab it stood in can go.
  mutating func move(to arena: RecordArena) { content = content.copied(to: arena) }

  /// Tells how the story of a record ended after all: of a pending one, or one whose answer did not leave.
  public mutating func end(_ end: consuming End) {
    self.end = KeptEnd(end)
    let told = content.injection
    switch end.aftermath {
    case nil: further = told == nil ? nil : Further(nil)
    // What came out is what was decided.
    case let aftermath?: further = told != nil && told == aftermath.onlyInjection ? nil : Further(aftermath)
    }
  }
}

extension Record {
  /// Records a request.
  ///
  /// - Parameters:
  ///   - request: What came. The signature of the provider token in it is not kept.
  ///   - verdict: What APNs would say to it.
  ///   - isJudged: false for a request that did not come whole: of its verdict only the facts are kept.
  ///   - generatedID: The `apns-id` the server made, in ASCII; empty when the client gave one.
  ///   - attempt: How often this push came until now, from 1.
  ///   - receivedAt: When it was complete, in milliseconds since 1970 of the server's clock.
  ///   - arrivedAt: The same in monotonic nanoseconds of machine time; nil to take it from `receivedAt`.
  ///   - end: How it ended, or that it is pending.
  ///   - pushKey: The key of its push; nil to make it.
  ///   - arena: Where its bytes are put; memory of its own unless said.
  public init(
    request: borrowing HTTPRequest, verdict: borrowing Verdict, isJudged: Bool = true,
    generatedID: borrowing ArraySlice<UInt8>, connection: borrowing ConnectionFacts, attempt: Int32 = 1,
    receivedAt: Int64, arrivedAt: Int64? = nil, end: consuming End, pushKey: PushKey? = nil,
    in arena: borrowing RecordArena = .ofOne()
  ) {
    let pushKey = pushKey ?? PushKey(request, verdict.facts, defaultTopic: connection.defaultTopic(verdict.facts))
    let injection = end.aftermath?.onlyInjection
    // By the initializer that the compiler makes, which unlike one written out does not copy the whole when it is done.
    self.init(
      content: RecordContent(
        request, verdict, isJudged: isJudged, generatedID, connection, receivedAt: receivedAt,
        arrivedAt: arrivedAt ?? receivedAt &* 1_000_000, injection: injection, in: arena),
      further: injection == nil ? end.aftermath.map { Further($0) } : nil, end: KeptEnd(end), attempt: attempt,
      pushKey: pushKey)
  }

  /// A record as an export tells it.
  ///
  /// - Parameters:
  ///   - seq: the number it had.
  ///   - arena: where its bytes are put.
  ///   - findings: the names of what it says the provider did wrong, which nobody judges again.
  init(
    seq: Int, request: HTTPRequest, verdict: Verdict?, facts: PushFacts, findings: [String],
    generatedID: ArraySlice<UInt8>, connection: ConnectionFacts, attempt: Int32, receivedAt: Int64, end: End,
    in arena: RecordArena
  ) {
    var names = HeaderList()
    for name in findings { names.append(name: name, value: "") }
    let injection = end.aftermath?.onlyInjection
    self.init(
      seq: seq,
      content: RecordContent(
        request, verdict ?? Verdict(facts: facts), isJudged: verdict != nil, generatedID, connection,
        receivedAt: receivedAt, arrivedAt: receivedAt &* 1_000_000, injection: injection, toldFindings: names, in: arena
      ),
      further: injection == nil ? end.aftermath.map { Further($0) } : nil, end: KeptEnd(end), attempt: attempt,
      pushKey: PushKey(request, facts, defaultTopic: connection.defaultTopic(facts)))
  }
}
