import APNSMockRules
import APNSMockInbox
package import MockAPNS
import APNSMockNotation
import APNSMockPlatformLibc

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file with a server's addresses and the paths and ids its clients need, written when the server is ready.
package struct PortFile: Sendable, Equatable {
  /// A listener for providers.
  struct Listener: Sendable, Equatable {
    var endpoint: MockServer.Endpoint
    var environment = PushEnvironment.sandbox
  }

  /// Whether a server accepts pushes, or waits to take over from the one that does.
  enum Role: String, Sendable, Decodable {
    case active, standby
  }

  /// The server's process id.
  var pid: Int32
  /// The server's role; active for a server of an older version.
  var role = Role.active
  /// The listeners for providers.
  var apns: [Listener]
  /// The listeners for providers without TLS.
  var apnsPlain: [Listener] = []
  /// The CONNECT proxy.
  var proxy: Listener?
  /// The listeners for broadcasts and channel management only.
  var manage: [Listener] = []
  /// The admin listener.
  var admin: MockServer.Endpoint?
  /// The absolute path of the CA to trust, the ids of the provider key and its absolute path. Empty for `view`.
  var ca: String
  var keyID: String
  var teamID: String
  var key: String
  /// The environment of listeners that name none.
  var environment: PushEnvironment
  /// The active seed.
  var seed: UInt64
  /// The token that the admin listener requires, if any.
  var adminToken: String?
  /// Whether the server is a `view` of an export, which accepts no pushes.
  var isView = false

  /// The certificate folder.
  var folder: String { String(ca[..<(ca.lastIndex(of: "/") ?? ca.startIndex)]) }

  /// The content of the file.
  var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("pid", pid)
      writer.member("role", isView ? nil : role.rawValue)
      Self.write(apns, as: "apns", to: &writer)
      Self.write(apnsPlain, as: "apns_plain", to: &writer)
      if let proxy {
        writer.objectMember("proxy") { Self.write(proxy, to: &$0) }
      } else {
        writer.nullMember("proxy")
      }
      Self.write(manage, as: "manage", to: &writer)
      if let admin {
        writer.objectMember("admin") { Self.write(admin, to: &$0) }
      } else {
        writer.nullMember("admin")
      }
      writer.member("ca", isView ? nil : ca)
      writer.member("key_id", isView ? nil : keyID)
      writer.member("team_id", isView ? nil : teamID)
      writer.member("key", isView ? nil : key)
      writer.member("environment", isView ? nil : environment.rawValue)
      writer.member("seed", isView || role == .standby ? nil : seed)
      writer.member("admin_token", adminToken)
    } + [UInt8(ascii: "\n")]
  }

  private static func write(_ listeners: [Listener], as name: String, to writer: inout JSONWriter) {
    writer.arrayMember(name) { writer in
      for listener in listeners { writer.object { write(listener, to: &$0) } }
    }
  }

  private static func write(_ listener: Listener, to writer: inout JSONWriter) {
    write(listener.endpoint, to: &writer)
    writer.member("environment", listener.environment.rawValue)
  }

  private static func write(_ endpoint: MockServer.Endpoint, to writer: inout JSONWriter) {
    writer.member("host", endpoint.host)
    writer.member("port", endpoint.port)
  }
}

extension PortFile {
  /// Creates the content for a server.
  package init(of state: ServerState) {
    self.init(
      state.listeners, admin: state.adminAddress, state.certificates, state.configuration, seed: state.seed)
  }

  /// Creates the content for a standby server.
  ///
  /// - Parameters:
  ///   - listeners: The listeners for providers, which do not listen yet.
  ///   - admin: The address of the admin listener; nil without one.
  package init(
    standbyAt listeners: [BoundListener], admin: MockServer.Endpoint?, certificates: CertificateFolder,
    _ configuration: MockServer.Configuration
  ) {
    self.init(listeners, admin: admin, certificates, configuration, seed: configuration.seed ?? 0)
    role = .standby
  }

  private init(
    _ bound: [BoundListener], admin: MockServer.Endpoint?, _ certificates: CertificateFolder,
    _ configuration: MockServer.Configuration,
    seed: UInt64
  ) {
    func listeners(_ isIncluded: (ListenerKind) -> Bool) -> [Listener] {
      bound.filter { isIncluded($0.kind) }.map { Listener(endpoint: $0.endpoint, environment: $0.environment) }
    }
    self.init(
      pid: getpid(), apns: listeners(\.isAPNs), apnsPlain: listeners { $0 == .cleartext },
      proxy: listeners { $0 == .connectProxy }.first, manage: listeners { $0 == .management }, admin: admin,
      ca: certificates.caPath, keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID,
      key: certificates.providerKeyPath, environment: configuration.environment, seed: seed,
      adminToken: configuration.adminToken)
  }

  /// Creates the content for a `view` of an export.
  ///
  /// - Parameters:
  ///   - address: The address of the admin listener.
  ///   - token: The bearer token that the admin API requires; nil for none.
  package init(viewerAt address: MockServer.Endpoint, token: String?) {
    self.init(
      pid: getpid(), apns: [], admin: address, ca: "", keyID: "", teamID: "", key: "", environment: .sandbox, seed: 0,
      adminToken: token, isView: true)
  }
}

