import AdminAPI
import ArgumentParser
import MockAPNS
import TLSEngine
import TestSupport

@testable import APNSMockCommand

/// The parts of `doctor`'s examination that a test changes.
extension TestServer {
  /// Returns what the server's admin API reports.
  func known() async throws -> KnownServer {
    let running = try RunningServer(ServerFlags.parse(["--admin", admin.address.description]), environment: [:])
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
