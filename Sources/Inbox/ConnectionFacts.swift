public import APNSRules

/// What all records of one connection have in common, made once per connection and shared by them.
public final class ConnectionFacts: Sendable {
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

  /// The facts of one connection, known once its handshake is through.
  public init(
    id: String, listener: Int, client: String, sni: String?, tls: String, certificate: ProviderCertificate? = nil
  ) {
    self.id = id
    self.listener = listener
    self.client = client
    self.sni = sni
    self.tls = tls
    self.certificate = certificate
  }
}
