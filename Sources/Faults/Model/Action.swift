package import APNSRules

/// What is done to the provider: the word `do`. A value; the deed is the server's.
public indirect enum Action: Sendable, Equatable {
  /// Another answer than APNs would give.
  case respond(Answer)
  /// The answer later.
  case delay(Delay)
  /// No answer for a time, then an end; nil waits as long as the limits allow.
  case hang(for: Duration?, endWith: Ending)
  /// RST_STREAM with an error code of RFC 9113 section 7.
  case resetStream(code: UInt32)
  /// TCP RST; whether the push counts as accepted before.
  case resetConnection(afterAccepting: Bool)
  /// GOAWAY.
  case goAway(GoAwayOrder)
  /// FIN without GOAWAY.
  case close
  /// For a time every push on the connection gets this answer, then GOAWAY and close.
  case drain(for: Duration, respond: Answer)
  /// The push is accepted and recorded, its answer never leaves.
  case loseAnswer(endWith: Ending)
  /// The body of the answer in so many pieces over a time.
  case dribble(chunks: Int, over: Duration)
  /// The body in two DATA frames.
  case splitBody
  /// The body cut in its middle.
  case truncateBody
  /// The body as bytes that are no JSON.
  case garbleBody
  /// The answer without one of its header fields.
  case dropHeader(name: String)
  /// An error without a body.
  case emptyErrorBody
  /// `apns-id` in upper-case letters, in lower-case ones, or as another id; what odd answers look like.
  case changeID(IDChange)
  /// No WINDOW_UPDATE for a time; nil for ever.
  case starveWindow(for: Duration?)
  /// Other SETTINGS.
  case settings(SettingsOrder)
  /// No PING acknowledgement for a time; nil for ever.
  case ignorePings(for: Duration?)
  /// The connection is reset as soon as it was accepted.
  case refuse
  /// The connection is accepted and nothing is read or said for a time; nil for ever.
  case silence(for: Duration?)
  /// The TLS handshake stops for a time, then an end.
  case stall(for: Duration?, endWith: Ending)
  /// A TLS alert instead of a handshake, by its number in RFC 8446 section 6.
  case alert(code: UInt8)
  /// A certificate that a careful client refuses.
  case certificate(BadCertificate)
  /// What APNs would say; ends the walk.
  case pass
  /// One of several, by one draw over all weights.
  case choose([Choice])
  /// One after the other, each time the rule fires.
  case sequence(key: Trigger.Key, steps: [Action], onEnd: SequenceEnd)

  /// An answer.
  public struct Answer: Sendable, Equatable {
    /// HTTP status.
    public var status: Int
    /// The reason in the body; nil for no body.
    public var reason: String? { didSet { knownReason = reason.flatMap(Reason.init(text:)) } }
    /// The same if APNs knows it; looked up once, and not for each push.
    package private(set) var knownReason: Reason?
    /// The time of a 410.
    public var timestamp: Timestamp
    /// Further header fields.
    public var headers: [Field]
    /// The whole body instead of a reason, in UTF-8: all pushes that are answered so share it.
    public var body: [UInt8]?
    /// With 429 `TooManyProviderTokenUpdates`: whether the connection keeps answering so until the update interval has
    /// passed, as APNs does.
    public var latches: Bool

    /// An answer; by default with the present as the time of a 410.
    public init(
      status: Int, reason: String?, timestamp: Timestamp = .relative(.zero), headers: [Field] = [], body: String? = nil,
      latches: Bool = false
    ) {
      self.status = status
      self.reason = reason
      knownReason = reason.flatMap(Reason.init(text:))
      self.timestamp = timestamp
      self.headers = headers
      self.body = body.map { Array($0.utf8) }
      self.latches = latches
    }
  }

  /// A header field.
  public struct Field: Sendable, Equatable {
    /// In small letters.
    public var name: String
    /// As it goes out.
    public var value: String

    /// A field.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// A time, by the settable clock.
  public enum Timestamp: Sendable, Equatable {
    /// So long after the push came; negative for before.
    case relative(Duration)
    /// Milliseconds since 1970.
    case absolute(Int64)
  }

  /// How long a delay is.
  public enum Delay: Sendable, Equatable {
    /// Always the same.
    case fixed(Duration)
    /// Anything between two, all alike likely.
    case uniform(min: Duration, max: Duration)
    /// Many short ones, few long ones, none above `max`.
    case lognormal(median: Duration, sigma: Double, max: Duration)
  }

  /// How something that was held ends.
  public enum Ending: String, CaseIterable, Sendable {
    /// Never, as far as the client can see.
    case nothing
    /// RST_STREAM.
    case resetStream = "reset_stream"
    /// FIN on the connection.
    case close
    /// What APNs would have said, late.
    case answer
  }

  /// Which stream a GOAWAY names as the last one.
  public enum LastStream: String, CaseIterable, Sendable {
    /// The one before the push that triggers the fault, which is then neither accepted nor answered.
    case beforeThis = "before_this"
    /// The push that triggers the fault, which is answered.
    case this
    /// 2³¹−1: every stream.
    case all
  }

  /// A GOAWAY to be sent.
  public struct GoAwayOrder: Sendable, Equatable {
    /// Error code of RFC 9113 section 7.
    public var code: UInt32
    /// Which stream it names.
    public var lastStream: LastStream
    /// Debug data as it stands in the frame, JSON or text.
    public var debugData: String
    /// First with 2³¹−1, then with the real last stream.
    public var twice: Bool
    /// When the connection is closed; nil for never.
    public var closeAfter: Duration?

    /// By default what a planned end looks like, but for the streams it takes along.
    public init(
      code: UInt32 = 0, lastStream: LastStream = .beforeThis, debugData: String = "", twice: Bool = false,
      closeAfter: Duration? = .seconds(1)
    ) {
      self.code = code
      self.lastStream = lastStream
      self.debugData = debugData
      self.twice = twice
      self.closeAfter = closeAfter
    }
  }

  /// SETTINGS to be sent. What is nil is left out.
  public struct SettingsOrder: Sendable, Equatable {
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    public var maxConcurrentStreams: UInt32?
    /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
    public var initialWindowSize: UInt32?
    /// SETTINGS_MAX_HEADER_LIST_SIZE, in bytes.
    public var maxHeaderListSize: UInt32?
    /// How long after the moment.
    public var after: Duration
    /// How long the first SETTINGS frame of the connection is held back; only at `settings`. Nothing is sent before it.
    public var delay: Duration
    /// Whether the client's own SETTINGS are acknowledged from then on.
    public var acknowledgesClient: Bool

    /// An order; by default it changes nothing.
    public init(
      maxConcurrentStreams: UInt32? = nil, initialWindowSize: UInt32? = nil, maxHeaderListSize: UInt32? = nil,
      after: Duration = .zero, delay: Duration = .zero, acknowledgesClient: Bool = true
    ) {
      self.maxConcurrentStreams = maxConcurrentStreams
      self.initialWindowSize = initialWindowSize
      self.maxHeaderListSize = maxHeaderListSize
      self.after = after
      self.delay = delay
      self.acknowledgesClient = acknowledgesClient
    }
  }

  /// What is wrong with the certificate the server shows.
  public enum BadCertificate: String, CaseIterable, Sendable {
    /// Its validity has ended.
    case expired
    /// It bears another host name.
    case wrongName = "wrong_name"
    /// Nobody vouches for its authority.
    case untrusted
  }

  /// What becomes of `apns-id` in an answer.
  public enum IDChange: String, CaseIterable, Sendable {
    /// All letters upper-case.
    case upperCase = "upper_case"
    /// All letters lower-case.
    case lowerCase = "lower_case"
  }

  /// One of several actions.
  public struct Choice: Sendable, Equatable {
    /// How likely, in relation to the other weights; above 0.
    public var weight: Double
    /// What is done when it is chosen.
    public var action: Action

    /// One of several.
    public init(weight: Double, action: Action) {
      self.weight = weight
      self.action = action
    }
  }

  /// What follows the last step of a sequence.
  public enum SequenceEnd: String, CaseIterable, Sendable {
    /// The last step again.
    case stay
    /// The first step again.
    case cycle
    /// Nothing: as if the rule were not there.
    case pass
  }
}
