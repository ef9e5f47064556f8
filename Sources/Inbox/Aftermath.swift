public import Faults

/// What went out besides, or instead of, an ordinary answer, and which fault did it. Few records have one.
public struct Aftermath: Sendable {
  /// How the connection ended with this push.
  public enum Closing: String, Sendable {
    /// FIN.
    case fin
    /// TCP RST.
    case reset
  }

  /// A GOAWAY frame.
  public struct GoAway: Sendable, Equatable {
    /// The name of its error code.
    public let code: String
    /// The last stream it names.
    public let lastStream: Int32
    /// Its debug data as text.
    public let debugData: String

    /// A frame as it went out.
    public init(code: String, lastStream: Int32, debugData: String) {
      self.code = code
      self.lastStream = lastStream
      self.debugData = debugData
    }
  }

  /// What the client did although HTTP/2 had told it not to.
  public enum Breach: Sendable, Equatable {
    /// It opened the stream well after a GOAWAY that named a lower one as the last: so many nanoseconds of machine time.
    case afterGoAway(lastStream: Int32, nanoseconds: Int64)
    /// It opened one stream more than this limit, which it had acknowledged.
    case excessStreams(limit: UInt32)
  }

  /// The rules that fired: the one that decided the outcome first, if one did.
  public let injections: Injections
  // Faults mostly give another answer, and then there is nothing more to tell.
  private let rest: Rest?

  private final class Rest: Sendable {
    let unusualReason: String?
    let reset: String?
    let goAway: GoAway?
    let closed: Closing?
    let breach: Breach?
    let endedAt: Int64?

    init(
      unusualReason: String?, reset: String?, goAway: GoAway?, closed: Closing?, breach: Breach?, endedAt: Int64?
    ) {
      self.unusualReason = unusualReason
      self.reset = reset
      self.goAway = goAway
      self.closed = closed
      self.breach = breach
      self.endedAt = endedAt
    }
  }

  /// The one rule that fired, if there is nothing else to tell.
  var onlyInjection: Injection? { rest == nil && injections.count == 1 ? injections[0] : nil }

  /// The reason in the answer's body where APNs knows no such reason.
  public var unusualReason: String? { rest?.unusualReason }
  /// The HTTP/2 name of the error code the stream was reset with.
  public var reset: String? { rest?.reset }
  /// The GOAWAY that went out because of this push.
  public var goAway: GoAway? { rest?.goAway }
  /// How the connection ended because of this push.
  public var closed: Closing? { rest?.closed }
  /// What the client should not have done; nil for nothing.
  public var breach: Breach? { rest?.breach }
  /// When a push without an answer ended, in monotonic nanoseconds of machine time; nil where there is an answer.
  public var endedAt: Int64? { rest?.endedAt }

  /// What was done.
  public init(
    injections: Injections = [], unusualReason: String? = nil, reset: String? = nil, goAway: GoAway? = nil,
    closed: Closing? = nil, breach: Breach? = nil, endedAt: Int64? = nil
  ) {
    self.injections = injections
    let isPlain =
      unusualReason == nil && reset == nil && goAway == nil && closed == nil && breach == nil && endedAt == nil
    rest =
      isPlain
      ? nil
      : Rest(
        unusualReason: unusualReason, reset: reset, goAway: goAway, closed: closed, breach: breach, endedAt: endedAt)
  }
}
