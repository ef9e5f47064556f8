public import Faults

/// What went out besides, or instead of, an ordinary answer, and which fault did it. Few records have one, so it stands
/// apart from them.
public final class Aftermath: Sendable {
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

  /// The rules that fired: the one that decided the outcome first, if one did.
  public let injections: [Injection]
  /// The reason in the answer's body where APNs knows no such reason.
  public let unusualReason: String?
  /// The HTTP/2 name of the error code the stream was reset with.
  public let reset: String?
  /// The GOAWAY that went out because of this push.
  public let goAway: GoAway?
  /// How the connection ended because of this push.
  public let closed: Closing?

  /// What was done.
  public init(
    injections: [Injection] = [], unusualReason: String? = nil, reset: String? = nil, goAway: GoAway? = nil,
    closed: Closing? = nil
  ) {
    self.injections = injections
    self.unusualReason = unusualReason
    self.reset = reset
    self.goAway = goAway
    self.closed = closed
  }
}
