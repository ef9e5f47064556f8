import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The port file of this process, while it is there.
struct WrittenPortFile: Sendable {
  /// Where it is, from the root: the working directory may change.
  let path: String
  private let bytes: [UInt8]

  /// Writes it.
  ///
  /// - Throws: `CommandFailure` if it cannot be written.
  init(_ content: PortFile, at path: String) throws {
    self.path = Files.absolute(path)
    bytes = content.json
    do {
      try Files.replace(self.path, with: bytes)
    } catch {
      throw CommandFailure(.usage, "\(Setting.portFile.flag): \(error)")
    }
  }

  /// Removes it, unless another server's stands there by now.
  func remove() { WholeFile(path: path).remove(ifItHolds: bytes) }
}

extension PortFile {
  /// What the clients of a server need to know.
  init(of state: ServerState) {
    self.init(
      pid: getpid(), apns: state.apnsAddresses, admin: state.adminAddress, ca: state.certificates.caPath,
      keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID, key: state.certificates.providerKeyPath,
      environment: state.configuration.environment, seed: state.seed, adminToken: state.configuration.adminToken)
  }

  /// What those who look at an export need to know.
  init(viewing state: ServerState) {
    self.init(
      pid: getpid(), apns: [], admin: state.adminAddress, ca: "", keyID: "", teamID: "", key: "",
      environment: state.configuration.environment, seed: state.seed, adminToken: state.configuration.adminToken,
      isView: true)
  }
}
