import Foundation
import MockAPNS
import Testing

@Suite struct ProviderTests {
  @Test func welcomePushIsAccepted() async throws {
    try await withServer { server, provider in
      let status = try provider.send(to: "cd34", title: "Welcome")
      #expect(status == "200")

      let pushes = try server.pushes(matching: "topic:com.example.app payload./aps/alert:Welcome")
      #expect(pushes.map(\.isAccepted) == [true])
    }
  }

  @Test func pushToUnregisteredDeviceIsRejected() async throws {
    try await withServer { server, provider in
      try server.unregister(device: "ab12")
      server.advanceClock(by: .seconds(60))

      let status = try provider.send(to: "ab12", title: "Welcome")
      #expect(status == "410")
      #expect(try server.pushes().first?.reason == "Unregistered")
    }
  }

  @Test func serviceIsUnavailable() async throws {
    try await withServer { server, provider in
      try server.useProfile("flaky-503?rate=1", seed: 7)
      #expect(try provider.send(to: "cd34", title: "Welcome") == "503")

      server.pauseFaults()
      #expect(try provider.send(to: "cd34", title: "Welcome") == "200")
      try await server.verify(
        #"{"expect": [{"match": "token:cd34", "count": {"exactly": 2}}], "no_findings": ["retried-410"]}"#)
    }
  }

  /// Runs `body` with a server of its own, on a free port.
  private func withServer(_ body: (MockServer, Provider) async throws -> Void) async throws {
    let server = try await MockServer.start()
    do {
      try await body(server, Provider(settings: server.settings))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }
}

/// Sends pushes with curl and the provider certificate. Replace it with your own code.
struct Provider {
  let settings: ClientSettings

  /// Sends an alert and returns the status of the response.
  func send(to deviceToken: String, title: String) throws -> String {
    let curl = Process()
    curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    curl.arguments = [
      "curl", "--silent", "--http2", "--output", "/dev/null", "--write-out", "%{http_code}",
      "--cacert", settings.caPath, "--cert", settings.certificatePath, "--key", settings.certificateKeyPath,
      "--header", "apns-topic: \(settings.topic)", "--header", "apns-push-type: alert",
      "--data", #"{"aps":{"alert":"\#(title)"}}"#, "\(settings.url)/3/device/\(deviceToken)",
    ]
    let output = Pipe()
    curl.standardOutput = output
    try curl.run()
    curl.waitUntilExit()
    return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }
}
