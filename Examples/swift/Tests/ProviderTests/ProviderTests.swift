import APNSRules
import Foundation
import Inbox
import MockAPNS
import Testing

@Suite struct ProviderTests {
  @Test func welcomePushIsAccepted() async throws {
    try await withServer { server, provider in
      let status = try provider.send(to: "cd34", title: "Welcome")
      #expect(status == "200")

      let query = try PageQuery([
        (name: "topic", value: "com.example.app"), (name: "q", value: "payload./aps/alert:Welcome"),
      ])
      let pushes = server.state.inbox.snapshot().page(query).items
      #expect(pushes.count == 1)
      #expect(pushes.first?.accepted == true)
    }
  }

  @Test func pushToUnregisteredDeviceIsRejected() async throws {
    try await withServer { server, provider in
      server.state.devices.update {
        $0.set(Device(token: "ab12", state: .unregistered, since: server.state.clock.now))
      }
      server.state.clock.advance(by: 60_000)  // milliseconds

      let status = try provider.send(to: "ab12", title: "Welcome")
      #expect(status == "410")
      #expect(server.state.inbox.record(seq: 1)?.served.reason == .unregistered)
    }
  }

  /// Runs `body` with a server on a free port whose certificates are in a temporary folder.
  private func withServer(_ body: (MockServer, Provider) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    var configuration = Configuration()
    configuration.apns = [Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder.path
    let server = try await MockServer.start(configuration)
    do {
      try await body(server, Provider(port: server.addresses[0].port, certificates: folder))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }
}

/// Sends pushes with curl and the provider certificate. Replace it with your own code.
struct Provider {
  let port: Int
  let certificates: URL

  /// Sends an alert and returns the status of the response.
  func send(to deviceToken: String, title: String) throws -> String {
    let curl = Process()
    curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    curl.arguments = [
      "curl", "--silent", "--http2", "--output", "/dev/null", "--write-out", "%{http_code}",
      "--cacert", certificates.appending(path: "ca.pem").path,
      "--cert", certificates.appending(path: "client.pem").path,
      "--key", certificates.appending(path: "client-key.pem").path,
      "--header", "apns-topic: com.example.app", "--header", "apns-push-type: alert",
      "--data", #"{"aps":{"alert":"\#(title)"}}"#,
      "https://localhost:\(port)/3/device/\(deviceToken)",
    ]
    let output = Pipe()
    curl.standardOutput = output
    try curl.run()
    curl.waitUntilExit()
    return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }
}
