import APNSMockAdminAPI
import ArgumentParser
import APNSMockClientCommands
import APNSMockInbox
import Logging
import MockAPNS
import APNSMockNotation
import APNSMockPostgreSQLStore
import APNSMockSchemasView

/// `apns-mock view`
struct ViewCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "view", abstract: "View an exported inbox, or those of several servers in PostgreSQL as one.",
    discussion: """
      Serves a file as a read-only inbox, for the web UI and all commands that read pushes. Exports are created by \
      export, --export-on-exit and exec --export.

      With a URL such as 'postgres://…/inbox?schema=load_*' it shows the inboxes of all servers whose schema matches the pattern, \
      in the order of arrival, while they are written. A push is named by its server and its number there, such as load_1:4711. \
      Schemas that are added or removed are noticed.
      """)

  @Argument(
    help: .value(
      "file",
      """
      The export, one record per line or an array; - for standard input. Or postgres://…?schema=PATTERN, with * for any \
      characters.
      """), completion: .file())
  var file: String

  @Option(
    help: .value(
      "host:port",
      """
      The listener for the admin API and web UI, HOST:PORT; port 0 selects a free one. [APNS_MOCK_ADMIN] \
      (default: 127.0.0.1:8197)
      """))
  var admin: String?

  @Option(help: .value("file", "Write the address to this file when ready."), completion: .file())
  var portFile: String?

  @Option(help: .value("size", "The memory limit for the pushes of a file, such as 512MiB. (default: 2GiB)"))
  var maxBytes: String?

  func run() async throws {
    if let scheme = ["sqlite:", "postgres:", "postgresql:"].first(where: file.hasPrefix),
      !PostgreSQLAddress.isAddress(file)
    {
      throw CommandFailure(
        .usage,
        scheme == "sqlite:"
          ? "view shows an export, or schemas of PostgreSQL: for a file of SQLite, start a server with --store \(file)"
          : "the URL cannot be \"\(PostgreSQLAddress.withoutSecrets(file))\": expected \(PostgreSQLAddress.allowed)")
    }
    let environment = Environment.variables
    let address = try ServerLocation.adminEndpoint(flag: admin, environment)
    let token = try ServerLocation.adminToken(environment)
    let logger = Logger(label: "apns-mock") { _ in LineLogHandler(format: .text, level: .notice) }
    let viewer =
      PostgreSQLAddress.isAddress(file)
      ? try schemas(adminToken: token, logger: logger)
      : InboxViewer(
        try ExportFile(file).inbox(maxBytes: try memoryLimit()), of: file == "-" ? "standard input" : file,
        adminToken: token)
    let signals = try StopSignals()
    let server = try await StartedServer.starting {
      try await AdminServer.start(
        AdminRoutes(viewer: viewer, version: Version.text), of: viewer, at: address, logger: logger)
    }
    let written: WrittenPortFile?
    do {
      written = try portFile.map { try WrittenPortFile(PortFile(viewerAt: server.address, token: token), at: $0) }
    } catch {
      await server.stop()
      throw error
    }
    announce(viewer, at: server.address)
    let following = viewer.receivesPushes ? Task { await Self.follow(viewer) } : nil
    _ = await signals.first { written?.remove() }
    following?.cancel()
    await server.stop()
    written?.remove()
    signals.ignoreFurther()
  }

  /// Opens the schemas of a URL.
  private func schemas(adminToken: String?, logger: Logger) throws -> InboxViewer {
    guard maxBytes == nil else {
      throw CommandFailure(
        .usage, "--max-bytes limits the memory for a file, but pushes stay in the database: omit it with a URL")
    }
    let store: SchemasStore
    let address: PostgreSQLAddress
    do {
      address = try PostgreSQLAddress(file, allowsPattern: true)
      store = try SchemasStore(address) { event in
        switch event {
        case .appeared(let schema): logger.notice("the schema \(schema) was added")
        case .disappeared(let schema): logger.notice("the schema \(schema) was removed")
        case .unreadable(let problem): logger.error("a schema is left out: \(problem)")
        }
      }
    } catch let error as PostgreSQLAddress.InvalidParameter {
      throw CommandFailure(
        .usage, "the URL cannot be \"\(PostgreSQLAddress.withoutSecrets(file))\": expected \(error.allowed)")
    } catch {
      throw CommandFailure(.usage, "\(error)")
    }
    let writer = RecordWriter(store, RecordWriter.Options()) { event in
      switch event {
      case .readFailed(let problem):
        logger.error("\(address.place) cannot be read: \(problem): queries are answered 503")
      case .leftOut(let problem): logger.error("\(problem): lists, statistics and findings leave it out")
      case .failed, .recovered: break
      }
    }
    let inbox = Inbox(maxRecords: .max, maxBytes: .max, writer: writer)
    inbox.analyzeNewestRecords()
    return InboxViewer(
      inbox, of: address.place,
      sources: InboxViewer.Sources(
        names: { store.names },
        problems: { (store.failure.map { ["\(address.place) cannot be read: \($0)"] } ?? []) + store.problems },
        failure: { store.failure }),
      adminToken: adminToken)
  }

  /// Notices new pushes, for waits and event streams, and changes of the schemas. Analyzes pushes for findings, so that few lists wait
  /// for that.
  private static func follow(_ viewer: InboxViewer) async {
    while !Task.isCancelled {
      try? await viewer.inbox.writer?.blocking { [inbox = viewer.inbox, rulebook = viewer.rulebook] in
        try inbox.updateFindings(by: rulebook)
      }
      try? await Task.sleep(for: .milliseconds(250))
      try? await viewer.inbox.followStore()
    }
  }

  private func memoryLimit() throws -> Int {
    do throws(InvalidSettingValue) {
      return try Value.size(maxBytes ?? "2GiB")
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: Setting.maxBytes.flag).description)
    }
  }

  private func announce(_ viewer: InboxViewer, at address: MockServer.Endpoint) {
    let locator = portFile.map { "--port-file \($0.shellQuoted)" } ?? "--admin \(address.reachable)"
    StandardStream.error.line(
      """
      apns-mock serves \(viewer.file), read-only: \(viewer.inbox.snapshot().count.counted("push"))
        admin  http://\(address)

        apns-mock ls \(locator)
      """)
  }
}
