/// The authentication state of one connection: the credential it is bound to, its provider tokens, and how often
/// they changed. Confined to the connection's event loop.
public struct ConnectionStanding: Sendable {
  /// The client certificate, if one was presented in the TLS handshake.
  public var certificate: ProviderCertificate? {
    didSet { defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) } }
  }

  /// Whether a provider token passed all credential checks on this connection. The server then raises the stream
  /// limit with its second SETTINGS frame (Protocol.md, section 9.1).
  public internal(set) var providerTokenAccepted = false

  /// Whether a provider token on this connection was rejected with `ExpiredProviderToken`.
  var hasExpiredToken = false

  /// The UTF-8 of `certificate.defaultTopic`, cached because each push needs it.
  private(set) var defaultTopic: [UInt8]?
  /// The key of the first accepted provider token (Protocol.md, section 3.3).
  var binding: TrustedKey?
  var updates = TokenUpdates()
  var known: KnownTokens

  /// Rejects all pushes with 429 `TooManyProviderTokenUpdates` for the update interval that begins at `now`
  /// (milliseconds since 1970). Used by a fault.
  public mutating func latchTokenUpdates(now: Int64) {
    updates.latch(now: now)
  }

  /// Creates the state of a new connection.
  ///
  /// - Parameter certificate: the client certificate, if one was presented.
  public init(certificate: ProviderCertificate? = nil) {
    self.init(certificate: certificate, known: KnownTokens())
  }

  /// Creates the state of a new connection.
  ///
  /// - Parameters:
  ///   - certificate: the client certificate, if one was presented.
  ///   - known: provider tokens that were accepted on other connections.
  /// - Parameter known: provider tokens that passed on other connections.
  package init(certificate: ProviderCertificate?, known: KnownTokens) {
    self.certificate = certificate
    self.known = known
    defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) }
  }
}
