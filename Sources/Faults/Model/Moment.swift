/// At which moment of the exchange with a provider a rule looks: the word `at` of a profile file.
public enum Moment: String, CaseIterable, Sendable {
  /// A connection was accepted, nothing of it was read.
  case accept
  /// The client's TLS greeting is here, with the server name it asks for.
  case tls
  /// TLS is done, our first SETTINGS are about to leave.
  case settings
  /// A push is whole and judged, nothing was answered.
  case request
  /// The answer is known and has not left.
  case response
  /// Between pushes, on an open connection.
  case connection
}
