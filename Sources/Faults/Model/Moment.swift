/// The point in a connection or request at which a rule is evaluated: `at` in a profile file.
public enum Moment: String, CaseIterable, Sendable {
  /// A connection was accepted and nothing was read from it yet.
  case accept
  /// The ClientHello was received, including the server name (SNI).
  case tls
  /// The TLS handshake is complete and the first SETTINGS frame is about to be sent.
  case settings
  /// A request is complete and validated, and no response was sent yet.
  case request
  /// The response is determined and not sent yet.
  case response
  /// Between pushes, on an open connection.
  case connection
}