extension PortFile {
  /// Parses the content of the file.
  ///
  /// - Throws: `DecodingError`.
  init(json: [UInt8]) throws {
    let server = try JSONDecoder.adminAPI.decode(Server.self, from: Data(json))
    let environment = server.environment.flatMap { PushEnvironment(rawValue: $0) } ?? .sandbox
    self.init(
      pid: server.pid, apns: server.apns.map { $0.listener(environment) },
      apnsPlain: server.apnsPlain?.map { $0.listener(environment) } ?? [],
      proxy: server.proxy?.listener(environment), manage: server.manage?.map { $0.listener(environment) } ?? [],
      admin: server.admin?.endpoint, ca: "", keyID: "", teamID: "", key: "", environment: environment, seed: 0,
      adminToken: server.adminToken, isView: server.ca == nil)
    guard !isView else { return }
    let access = try JSONDecoder.adminAPI.decode(Access.self, from: Data(json))
    (ca, keyID, teamID, key, seed) = (access.ca, access.keyId, access.teamId, access.key, access.seed ?? 0)
    role = server.role ?? .active
  }

  /// The members for every server.
  private struct Server: Decodable {
    var pid: Int32
    /// Nil in port files of older versions.
    var role: Role?
    var apns: [Address]
    /// Nil in port files of older versions.
    var apnsPlain: [Address]?
    var proxy: Address?
    /// Nil in port files of older versions.
    var manage: [Address]?
    var environment: String?
    var admin: Address?
    var adminToken: String?
    var ca: String?
  }

  /// The members for a server that accepts pushes.
  private struct Access: Decodable {
    var ca: String
    var keyId: String
    var teamId: String
    var key: String
    /// Nil for a standby.
    var seed: UInt64?
  }
  /// The JSON form of an address.
  struct Address: Decodable {
    var host: String
    var port: Int
    /// Nil for the admin listener and in port files of older versions.
    var environment: String?
    var endpoint: MockServer.Endpoint { MockServer.Endpoint(host: host, port: port) }

    /// Returns the listener.
    ///
    /// - Parameter standard: The environment of a listener that names none.
    func listener(_ standard: PushEnvironment) -> Listener {
      Listener(endpoint: endpoint, environment: environment.flatMap { PushEnvironment(rawValue: $0) } ?? standard)
    }
  }
}

extension PortFile {
  /// The environment variables with the server's addresses and credentials for its clients; nil for those without a
  /// value.
  package var variables: [(name: String, value: String?)] {
    [
      (Setting.apns.variable, Self.addresses(apns)),
      (Setting.apnsPlain.variable, Self.addresses(apnsPlain)),
      (Setting.proxy.variable, proxy?.endpoint.reachable.description),
      (Setting.manage.variable, Self.addresses(manage)),
      (Setting.admin.variable, admin?.reachable.description),
      (EnvironmentVariables.ca, ca), (EnvironmentVariables.key, key),
      (EnvironmentVariables.keyID, keyID), (EnvironmentVariables.teamID, teamID),
      (Setting.adminToken.variable, adminToken),
    ]
  }

  /// Returns the addresses of the first listener and of further ones with its environment, separated by commas; nil if
  /// there are none. A client that uses all of them stays in one environment.
  private static func addresses(_ listeners: [Listener]) -> String? {
    guard let first = listeners.first else { return nil }
    return listeners.filter { $0.environment == first.environment }.map(\.endpoint.reachable.description)
      .joined(separator: ",")
  }

  /// Reads the port file specified by the flag, else by `APNS_MOCK_PORT_FILE`; returns nil if neither is set.
  ///
  /// - Throws: `CommandFailure`: `unreachable` if the file does not exist (yet), `usage` if it is not a port file.
  static func named(byFlag flag: String?, _ environment: [String: String]) throws -> PortFile? {
    guard let path = flag ?? environment.given(Setting.portFile.variable) else { return nil }
    let source = flag == nil ? Setting.portFile.variable : Setting.portFile.flag
    let bytes: [UInt8]
    do {
      bytes = try Files.contents(of: path)
    } catch {
      throw CommandFailure(
        .unreachable,
        "\(source): \(error); a server creates the file when ready: apns-mock serve --port-file \(path.shellQuoted)")
    }
    do {
      return try PortFile(json: bytes)
    } catch {
      throw CommandFailure(.usage, "\(source): \(path) is not a port file of apns-mock")
    }
  }
}

/// The port file written by this process.
package struct WrittenPortFile: Sendable {
  /// The absolute path, because the working directory may change.
  let path: String
  private let bytes: [UInt8]

  /// Writes the file.
  ///
  /// - Throws: `CommandFailure` if it cannot be written.
  package init(_ content: PortFile, at path: String) throws {
    self.path = Files.absolute(path)
    bytes = content.json
    do {
      try Files.replace(self.path, with: bytes)
    } catch {
      throw CommandFailure(.usage, "\(Setting.portFile.flag): \(error)")
    }
  }

  /// Removes the file, unless another server has replaced it.
  package func remove() { WholeFile(path: path).remove(ifItHolds: bytes) }
}
