import MockAPNS
import NIOHTTP1
import Notation

/// The address of a running server's listener for providers, and the time of its clock.
struct APNSListenerLocator: Sendable {
  /// The specified listener, else the server's first one.
  let endpoint: Endpoint
  /// The time of the server's clock, which determines the age of provider tokens, in milliseconds since 1970.
  let now: Int64

  /// The part of the server's status with its addresses.
  private struct Status: Decodable {
    var addresses: Addresses

    struct Addresses: Decodable {
      var apns: [PortFile.Address]
    }
  }

  /// Determines the address and the time.
  ///
  /// - Parameter address: The specified listener. With it, or with a port file, the admin listener is only asked for
  ///   the time, and this machine's time is used if it does not respond.
  init(of server: RunningServer, named address: Endpoint?) async throws {
    let known = address ?? server.portFile?.apns.first
    do {
      let clock = try await server.client.request(.GET, "/api/v1/clock").decoded(Clock.State.self)
      now = TimestampFormat.milliseconds(clock.now) ?? ServerClock().now
    } catch {
      guard known != nil else { throw error }
      now = ServerClock().now
    }
    if let known {
      endpoint = known.reachable
    } else {
      let status = try await server.client.request(.GET, "/api/v1/status").decoded(Status.self)
      guard let first = status.addresses.apns.first else {
        throw CommandFailure(.failed, "the server on \(server.client.endpoint) has no listener for providers")
      }
      endpoint = first.endpoint.reachable
    }
  }
}

extension Endpoint {
  /// Returns the address for providers from the flag, else from `APNS_MOCK_APNS`; nil if neither is set.
  ///
  /// - Throws: `CommandFailure` that names the invalid one.
  static func named(byFlag flag: String?, _ environment: [String: String]) throws -> Endpoint? {
    let variable = environment.given(Setting.apns.variable).flatMap { Setting.list($0).first }
    for case (let text?, let source) in [(flag, Setting.apns.flag), (variable, Setting.apns.variable)] {
      do throws(InvalidSettingValue) {
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

/// An optional running server, for commands that also work without one. It is notified of changes in the certificate
/// folder and can have more fault profiles than this program.
struct OptionalServer: Sendable {
  /// The server's location; nil if its port file does not exist.
  private let running: RunningServer?
  /// The failure if there is no port file.
  private let absence: CommandFailure?
  /// Whether a flag specifies the server, so that it must be reachable.
  private let isDemanded: Bool

  /// Locates the server as all client commands do.
  ///
  /// - Throws: `CommandFailure` for invalid flags and port files.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    isDemanded = flags.portFile != nil || flags.admin != nil
    do {
      (running, absence) = (try RunningServer(flags, environment: environment), nil)
    } catch let failure as CommandFailure where failure.status == .unreachable {
      (running, absence) = (nil, failure)
    }
  }

  /// The server's port file, if it was located by one.
  var portFile: PortFile? { running?.portFile }

  /// The server's name in messages.
  var name: String { running.map { "the server on \($0.client.endpoint)" } ?? "no server" }

  /// Sends a request.
  ///
  /// - Returns: The response; nil if the server is unreachable and no flag specifies it.
  /// - Throws: `CommandFailure` of status `unreachable` if a flag specifies an unreachable server.
  func request(_ method: HTTPMethod, _ path: String, body: [UInt8]? = nil) async throws -> AdminClient.Answer? {
    do {
      if let absence { throw absence }
      return try await running?.client.request(method, path, body: body)
    } catch let failure as CommandFailure where failure.status == .unreachable && !isDemanded {
      return nil
    }
  }

  /// Returns the fingerprint of the server's CA, which shows whether the server uses the same folder.
  func authorityFingerprint() async throws -> String? {
    guard let answer = try await request(.GET, "/api/v1/status"), answer.status == 200 else { return nil }
    return try answer.decoded(Status.self).ca?.fingerprint
  }

  private struct Status: Decodable {
    /// Null for `view`.
    var ca: Authority?

    struct Authority: Decodable {
      var fingerprint: String
    }
  }
}
