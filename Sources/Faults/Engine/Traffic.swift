public import APNSRules
public import HTTPMessage

/// What one decision may look at. Made only when a rule could apply.
public struct Traffic: Sendable {
  /// A connection, as far as it is known.
  public struct Connection: Sendable {
    /// Its number, the only one of its kind since the start.
    public var number: UInt64
    /// The client's address, without its port.
    public var client: String
    /// Which APNs listener it came to, from 0.
    public var listener: Int
    /// The host name of the client's TLS greeting; nil without one, and before it came.
    public var serverName: String?
    /// `UID` of the client certificate; nil without one.
    public var certificateUID: String?
    /// How many streams the client opened until now, this one included.
    public var streamsOpened: Int
    /// How long ago it was accepted, in nanoseconds of the monotonic clock; read only at `connection`.
    public var age: Int64
    /// How long the client has sent nothing, in nanoseconds of the monotonic clock; read only at `connection`.
    public var idle: Int64

    /// A connection from parts.
    public init(
      number: UInt64, client: String, listener: Int = 0, serverName: String? = nil, certificateUID: String? = nil,
      streamsOpened: Int = 0, age: Int64 = 0, idle: Int64 = 0
    ) {
      self.number = number
      self.client = client
      self.listener = listener
      self.serverName = serverName
      self.certificateUID = certificateUID
      self.streamsOpened = streamsOpened
      self.age = age
      self.idle = idle
    }
  }

  /// A push and what APNs would say to it.
  public struct Push: Sendable {
    /// The request, complete.
    public var request: HTTPRequest
    /// APNs' verdict, with the facts of the request.
    public var verdict: Verdict
    /// What tells it from other pushes by its content.
    public var key: PushKey
    /// The topic of a push without `apns-topic`: the only one of the provider certificate.
    public var defaultTopic: String?
    /// How often this push came until now, from 1.
    public var attempt: Int
    /// The settable clock, in milliseconds since 1970.
    public var now: Int64

    /// A push from parts.
    public init(
      request: HTTPRequest, verdict: Verdict, key: PushKey, defaultTopic: String? = nil, attempt: Int = 1, now: Int64
    ) {
      self.request = request
      self.verdict = verdict
      self.key = key
      self.defaultTopic = defaultTopic
      self.attempt = attempt
      self.now = now
    }
  }

  /// The answer that is about to leave.
  public struct Answer: Sendable, Equatable {
    /// HTTP status.
    public var status: Int
    /// The reason in its body; nil without one.
    public var reason: String?

    /// An answer from parts.
    public init(status: Int, reason: String? = nil) {
      self.status = status
      self.reason = reason
    }
  }

  /// The connection it happens on.
  public var connection: Connection
  /// The push, at `request` and `response`.
  public var push: Push?
  /// The answer, at `response`.
  public var answer: Answer?

  /// Traffic from parts.
  public init(connection: Connection, push: Push? = nil, answer: Answer? = nil) {
    self.connection = connection
    self.push = push
    self.answer = answer
  }
}
