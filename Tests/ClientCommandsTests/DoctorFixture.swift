import APNSMockAdminAPI
import ArgumentParser
import MockAPNS
import APNSMockTLSEngine
import APNSMockTestSupport

@testable import APNSMockClientCommands

/// The parts of `doctor`'s examination that a test changes.
extension TestServer {
  /// Returns what the server's admin API reports.
  func known() async throws -> ServerDetails {
    let running = try ServerLocation(ServerFlags.parse(["--admin", admin.address.description]), environment: [:])
    return try await ServerDetails(running, isNamed: true, timeout: .seconds(60))
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
    return DiagnosisReport(results: diagnosis.results)
  }
}

/// The results of one diagnosis, by check.
struct DiagnosisReport: CustomStringConvertible {
  let results: [CheckResult]

  subscript(check: DoctorCheck) -> CheckResult? { results.first { $0.check == check } }

  /// The checks that failed.
  var failed: [DoctorCheck] { results.filter { $0.status == .failed }.map(\.check) }
  /// The checks that were skipped.
  var skipped: [DoctorCheck] { results.filter { $0.status == .skipped }.map(\.check) }

  func repair(_ check: DoctorCheck) -> String { self[check]?.repair ?? "" }
  func seen(_ check: DoctorCheck) -> String { self[check]?.seen ?? "" }

  var description: String { results.map { $0.text(colored: false) }.joined(separator: "\n") }
}
