import ArgumentParser
package import MockAPNS

/// The options by which client commands locate a server.
struct ServerFlags: ParsableArguments {
  @Option(
    name: .long, help: .value("file", "The port file of the running server. [APNS_MOCK_PORT_FILE]"), completion: .file()
  )
  var portFile: String?

  @Option(
    name: .long,
    help: .value("host:port", "The server's admin listener, HOST:PORT. [APNS_MOCK_ADMIN] (default: 127.0.0.1:8197)"))
  var admin: String?

  @Option(
    name: .long,
    help: .value(
      "token", "The token the admin listener requires. [APNS_MOCK_ADMIN_TOKEN] (default: the one in the port file)"))
  var adminToken: String?

  /// Returns the variables that may name an address of the server: none beside `--port-file`, which may be another server's.
  func variables(_ environment: [String: String]) -> [String: String] { portFile == nil ? environment : [:] }

  /// Returns the client of the server's admin API.
  ///
  /// - Throws: `CommandFailure` if the flags or the port file do not specify a server.
  func client() throws -> AdminClient { try ServerLocation(self, environment: Environment.variables).client }
}

/// The location of a running server: `--port-file`, else `--admin`, else `APNS_MOCK_PORT_FILE`, else `APNS_MOCK_ADMIN`, else the
/// default address of `serve`.
package struct ServerLocation: Sendable {
  /// The server's port file, if it was located by one.
  let portFile: PortFile?
  /// The client of its admin API.
  let client: AdminClient

  /// Locates the server without connecting to it.
  ///
  /// - Throws: `CommandFailure`: `unreachable` if the port file does not exist (yet), `usage` if it is invalid.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    let usesPortFile = flags.portFile != nil || flags.admin == nil
    if usesPortFile, let found = try PortFile.named(byFlag: flags.portFile, environment) {
      guard let admin = found.admin else {
        throw CommandFailure(.unreachable, "the server of the port file has no admin listener")
      }
      portFile = found
      client = AdminClient(
        endpoint: admin.reachable, token: flags.adminToken ?? found.adminToken,
        origin: ", the address in the port file")
      return
    }
    portFile = nil
    client = AdminClient(
      endpoint: try Self.adminEndpoint(flag: flags.admin, environment).reachable,
      token: try flags.adminToken ?? Self.adminToken(environment))
  }

  /// Returns the admin address of the flag, else the variable, else the default of `serve`.
  ///
  /// - Throws: `CommandFailure` of status `usage` for an invalid address.
  package static func adminEndpoint(flag: String?, _ environment: [String: String]) throws -> MockServer.Endpoint {
    try MockServer.Endpoint.named(byFlag: flag, of: .admin, environment) ?? MockServer.Configuration().admin
      ?? MockServer.Endpoint(host: "127.0.0.1", port: 8197)
  }

  /// Returns the admin token that the variables specify.
  ///
  /// - Throws: `CommandFailure` for a file that cannot be read.
  package static func adminToken(_ environment: [String: String]) throws -> String? {
    if let token = environment.given(Setting.adminToken.variable) {
      // `auto`: only the port file contains the token that the server generated.
      return token == Setting.generatedToken ? nil : token
    }
    return try environment.given(EnvironmentVariables.adminTokenFile).map { try Files.text(of: $0).trimmed }
  }
}
