import HTTPTypes

/// An optional running server, for commands that also work without one. It is notified of changes in the certificate
/// folder and can have more fault profiles than this program.
struct OptionalServer: Sendable {
  /// The server's location; nil if its port file does not exist.
  private let running: ServerLocation?
  /// The failure if there is no port file.
  private let absence: CommandFailure?
  /// Whether a flag specifies the server, so that it must be reachable.
  private let isRequired: Bool

  /// Locates the server as all client commands do.
  ///
  /// - Throws: `CommandFailure` for invalid flags and port files.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    isRequired = flags.portFile != nil || flags.admin != nil
    do {
      (running, absence) = (try ServerLocation(flags, environment: environment), nil)
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
  func request(_ method: HTTPRequest.Method, _ path: String, body: [UInt8]? = nil) async throws -> AdminClient.Response?
  {
    do {
      if let absence { throw absence }
      return try await running?.client.request(method, path, body: body)
    } catch let failure as CommandFailure where failure.status == .unreachable && !isRequired {
      return nil
    }
  }

  /// Returns the fingerprint of the server's CA, which shows whether the server uses the same folder.
  func authorityFingerprint() async throws -> String? {
    guard let response = try await request(.get, "/api/v1/status"), response.status == 200 else { return nil }
    return try response.decoded(ServerStatus.self).ca?.fingerprint
  }
}
