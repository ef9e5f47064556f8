import Foundation
import APNSMockTestSupport

@testable import APNSMockTLSEngine

/// An authority with a server and a provider certificate, created for each test that uses them.
struct SampleCertificates {
  static let day: Int64 = 86_400_000
  /// The current time in milliseconds since 1970, in whole seconds.
  static var now: Int64 { Int64(Date().timeIntervalSince1970) * 1000 }

  let authority: CertificateAuthority
  let server: CertificateAuthority.Issued
  let provider: CertificateAuthority.Issued
  let valid: ClosedRange<Int64>

  init(serverNames: [String] = ["localhost", "127.0.0.1", "::1"], topics: [String] = ["com.example.app"]) throws {
    let now = Self.now
    valid = (now - Self.day)...(now + 100 * Self.day)
    var permitted = NameConstraints()
    for name in ["localhost", "test"].compactMap({ CertificateName($0) }) { permitted.add(name) }
    authority = try CertificateAuthority(commonName: "Sample CA", permitted: permitted, valid: valid)
    server = try authority.issueServer(names: serverNames.compactMap { CertificateName($0) }, valid: valid)
    provider = try authority.issueProvider(
      CertificateAuthority.ProviderRequest(topics: topics, teamID: "MOCKTEAM01"), valid: valid)
  }

  /// Writes the certificates into the folder of the openssl program.
  func write(to tool: OpenSSLTool) throws {
    try tool.write("ca.pem", try authority.certificate.pem)
    try tool.write("server.pem", try server.certificate.pem)
    try tool.write("client.pem", try provider.certificate.pem)
  }
}
