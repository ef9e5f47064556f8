public import APNSRules
public import HTTPMessage

/// The input of a decision. Created only if a rule could apply.
public struct Traffic: Sendable {
  /// The known facts about a connection.
  public struct Connection: Sendable {
    /// The connection's number, unique since the server started.
    public var number: UInt64
    /// The client's address without its port.
    public var client: String
    /// The index of the APNs listener, from 0.
    public var listener: Int
    /// The server name in the client's ClientHello (SNI); nil without one and before it is received.
    public var serverName: String?
    /// The `UID` of the client certificate; nil without one.
    public var certificateUID: String?
    /// The number of streams the client has opened, including the current one.
    public var streamsOpened: Int
    /// The time since the connection was accepted, in monotonic nanoseconds; used only at `connection`.
    public var age: Int64
    /// The time since the client last sent anything, in monotonic nanoseconds; used only at `connection`.
    public var idle: Int64

    /// Creates a connection.
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

  /// A push and APNs' verdict on it.
  public struct Push: Sendable {
    /// The complete request.
    public var request: HTTPRequest
    /// APNs' verdict, with the facts of the request.
    public var verdict: Verdict
    /// The key that identifies the push by its content.
    public var key: PushKey
    /// The topic of a push without `apns-topic`: the only topic of the provider certificate.
    public var defaultTopic: String?
    /// The attempt number of the push, from 1.
    public var attempt: Int
    /// The time of the settable clock, in milliseconds since 1970.
    public var now: Int64

    /// Creates a push.
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

  /// The response about to be sent.
  public struct Answer: Sendable, Equatable {
    /// HTTP status.
    public var status: Int
    /// The reason in the body; nil without one.
    public var reason: String?

    /// Creates a response.
    public init(status: Int, reason: String? = nil) {
      self.status = status
      self.reason = reason
    }
  }

  /// The connection.
  public var connection: Connection
  /// The push; only at `request` and `response`.
  public var push: Push?
  /// The response; only at `response`.
  public var answer: Answer?

  /// Creates the input of a decision.
  public init(connection: Connection, push: Push? = nil, answer: Answer? = nil) {
    self.connection = connection
    self.push = push
    self.answer = answer
  }
}
