public import APNSRules
internal import Synchronization

/// What all records of one connection have in common, made once per connection and shared by them.
public final class ConnectionFacts: Sendable {
  /// Who ended the connection.
  public enum Ending: UInt8, Sendable {
    /// It is open.
    case none
    /// The client closed it, by its own will.
    case byClient
    /// The server closed it, or had told the client to, or a fault had part in it.
    case byServer
  }

  /// How the connection is called in records, logs and filters: `c17` for the server's seventeenth.
  public let id: String
  /// Which of the server's APNs listeners it came in by, from 0.
  public let listener: Int
  /// The provider's address, `HOST:PORT`.
  public let client: String
  /// The host name the provider asked for in its TLS handshake (SNI), if it did.
  public let sni: String?
  /// The negotiated protocol version, such as `TLSv1.3`.
  public let tls: String
  /// The provider certificate that the connection was opened with; nil in token mode.
  public let certificate: ProviderCertificate?
  /// When it was opened, in monotonic nanoseconds of machine time.
  public let openedAt: Int64
  private let end = Atomic<UInt8>(Ending.none.rawValue)

  /// The topic of a push that does not name one: the only one that the provider certificate permits. Nil for a push that
  /// names its topic, and where there is no such certificate.
  public func defaultTopic(_ facts: borrowing PushFacts) -> String? {
    facts.topic == nil ? certificate?.defaultTopic : nil
  }

  /// How it ended, if it did.
  public var ending: Ending { Ending(rawValue: end.load(ordering: .relaxed)) ?? .none }

  /// Says how it ended. Only the first word counts.
  public func ended(_ ending: Ending) {
    _ = end.compareExchange(expected: Ending.none.rawValue, desired: ending.rawValue, ordering: .relaxed)
  }

  /// The facts of one connection, known once its handshake is through.
  public init(
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
