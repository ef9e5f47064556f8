import MockAPNS
import HTTPTypes
import APNSMockNotation

/// The listener to push to, and the time of its server's clock.
struct ProviderTarget: Sendable {
  /// The specified listener, else the server's first one.
  let endpoint: MockServer.Endpoint
  /// The time of the server's clock, which determines the age of provider tokens, in milliseconds since 1970.
  let serverTime: Int64

  /// Determines the address and the time.
  ///
  /// - Parameter address: The specified listener. With it, or with a port file, the admin listener is only asked for
  ///   the time, and this machine's time is used if it does not respond.
  init(of server: ServerLocation, named address: MockServer.Endpoint?) async throws {
    let known = address ?? server.portFile?.apns.first?.endpoint
    do {
      let clock = try await server.client.request(.get, "/api/v1/clock").decoded(ClockState.self)
      serverTime = clock.milliseconds ?? ServerClock().now
    } catch {
      guard known != nil else { throw error }
      serverTime = ServerClock().now
    }
    if let known {
      endpoint = known.reachable
    } else {
      let status = try await server.client.request(.get, "/api/v1/status").decoded(ServerStatus.self)
      guard let first = status.apns.first else {
        throw CommandFailure(.failed, "the server on \(server.client.endpoint) has no listener for providers")
      }
      endpoint = first
    }
  }
}

extension MockServer.Endpoint {
  /// Returns the address of a listener from the flag, else from the variable; nil if neither is set.
  ///
  /// - Throws: `CommandFailure` that names the invalid one.
  static func named(byFlag flag: String?, of setting: Setting, _ environment: [String: String]) throws -> MockServer
    .Endpoint?
  {
    let variable = environment.given(setting.variable).flatMap { setting.isList ? Setting.list($0).first : $0 }
    for case (let text?, let source) in [(flag, setting.flag), (variable, setting.variable)] {
      do throws(InvalidSettingValue) {
        return try setting == .admin ? Value.endpoint(text) : Value.listener(text, allowsProxyProtocol: true).endpoint
      } catch {
        throw CommandFailure(.usage, SettingError(error, from: source).description)
      }
    }
    return nil
  }

  /// Whether the host is an IP address rather than a name.
  var isAddress: Bool { host.contains(":") || host.allSatisfy { $0 == "." || $0.isNumber } }
}
