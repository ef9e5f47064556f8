package import Notation
package import APNSRules
internal import Synchronization

/// The facts shared by all records of one connection, created once per connection.
package final class ConnectionFacts: Sendable {
  /// The party that closed the connection.
  package enum CloseInitiator: UInt8, Sendable {
    /// The client closed it, without being asked to.
    case client = 1
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
  /// The raw value of `closeInitiator`; 0 for nil.
  private let closedBy = Atomic<UInt8>(0)

  /// Returns the topic of a push without one: the only topic that the provider certificate allows. Nil for a push
  /// that names its topic, and without such a certificate.
  package func defaultTopic(_ facts: borrowing PushFacts) -> String? {
    facts.topic == nil ? certificate?.defaultTopic : nil
  }

  /// The party that closed the connection; nil while it is open.
  package var closeInitiator: CloseInitiator? { CloseInitiator(rawValue: closedBy.load(ordering: .relaxed)) }

  /// Records which party closed the connection. Only the first call has an effect.
  package func recordClose(by initiator: CloseInitiator) {
    _ = closedBy.compareExchange(expected: 0, desired: initiator.rawValue, ordering: .relaxed)
  }

  /// Creates the facts of a connection after its handshake.
  package init(
    id: String, listener: Int, environment: PushEnvironment = .sandbox, client: String, sni: String?, tls: String?,
    http: HTTPVersion = .http2, certificate: ProviderCertificate? = nil,
    openedAt: MonotonicTime = MachineTime.nanoseconds
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
  }
}
