import MockAPNS
import NIOHTTP1
import TLSEngine
import Notation

/// What the admin API tells of a server, as far as `doctor` can use it.
struct KnownServer: Sendable {
  /// A provider key that it trusts.
  struct Key: Decodable, Sendable, Equatable {
    var key_id: String
    var team_id: String
    var environment: String?
    var topics: [String]?
  }

  /// Where its admin API is.
  var admin: Endpoint
  /// Where providers connect.
  var apns: [Endpoint]
  /// The environment it mimics.
  var environment: String
  /// How far its clock is ahead of this machine's, in milliseconds.
  var clockAhead: Int64
  /// Whether its clock stands still.
  var isFrozen: Bool
  /// The keys it trusts.
  var keys: [Key]
  /// Its CA.
  var authority: X509Certificate?
  /// Whether it was named by a flag or a port file, and not only found on the usual port.
  var isNamed: Bool

  /// Whether it is what listens on `endpoint`: a port of its own tells, as there may be a container in between.
  func listens(on endpoint: Endpoint) -> Bool { isNamed || apns.contains { $0.port == endpoint.port } }
}

extension KnownServer {
  private struct Status: Decodable {
    var environment: String
    var addresses: Addresses

    struct Addresses: Decodable {
      var apns: [PortFile.Address]
    }
  }

  private struct Keys: Decodable {
    var items: [Key]
  }

  /// Asks for it all.
  ///
  /// - Throws: `CommandFailure` if somebody is there who does not answer these questions.
  init(_ running: RunningServer, isNamed: Bool, patience: Duration) async throws {
    var client = running.client
    client.timeout = patience
    let status = try await client.request(.GET, "/api/v1/status").decoded(Status.self)
    let before = ServerClock().now
    let clock = try await client.request(.GET, "/api/v1/clock").decoded(Clock.State.self)
    let after = ServerClock().now
    let keys = try await client.request(.GET, "/api/v1/keys").decoded(Keys.self).items
    let pem = try await client.request(.GET, "/ca.pem").body
    self.init(
      admin: client.endpoint, apns: status.addresses.apns.map(\.endpoint.reachable), environment: status.environment,
      clockAhead: (WrittenTime.milliseconds(clock.now) ?? after) - (before + after) / 2,
      isFrozen: clock.mode == "frozen", keys: keys,
      authority: try? X509Certificate.chain(pem: String(decoding: pem, as: UTF8.self)).first, isNamed: isNamed)
  }
}
