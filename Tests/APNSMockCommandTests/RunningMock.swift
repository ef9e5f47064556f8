import AdminAPI
import ArgumentParser
import MockAPNS
import TLSEngine

@testable import APNSMockCommand

/// A server with its admin listener on free ports, with certificates of its own, for one test.
struct RunningMock: Sendable {
  let server: MockServer
  /// Its admin listener.
  let admin: Endpoint

  /// Where providers connect.
  var apns: Endpoint { server.addresses[0] }
  var certificates: CertificateFolder { server.state.certificates }

  /// Runs `body` beside a fresh server and stops it afterwards.
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

  /// What its admin API tells.
  func known() async throws -> KnownServer {
    let running = try RunningServer(ServerFlags.parse(["--admin", admin.description]), environment: [:])
    return try await KnownServer(running, isNamed: true, patience: .seconds(10))
  }

  /// A provider token of the folder's key, by this machine's clock unless it is said how old it is.
  func credential(
    keyID: String = CertificateFolder.keyID, teamID: String = CertificateFolder.teamID, key: String? = nil,
    age: Int64 = 0
  ) throws -> Credential {
    try Credential(
      keyAt: key ?? certificates.providerKeyPath, keyID: keyID, teamID: teamID, now: ServerClock().now - age * 1000)
  }

  /// What `doctor` does with this server, unless `change` says otherwise.
  func examine(
    _ credential: Credential? = nil, isKnown: Bool = true, _ change: (inout Examination) -> Void = { _ in }
  ) async throws -> Diagnosis {
    let own = try credential ?? self.credential()
    var examination = Examination(
      endpoint: apns, serverName: "localhost", authority: certificates.caPath, credential: own, topic: own.topic,
      known: isKnown ? try await known() : nil)
    change(&examination)
    return Diagnosis(findings: try await examination.findings())
  }
}

/// Findings, as tests look at them.
struct Diagnosis: CustomStringConvertible {
  let findings: [DoctorFinding]

  subscript(check: DoctorCheck) -> DoctorFinding? { findings.first { $0.check == check } }

  /// What is wrong.
  var failed: [DoctorCheck] { findings.filter { $0.result == .failed }.map(\.check) }
  /// What was not looked at.
  var skipped: [DoctorCheck] { findings.filter { $0.result == .skipped }.map(\.check) }

  func repair(_ check: DoctorCheck) -> String { self[check]?.repair ?? "" }
  func seen(_ check: DoctorCheck) -> String { self[check]?.seen ?? "" }

  var description: String { findings.map { $0.text(coloured: false) }.joined(separator: "\n") }
}
