import AdminAPI
import ArgumentParser
import MockAPNS
import TLSEngine

@testable import APNSMockCommand

/// A server with its admin listener on free ports and its own certificates, for one test.
struct RunningMock: Sendable {
  let server: MockServer
  /// The address of the admin listener.
  let admin: Endpoint

  /// The address to which providers connect.
  var apns: Endpoint { server.addresses[0] }
  var certificates: CertificateFolder { server.state.certificates }

  /// Runs `body` with a new server and stops it afterwards.
  static func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (RunningMock) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    var configuration = Configuration()
    configuration.apns = [Endpoint(host: "127.0.0.1", port: 0)]
    configuration.certificates = folder.path
    configuration.threads = 1
    change(&configuration)
    let server = try await MockServer.start(configuration)
    let admin = try await AdminServer.start(
      server.state, at: Endpoint(host: "127.0.0.1", port: 0), version: Version.text)
    server.state.phase = .ready
    do {
      try await body(RunningMock(server: server, admin: admin.address))
    } catch {
      await admin.stop()
      await server.stop()
      throw error
    }
    await admin.stop()
    await server.stop()
  }

  /// Returns what the server's admin API reports.
  func known() async throws -> KnownServer {
    let running = try RunningServer(ServerFlags.parse(["--admin", admin.description]), environment: [:])
    return try await KnownServer(running, isNamed: true, timeout: .seconds(10))
  }

  /// Returns a provider token of the folder's key, issued `age` seconds before this machine's current time.
  func credential(
    keyID: String = CertificateFolder.keyID, teamID: String = CertificateFolder.teamID, key: String? = nil,
    age: Int64 = 0
  ) throws -> Credential {
    try Credential(
      keyAt: key ?? certificates.providerKeyPath, keyID: keyID, teamID: teamID, now: ServerClock().now - age * 1000)
  }

  /// Returns the diagnosis of `doctor` for this server; `change` modifies the examination.
  func examine(
    _ credential: Credential? = nil, isKnown: Bool = true, _ change: (inout Diagnosis) -> Void = { _ in }
  ) async throws -> DiagnosisReport {
    let own = try credential ?? self.credential()
    var diagnosis = Diagnosis(
      endpoint: apns, serverName: "localhost", authority: certificates.caPath, credential: own, topic: own.topic,
      known: isKnown ? try await known() : nil)
    change(&diagnosis)
    try await diagnosis.run()
    return DiagnosisReport(findings: diagnosis.findings)
  }
}

/// The findings of one examination, by check.
struct DiagnosisReport: CustomStringConvertible {
  let findings: [DoctorFinding]

  subscript(check: DoctorCheck) -> DoctorFinding? { findings.first { $0.check == check } }

  /// The checks that failed.
  var failed: [DoctorCheck] { findings.filter { $0.result == .failed }.map(\.check) }
  /// The checks that were skipped.
  var skipped: [DoctorCheck] { findings.filter { $0.result == .skipped }.map(\.check) }

  func repair(_ check: DoctorCheck) -> String { self[check]?.repair ?? "" }
  func seen(_ check: DoctorCheck) -> String { self[check]?.seen ?? "" }

  var description: String { findings.map { $0.text(colored: false) }.joined(separator: "\n") }
}
