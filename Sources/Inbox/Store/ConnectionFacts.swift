package import APNSRules
internal import Synchronization

/// The facts shared by all records of one connection, created once per connection.
package final class ConnectionFacts: Sendable {
  /// The party that closed the connection.
  package enum Ending: UInt8, Sendable {
    /// The connection is open.
    case none
    /// The client closed it, without being asked to.
    case byClient
    /// The server closed it, asked the client to close it, or a fault contributed.
    case byServer
  }

  /// The name of the connection in records, logs and filters: `c17` for the server's seventeenth.
  package let id: String
  /// The index of the server's APNs listener that accepted the connection, from 0.
  package let listener: Int
  /// The provider's address, `HOST:PORT`.
  package let client: String
  /// The host name in the provider's TLS handshake (SNI); nil if there was none.
  package let sni: String?
  /// The negotiated protocol version, such as `TLSv1.3`.
  package let tls: String
  /// The provider certificate used for the connection; nil in token mode.
  package let certificate: ProviderCertificate?
  /// The time when the connection was opened, in monotonic nanoseconds of machine time.
  package let openedAt: Int64
  private let end = Atomic<UInt8>(Ending.none.rawValue)

  /// Returns the topic of a push without one: the only topic that the provider certificate allows. Nil for a push
  /// that names its topic, and without such a certificate.
  package func defaultTopic(_ facts: borrowing PushFacts) -> String? {
    facts.topic == nil ? certificate?.defaultTopic : nil
  }

  /// How the connection was closed; `none` while it is open.
  package var ending: Ending { Ending(rawValue: end.load(ordering: .relaxed)) ?? .none }

  /// Records how the connection was closed. Only the first call has an effect.
  package func ended(_ ending: Ending) {
    _ = end.compareExchange(expected: Ending.none.rawValue, desired: ending.rawValue, ordering: .relaxed)
  }

  /// Creates the facts of a connection after its handshake.
  package init(
    id: String, listener: Int, client: String, sni: String?, tls: String, certificate: ProviderCertificate? = nil,
    openedAt: Int64 = MachineTime.nanoseconds
  ) {
    self.id = id
    self.listener = listener
    self.client = client
    self.sni = sni
    self.tls = tls
    self.certificate = certificate
    self.openedAt = openedAt
  }
}
