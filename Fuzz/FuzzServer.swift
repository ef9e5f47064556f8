import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Foundation
import APNSMockInbox
import Logging
import APNSMockTLSEngine

@testable import MockAPNS

/// A server without listeners: certificates, keys, and a new state for each input.
struct FuzzServer {
  let folder: CertificateFolder
  private let chain: ServerChain
  /// The TLS contexts of a provider without and one with a client certificate.
  let clientContexts: (TLSContext, TLSContext)
  let key: ES256PrivateKey
  let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
  /// The built-in profiles. Parsing one takes a thousand times as long as activating it.
  private let profiles: [String: SelectedProfile]
  private let configuration: MockServer.Configuration

  /// Uses the certificate folder in `FUZZ_CERTS`, which is kept for the next run.
  init() throws {
    folder = try CertificateFolder.open(path: ProcessInfo.processInfo.environment["FUZZ_CERTS"] ?? ".build/fuzz/certs")
    chain = try ServerChain(folder: folder, clientAuthorities: [])
    clientContexts = (
      try TLSContext(clientTrusting: [folder.caPath]),
      try TLSContext(clientTrusting: [folder.caPath], certificate: (folder.clientPath, folder.clientKeyPath))
    )
    key = try ES256PrivateKey(pem: String(contentsOfFile: folder.providerKeyPath, encoding: .utf8))
    var configuration = MockServer.Configuration()
    let library = configuration.profiles
    profiles = try library.names.reduce(into: [:]) { profiles, name in
      guard let source = library.source(named: name) else { return }
      profiles[name] = SelectedProfile(source: source, profile: try library.profile(of: source).profile)
    }
    configuration.profile = profiles["healthy"]
    configuration.seed = 7
    configuration.maxRecords = 1000
    self.configuration = configuration
  }

  /// Returns the state of a newly started server.
  func state(rules: RuleMode = .apple) -> ServerState {
    var configuration = configuration
    configuration.rules = rules
    return ServerState(configuration: configuration, certificates: folder, chain: chain, logger: logger)
  }

  /// Returns a built-in profile.
  func profile(_ name: String) -> SelectedProfile? { profiles[name] }

  /// Returns a provider token that the server trusts.
  func token(issuedAt: Int64) throws -> String {
    try ProviderTokenRequest(keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID, issuedAt: issuedAt)
      .signed(with: key)
  }
}
