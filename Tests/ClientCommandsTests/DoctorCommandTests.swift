import APNSMockAdminAPI
import ArgumentParser
import APNSMockInbox
import MockAPNS
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands
import APNSMockNotation

/// How `apns-mock doctor` finds the server to examine, and its exit codes.
@Suite struct DoctorCommandTests {
  /// Returns the exit code of `doctor` with these arguments.
  private static func status(_ arguments: [String]) async throws -> Int32 {
    do {
      try await DoctorCommand.parse(arguments + ["--json"]).run()
      return 0
    } catch let code as ExitCode {
      return code.rawValue
    } catch let failure as CommandFailure {
      return failure.status.rawValue
    }
  }

  @Test func exitCodesDistinguishFailures() async throws {
    try await TestServer.run { mock in
      let flags = ["--admin", mock.admin.address.description, "--certs", mock.certificates.path, "--timeout", "1m"]
      let client = mock.certificates.clientPath
      let cases: [(arguments: [String], status: Int32)] = [
        ([], 0), (["--cert", client], 0), (["--apns", "\(mock.apns)", "--server-name", "push.example.com"], 1),
        (["--topic", "a b"], 1), (["--apns", "127.0.0.1:1"], 4), (["--apns", "nowhere.invalid:2197"], 4),
        (["--apns", "nowhere"], 2), (["--ca", mock.certificates.serverKeyPath], 2), (["--ca", "/nowhere/ca.pem"], 2),
        (["--key", "/nowhere/key.p8"], 2), (["--cert", client, "--cert-key", mock.certificates.serverKeyPath], 2),
      ]
      for (arguments, expected) in cases {
        let status = try await Self.status(flags + arguments)
        #expect(status == expected, "\(arguments)")
      }
      #expect(try mock.state.inbox.record(seq: 1)?.accepted == true, "the address comes from the admin API")
    }
  }

  @Test(arguments: [
    ["--token", "a.b.c", "--key", "k.p8"], ["--key", "k.p8", "--cert", "c.pem"], ["--cert-key", "k.pem"],
    ["--server-name", ""], ["--timeout", "soon"], ["--timeout", "0s"],
  ])
  func contradictoryOptionsAreUsageErrors(arguments: [String]) {
    #expect(throws: (any Error).self) { try DoctorCommand.parse(arguments) }
  }

  @Test func findingsAreEscapedAndIndented() {
    let failed = CheckResult(.name, .failed("bad\nname", repair: "do\u{1B}[2Jthis"))
    #expect(failed.text(colored: false) == "✗ name      bad\\nname\n            → do\\u{1B}[2Jthis")
    #expect(CheckResult(.resolve, .passed("ok")).text(colored: true) == "\u{1B}[32m✓\u{1B}[0m DNS       ok")
    #expect(CheckResult(.push, .skipped("why")).text(colored: true) == "– push      why")
    var writer = JSONWriter()
    writer.object(failed.write)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self)
        == #"{"check":"name","result":"failed","seen":"bad\\nname","repair":"do\\u{1B}[2Jthis"}"#)
  }

  @Test func serverIsFoundByItsPort() throws {
    let known = ServerDetails(
      admin: MockServer.Endpoint(host: "127.0.0.1", port: 1),
      apns: [MockServer.Endpoint(host: "127.0.0.1", port: 2197)],
      environment: "sandbox", clockAhead: 0, isFrozen: false, keys: [], authority: nil, isNamed: false)
    #expect(known.listens(on: MockServer.Endpoint(host: "push.internal", port: 2197)))
    #expect(!known.listens(on: MockServer.Endpoint(host: "127.0.0.1", port: 3197)))
  }
}
