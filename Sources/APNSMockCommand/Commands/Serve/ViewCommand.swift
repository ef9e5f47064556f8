import AdminAPI
import ArgumentParser
import ClientCommands
import Inbox
import Logging
import MockAPNS
import Notation

/// `apns-mock view`
struct ViewCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "view", abstract: "View an exported inbox, for example of a failed test run.",
    discussion: """
      Serves the file as a read-only inbox, for the web UI and all commands that read pushes. Exports are created by \
      export, --export-on-exit and exec --export.
      """)

  @Argument(help: "The export, one record per line or an array; - for standard input.")
  var file: String

  @Option(
    help: """
      The listener for the admin API and web UI, HOST:PORT; port 0 selects a free one. [APNS_MOCK_ADMIN] \
      (default: 127.0.0.1:8197)
      """)
  var admin: String?

  @Option(help: "Write the address to this file when ready.")
  var portFile: String?

  @Option(help: "The memory limit for the pushes, such as 512MiB.")
  var maxBytes = "2GiB"

  func run() async throws {
    let environment = Environment.variables
    let address = try ServerLocation.adminEndpoint(flag: admin, environment)
    let token = try ServerLocation.adminToken(environment)
    let viewer = InboxViewer(try ExportFile(file).inbox(maxBytes: try memoryLimit()), of: name, adminToken: token)
    let signals = await StopSignals()
    let logger = Logger(label: "apns-mock") { _ in LineLogHandler(format: .text, level: .warning) }
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
    announce(viewer.inbox, at: server.address)
    _ = await signals.first { written?.remove() }
    await server.stop()
    written?.remove()
    signals.ignoreFurther()
  }

  private var name: String { file == "-" ? "standard input" : file }

  private func memoryLimit() throws -> Int {
    do throws(InvalidSettingValue) {
      return try Value.size(maxBytes)
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: Setting.maxBytes.flag).description)
    }
  }

  private func announce(_ inbox: Inbox, at address: Endpoint) {
    let locator = portFile.map { "--port-file \($0.shellQuoted)" } ?? "--admin \(address.reachable)"
    StandardStream.error.line(
      """
      apns-mock serves \(name), read-only: \(inbox.snapshot().count) pushes
        admin  http://\(address)

        apns-mock ls \(locator)
      """)
  }
}
