import APNSMockClientCommands
import MockAPNS
import APNSMockNotation

/// The settings of `serve` for forwarding, before they are checked together.
struct UpstreamChoice: Sendable {
  /// The service's address; meaningful if `isChosen`.
  var endpoint = MockServer.Endpoint(host: "", port: 0)
  /// Whether a service was specified.
  var isChosen = false
  /// The paths of PEM files.
  var authorities: [String] = []
  var certificate: String?
  var key: String?
  var connections = 2
  /// Patterns with `*`.
  var allowedTopics: [String] = []
  var allowedTokens: [String] = []
  var learnsTokens = true

  /// Returns the settings of the service; nil if none was specified.
  ///
  /// - Throws: `CommandFailure` for settings that need each other, unusable files and an unusable `HTTPS_PROXY`.
  func settings(_ environment: [String: String]) throws -> UpstreamSettings? {
    guard isChosen else { return nil }
    guard (certificate == nil) == (key == nil) else {
      throw CommandFailure(
        .usage, "\(Setting.upstreamCert.flag) and \(Setting.upstreamKey.flag) belong together: specify both")
    }
    var settings = UpstreamSettings(endpoint: endpoint)
    settings.authorities = authorities
    if let certificate, let key { settings.certificate = (certificate, key) }
    settings.connections = connections
    settings.allowedTopics = allowedTopics.map { TextPattern($0, foldsCase: false) }
    settings.allowedTokens = allowedTokens.map { TextPattern($0, foldsCase: true) }
    settings.learnsTokens = learnsTokens
    try settings.prepare(environment)
    return settings
  }
}
