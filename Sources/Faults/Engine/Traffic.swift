package import APNSMockNotation
package import APNSMockRules
package import APNSMockHTTPMessage

/// The input of a decision. Created only if a rule could apply.
package struct Traffic: Sendable {
  /// The known facts about a connection.
  package struct Connection: Sendable {
    /// The connection's number, unique since the server started.
    package var number: UInt64
    /// The client's address without its port.
    package var client: String
    /// The index of the APNs listener, from 0.
    package var listener: Int
    /// The environment of that listener.
    package var environment: PushEnvironment
    /// The server name in the client's ClientHello (SNI); nil without one and before it is received.
    package var serverName: String?
    /// The `UID` of the client certificate; nil without one.
    package var certificateUID: String?
    /// The number of streams the client has opened, including the current one.
    package var streamsOpened: Int
    /// The time since the connection was accepted, in monotonic nanoseconds; used only at `connection`.
    package var age: Int64
    /// The time since the client last sent anything, in monotonic nanoseconds; used only at `connection`.
    package var idle: Int64

    /// Creates a connection.
    package init(
      number: UInt64, client: String, listener: Int = 0, environment: PushEnvironment = .sandbox,
      serverName: String? = nil, certificateUID: String? = nil, streamsOpened: Int = 0, age: Int64 = 0, idle: Int64 = 0
    ) {
      self.number = number
      self.client = client
      self.listener = listener
      self.environment = environment
      self.serverName = serverName
      self.certificateUID = certificateUID
      self.streamsOpened = streamsOpened
      self.age = age
      self.idle = idle
    }
  }

  /// A push, a broadcast or a request of channel management, and APNs' verdict on it.
  package struct Push: Sendable {
    /// The complete request.
    package var request: HTTPRequest
    /// APNs' verdict, with the facts of the request.
    package var verdict: Verdict
    /// The key that identifies the push by its content.
    package var key: PushKey
    /// The topic of a push without `apns-topic`: the only topic of the provider certificate.
    package var defaultTopic: String?
    /// The attempt number of the push, from 1.
    package var attempt: Int
    /// When the push arrived by the server's clock, in milliseconds since 1970.
    package var receivedAt: ServerTime

    /// What the request asks for.
    package var kind: RequestKind { request.headers.bytes.withUnsafeBytes { verdict.facts.kind(in: $0) } }

    /// Creates a push.
    package init(
      request: HTTPRequest, verdict: Verdict, key: PushKey, defaultTopic: String? = nil, attempt: Int = 1,
      receivedAt: ServerTime
    ) {
      self.request = request
      self.verdict = verdict
      self.key = key
      self.defaultTopic = defaultTopic
      self.attempt = attempt
      self.receivedAt = receivedAt
    }
  }

  /// The response about to be sent.
  package struct Response: Sendable, Equatable {
    /// HTTP status.
    package var status: Int
    /// The reason in the body; nil without one.
    package var reason: String?

    /// Creates a response.
    package init(status: Int, reason: String? = nil) {
      self.status = status
      self.reason = reason
    }
  }

  /// The connection.
  package var connection: Connection
  /// The push; only at `request` and `response`.
  package var push: Push?
  /// The response; only at `response`.
  package var response: Response?

  /// Creates the input of a decision.
  package init(connection: Connection, push: Push? = nil, response: Response? = nil) {
    self.connection = connection
    self.push = push
    self.response = response
  }
}

extension Traffic {
  /// What is known of a push without an examination of its fields: enough for most rules.
  package struct PushSummary: Sendable {
    /// The key that identifies the push by its content.
    package let key: PushKey
    /// Whether APNs would accept the push.
    package let isAccepted: Bool
    /// What the request asks for.
    package let kind: RequestKind
    /// Whether APNs would accept the push, and its device token may be a magic one.
    package let hasMagicToken: Bool

    /// Creates a summary of a push.
    package init(key: PushKey, isAccepted: Bool, kind: RequestKind = .push, hasMagicToken: Bool = false) {
      self.key = key
      self.isAccepted = isAccepted
      self.kind = kind
      self.hasMagicToken = hasMagicToken
    }

    init(_ push: Push) {
      self.init(
        key: push.key, isAccepted: push.verdict.isAccepted, kind: push.kind,
        hasMagicToken: push.verdict.isAccepted && MagicToken.isMarked(push.request, push.verdict))
    }
  }
}
