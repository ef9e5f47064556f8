/// What APNs remembers of one connection between its pushes: the credential it is bound to, its provider tokens, and
/// whether it changed them too often. Belongs to the connection's event loop.
public struct ConnectionStanding: Sendable {
  /// The client certificate, once the handshake showed one.
  public var certificate: ProviderCertificate? {
    didSet { defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) } }
  }

  /// Whether a push came with a provider token that passed all checks of the credential: the moment for the second
  /// SETTINGS (APNS.md section 9.1).
  public internal(set) var providerTokenAccepted = false

  /// Whether a provider token on this connection was rejected with `ExpiredProviderToken`.
  var hasExpiredToken = false

  /// The UTF-8 of `certificate.defaultTopic`, so that a push need not make it.
  private(set) var defaultTopic: [UInt8]?
  /// The key of the first accepted provider token (APNS.md section 3.3).
  var binding: TrustedKey?
  var updates = TokenUpdates()
  var known: KnownTokens

  /// Answers every push with 429 `TooManyProviderTokenUpdates` until the update interval has passed from `now` on
  /// (milliseconds since 1970): what a fault asks for.
  public mutating func latchTokenUpdates(now: Int64) {
    updates.latch(now: now)
  }

  /// A new connection, with the client certificate if it showed one.
  public init(certificate: ProviderCertificate? = nil) {
    self.init(certificate: certificate, known: KnownTokens())
  }

  /// The same.
  ///
  /// - Parameter known: provider tokens that passed on other connections.
  package init(certificate: ProviderCertificate?, known: KnownTokens) {
    self.certificate = certificate
    self.known = known
    defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) }
  }
}
