package import APNSMockNotation
package import APNSMockRules

/// The facts shared by all records of one connection, created once per connection.
package final class ConnectionFacts: Sendable {
  /// The party that closed the connection.
  package enum CloseInitiator: String, Sendable {
    /// The client closed it, without being asked to.
    case client
    /// The server closed it, asked the client to close it, or a fault contributed.
    case server
  }

  /// The versions of HTTP; the raw values are their names in ALPN (RFC 7301).
  package enum HTTPVersion: String, Sendable {
    case http2 = "h2"
    /// Only a cleartext listener accepts it.
    case http1 = "http/1.1"
  }

  /// The name of the connection in records, logs and filters: `c17` for the server's seventeenth.
  package let id: String
  /// The index of the server's APNs listener that accepted the connection, from 0.
  package let listener: Int
  /// The environment of that listener.
  package let environment: PushEnvironment
  /// The provider's address, `HOST:PORT`.
  package let client: String
  /// The host name in the provider's TLS handshake (SNI); nil if there was none.
  package let sni: String?
  /// The negotiated protocol version, such as `TLSv1.3`; nil without TLS.
  package let tls: String?
  /// The version of HTTP.
  package let http: HTTPVersion
  /// The provider certificate used for the connection; nil in token mode.
  package let certificate: ProviderCertificate?
  /// The time when the connection was opened, in monotonic nanoseconds of machine time.
  package let openedAt: MonotonicTime
  /// A random number that other facts of the same connection have too, such as those that are read from a store.
  package let identity: UInt64

  /// Returns the topic of a push without one: the only topic that the provider certificate allows. Nil for a push
  /// that names its topic, and without such a certificate.
  package func defaultTopic(_ facts: borrowing PushFacts) -> String? {
    facts.topic == nil ? certificate?.defaultTopic : nil
  }

  /// Creates the facts of a connection after its handshake.
  ///
  /// - Parameter identity: The identity of a connection that is known already; nil for a new one.
  package init(
    id: String, listener: Int, environment: PushEnvironment = .sandbox, client: String, sni: String?, tls: String?,
    http: HTTPVersion = .http2, certificate: ProviderCertificate? = nil,
    openedAt: MonotonicTime = MachineTime.nanoseconds, identity: UInt64? = nil
  ) {
    self.id = id
    self.listener = listener
    self.environment = environment
    self.client = client
    self.sni = sni
    self.tls = tls
    self.http = http
    self.certificate = certificate
    self.openedAt = openedAt
    self.identity = identity ?? .random(in: .min ... .max)
  }
}

/// The end of a connection, as far as findings depend on it.
package struct ConnectionEnd: Sendable {
  /// How a connection was closed.
  package struct Closing: Sendable, Equatable {
    /// The party that closed the connection.
    package let initiator: ConnectionFacts.CloseInitiator
    /// When it was closed, in monotonic nanoseconds of machine time.
    package let at: MonotonicTime
    /// When the client last sent something, in monotonic nanoseconds of machine time.
    package var lastReceivedAt: MonotonicTime
    /// Whether the client ended its side with close_notify or FIN.
    package var isOrderly: Bool
    /// Whether a side reset the TCP connection, so that the other one may have lost what it had not read.
    package var isReset: Bool
    /// Whether the socket is closed, so that nothing more is received.
    package var isFinal: Bool

    /// Creates a description of a closing.
    package init(
      by initiator: ConnectionFacts.CloseInitiator, at: MonotonicTime, lastReceivedAt: MonotonicTime,
      isOrderly: Bool = false, isReset: Bool = false, isFinal: Bool = true
    ) {
      self.initiator = initiator
      self.at = at
      self.lastReceivedAt = lastReceivedAt
      self.isOrderly = isOrderly
      self.isReset = isReset
      self.isFinal = isFinal
    }

    /// Returns the closing after a later report: the first one says who closed the connection and when.
    func merging(_ later: Closing) -> Closing {
      var merged = self
      merged.lastReceivedAt = max(lastReceivedAt, later.lastReceivedAt)
      merged.isOrderly = isOrderly || later.isOrderly
      merged.isReset = isReset || later.isReset
      merged.isFinal = isFinal || later.isFinal
      return merged
    }
  }

  /// What is known about the end.
  package enum Event: Sendable {
    /// The connection was closed.
    case closed(Closing)
    /// The connection ended while its flow-control window held back this number of responses.
    case windowExhausted(responses: Int)
  }

  /// The `identity` of the connection.
  package let connection: UInt64
  package let event: Event

  /// Creates the description of an end.
  package init(of connection: ConnectionFacts, _ event: Event) {
    (self.connection, self.event) = (connection.identity, event)
  }
}
