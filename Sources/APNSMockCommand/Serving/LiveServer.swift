import AdminAPI
import Logging
import MockAPNS
import TLSEngine

/// A server with its admin listener and its port file, from ready to gone.
struct LiveServer: Sendable {
  /// What its connections and its admin side share.
  var state: ServerState { server.state }
  private let server: MockServer
  private let admin: AdminServer?
  private let portFile: WrittenPortFile?

  /// Starts it. When it returns, everything listens and the port file is there.
  ///
  /// - Parameter whenListening: what is to be said before anybody can know that it is ready.
  /// - Throws: `CommandFailure`; then nothing is left of it.
  static func start(
    _ settings: ServeSettings, logger: Logger, whenListening: (ServerState) -> Void = { _ in }
  ) async throws -> LiveServer {
    var configuration = settings.configuration
    if settings.drawsAdminToken { configuration.adminToken = drawnToken() }
    let server = try await starting { try await MockServer.start(configuration, logger: logger) }
    let admin: AdminServer?
    do {
      admin = try await starting { try await startAdmin(server.state, logger: logger) }
    } catch {
      await server.stop()
      throw error
    }
    whenListening(server.state)
    server.state.phase = .ready
    do {
      let portFile = try settings.portFile.map { try WrittenPortFile(PortFile(of: server.state), at: $0) }
      return LiveServer(server: server, admin: admin, portFile: portFile)
    } catch {
      await server.stop()
      await admin?.stop()
      throw error
    }
  }

  private init(server: MockServer, admin: AdminServer?, portFile: WrittenPortFile?) {
    self.server = server
    self.admin = admin
    self.portFile = portFile
  }

  /// Ends it in order. The admin listener outlives the other one: it tells whoever asks that the server is going.
  func stop() async {
    await server.stop()
    await admin?.stop()
    removePortFile()
  }

  /// What has to be done even where everything ends at once.
  func removePortFile() { portFile?.remove() }

  private static func startAdmin(_ state: ServerState, logger: Logger) async throws -> AdminServer? {
    guard let address = state.configuration.admin else { return nil }
    return try await AdminServer.start(state, at: address, version: Version.text, logger: logger)
  }

  /// Turns what can go wrong at the start into words and exit codes.
  static func starting<Result>(_ work: () async throws -> Result) async throws -> Result {
    do {
      return try await work()
    } catch let error as ListenError {
      throw CommandFailure(error.isInUse ? .portInUse : .usage, error.description)
    } catch let error as CertificateFolderError {
      throw CommandFailure(.usage, error.description)
    } catch let error as TLSError {
      throw CommandFailure(.usage, "certificates (--certs, --client-ca): \(error)")
    }
  }

  /// 128 random bits.
  private static func drawnToken() -> String {
    (0..<4).map { _ in
      let digits = String(UInt32.random(in: 0...UInt32.max), radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }.joined()
  }
}
