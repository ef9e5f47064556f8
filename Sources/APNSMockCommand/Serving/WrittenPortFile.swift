import MockAPNS

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The port file written by this process.
struct WrittenPortFile: Sendable {
  /// The absolute path, because the working directory may change.
  let path: String
  private let bytes: [UInt8]

  /// Writes the file.
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

  /// Removes the file, unless another server has replaced it.
  func remove() { WholeFile(path: path).remove(ifItHolds: bytes) }
}

extension PortFile {
  /// Creates the content for a server.
  init(of state: ServerState) {
    self.init(
      pid: getpid(), apns: state.apnsAddresses, admin: state.adminAddress, ca: state.certificates.caPath,
      keyID: CertificateFolder.keyID, teamID: CertificateFolder.teamID, key: state.certificates.providerKeyPath,
      environment: state.configuration.environment, seed: state.seed, adminToken: state.configuration.adminToken)
  }

  /// Creates the content for a `view` of an export.
  init(viewing state: ServerState) {
    self.init(
      pid: getpid(), apns: [], admin: state.adminAddress, ca: "", keyID: "", teamID: "", key: "",
      environment: state.configuration.environment, seed: state.seed, adminToken: state.configuration.adminToken,
      isView: true)
  }
}
