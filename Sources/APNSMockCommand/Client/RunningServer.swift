import ArgumentParser
import MockAPNS
import Notation

/// The flags by which client commands find a server.
struct ServerFlags: ParsableArguments {
  @Option(name: .long, help: "The file a running server wrote down its addresses in. [APNS_MOCK_PORT_FILE]")
  var portFile: String?

  @Option(name: .long, help: "The server's admin listener, HOST:PORT. [APNS_MOCK_ADMIN] (default: 127.0.0.1:8197)")
  var admin: String?

  @Option(
    name: .long,
    help: "The token the admin listener requires. [APNS_MOCK_ADMIN_TOKEN] (default: the one in the port file)")
  var adminToken: String?
}

/// A running server as its clients find it: by `--port-file`, else `APNS_MOCK_PORT_FILE`, else `--admin` or
/// `APNS_MOCK_ADMIN`, else where `serve` listens by default.
struct RunningServer: Sendable {
  /// What the server wrote down, if it was found that way.
  let portFile: PortFile?
  /// Speaks to it.
  let client: AdminClient

  /// Finds it; nothing is connected yet.
  ///
  /// - Throws: `CommandFailure`: `unreachable` for a port file that is not there (yet), `usage` for a bad one.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    if let found = try PortFile.named(byFlag: flags.portFile, environment) {
      guard let admin = found.admin else {
        throw CommandFailure(.unreachable, "the server of the port file has no admin listener")
      }
      portFile = found
      client = AdminClient(
        endpoint: admin.reachable, token: flags.adminToken ?? found.adminToken,
        origin: ", where the port file says it is")
      return
    }
    portFile = nil
    client = AdminClient(
      endpoint: try Self.adminEndpoint(flag: flags.admin, environment).reachable,
      token: try flags.adminToken ?? Self.adminToken(environment))
  }

  /// What a flag says, else the variable, else where `serve` listens by default.
  ///
  /// - Throws: `CommandFailure` of status `usage` for what is no address.
  static func adminEndpoint(flag: String?, _ environment: [String: String]) throws -> Endpoint {
    let given = [
      (flag, Setting.admin.flag), (environment.given(Setting.admin.variable), Setting.admin.variable),
    ]
    for case (let text?, let source) in given {
      do throws(BadValue) {
        return try Value.endpoint(text)
      } catch {
        throw CommandFailure(.usage, SettingError(error, from: source).description)
      }
    }
    return Configuration().admin ?? Endpoint(host: "127.0.0.1", port: 8197)
  }

  /// What the variables say.
  ///
  /// - Throws: `CommandFailure` for a file that cannot be read.
  static func adminToken(_ environment: [String: String]) throws -> String? {
    if let token = environment.given(Setting.adminToken.variable) {
      // What the server made up then, only its port file tells.
      return token == ServeSettings.drawnToken ? nil : token
    }
    return try environment.given(Variables.adminTokenFile).map { try Files.text(of: $0).trimmed }
  }
}
