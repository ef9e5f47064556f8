import APNSMockAdminAPI
import APNSMockClientCommands
import Logging
import MockAPNS
import APNSMockPostgreSQLStore

/// A server that waits until it is the active one of its schema. It answers health checks and metrics, and names the active
/// server to all other requests; providers cannot connect.
struct StandbyServer {
  private let admin: AdminServer?
  private let addresses: ReservedAddresses
  let portFile: WrittenPortFile?

  /// Starts a standby. When this function returns, its admin listener answers and the port file exists.
  ///
  /// - Throws: An error if an address cannot be bound, or the port file cannot be written.
  static func start(
    _ lock: ActiveLock, _ configuration: MockServer.Configuration, portFile: String?, logger: Logger
  ) async throws -> StandbyServer {
    let certificates = try CertificateFolder.open(
      path: configuration.certificates, extraNames: configuration.certificateNames)
    let addresses = try ReservedAddresses(configuration)
    var admin: AdminServer?
    if let address = configuration.admin {
      let routes = AdminRoutes(standbyOf: { lock.activeURL }, configuration, version: Version.text)
      admin = try await AdminServer.start(routes, of: nil, at: address, logger: logger)
    }
    let content = PortFile(
      standbyAt: addresses.listeners, admin: admin?.address, certificates: certificates, configuration)
    return StandbyServer(
      admin: admin, addresses: addresses, portFile: try portFile.map { try WrittenPortFile(content, at: $0) })
  }

  /// Returns the configuration of the active server with the addresses of this one.
  func pass(to configuration: MockServer.Configuration) -> MockServer.Configuration {
    var configuration = addresses.pass(to: configuration)
    configuration.admin = admin?.address ?? configuration.admin
    return configuration
  }

  /// Ends the admin listener.
  func stop() async { await admin?.stop(gracePeriod: .milliseconds(50)) }
}
