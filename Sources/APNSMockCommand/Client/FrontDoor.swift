import MockAPNS
import NIOHTTP1
import Notation

/// Where a push goes in: the listener for providers of a running server, and what its clock shows.
struct FrontDoor: Sendable {
  /// The server's first listener, unless another one was named.
  let endpoint: Endpoint
  /// The server's clock, by which it judges the age of provider tokens; milliseconds since 1970.
  let now: Int64

  /// As far as a command needs it: where the server listens.
  private struct Status: Decodable {
    var addresses: Addresses

    struct Addresses: Decodable {
      var apns: [PortFile.Address]
    }
  }

  /// Finds out.
  ///
  /// - Parameter address: the listener that was named. Then, as with a port file, the admin listener is asked for the
  ///   time alone, and a server that does not tell is taken to be in real time.
  init(of server: RunningServer, named address: Endpoint?) async throws {
    let known = address ?? server.portFile?.apns.first
    do {
      let clock = try await server.client.request(.GET, "/api/v1/clock").decoded(Clock.State.self)
      now = WrittenTime.milliseconds(clock.now) ?? ServerClock().now
    } catch {
      guard known != nil else { throw error }
      now = ServerClock().now
    }
    if let known {
      endpoint = known.reachable
    } else {
      let status = try await server.client.request(.GET, "/api/v1/status").decoded(Status.self)
      guard let first = status.addresses.apns.first else {
        throw CommandFailure(.failed, "the server on \(server.client.endpoint) listens for no provider")
      }
      endpoint = first.endpoint.reachable
    }
  }
}

extension Endpoint {
  /// Where providers connect, as the flag says or else `APNS_MOCK_APNS`; nil if neither is given.
  ///
  /// - Throws: `CommandFailure` that names the one that cannot be used.
  static func named(byFlag flag: String?, _ environment: [String: String]) throws -> Endpoint? {
    let variable = environment.given(Setting.apns.variable).flatMap { Setting.list($0).first }
    for case (let text?, let source) in [(flag, Setting.apns.flag), (variable, Setting.apns.variable)] {
      do throws(BadValue) {
        return try Value.endpoint(text)
      } catch {
        throw CommandFailure(.usage, SettingError(error, from: source).description)
      }
    }
    return nil
  }

  /// Whether the host is an IP address rather than a name.
  var isAddress: Bool { host.contains(":") || host.allSatisfy { $0 == "." || $0.isNumber } }
}
