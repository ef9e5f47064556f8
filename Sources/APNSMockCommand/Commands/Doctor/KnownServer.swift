import MockAPNS
import NIOHTTP1
import TLSEngine

/// The data of a server's admin API that `doctor` uses.
struct KnownServer: Sendable {
  /// The admin listener.
  var admin: Endpoint
  /// The listeners for providers.
  var apns: [Endpoint]
  /// The environment of APNs.
  var environment: String
  /// How far the server's clock is ahead of this machine's, in milliseconds.
  var clockAhead: Int64
  /// Whether the server's clock is frozen.
  var isFrozen: Bool
  /// The trusted provider keys.
  var keys: [TrustedKeysPage.Key]
  /// The server's CA.
  var authority: X509Certificate?
  /// Whether a flag or port file specifies the server; otherwise it was found at the default address.
  var isNamed: Bool

  /// Returns whether the server listens on `endpoint`. Compares only ports, because the host differs for a container.
  func listens(on endpoint: Endpoint) -> Bool { isNamed || apns.contains { $0.port == endpoint.port } }
}

extension KnownServer {
  /// Reads the data from the admin API.
  ///
  /// - Throws: `CommandFailure` if a request fails.
  init(_ running: RunningServer, isNamed: Bool, timeout: Duration) async throws {
    var client = running.client
    client.timeout = timeout
    let status = try await client.request(.GET, "/api/v1/status").decoded(ServerStatus.self)
    let before = ServerClock().now
    let clock = try await client.request(.GET, "/api/v1/clock").decoded(ClockState.self)
    let after = ServerClock().now
    let keys = try await client.request(.GET, "/api/v1/keys").decoded(TrustedKeysPage.self).items
    let pem = try await client.request(.GET, "/ca.pem").body
    self.init(
      admin: client.endpoint, apns: status.apns, environment: status.environment,
      clockAhead: (clock.milliseconds ?? after) - (before + after) / 2,
      isFrozen: clock.mode == "frozen", keys: keys,
      authority: try? X509Certificate.chain(pem: String(decoding: pem, as: UTF8.self)).first, isNamed: isNamed)
  }
}
