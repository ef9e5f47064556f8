import ArgumentParser
import MockAPNS

/// The option for the certificate folder.
struct FolderFlags: ParsableArguments {
  @Option(name: .long, help: "The folder of certificates and keys. [APNS_MOCK_CERTS] (default: Certs)")
  var certs: String?
}

/// The files with which a client and a server trust each other: from the port file, else from the environment variables
/// set by `exec`, else from the certificate folder.
struct ServerFiles: Sendable {
  /// The path of the CA in PEM.
  let ca: String
  /// The path of the provider key in PEM (PKCS#8), its key id and team id.
  let key: String
  let keyID: String
  let teamID: String

  /// Locates the files.
  ///
  /// - Parameter certs: The folder specified by a flag, which overrides all other sources.
  init(certs: String?, portFile: PortFile?, environment: [String: String]) {
    let folder = certs ?? environment.given(Setting.certs.variable) ?? Configuration().certificates
    let folderKey = folder + "/AuthKey_\(CertificateFolder.keyID).p8"
    if certs == nil, let portFile {
      (ca, key, keyID, teamID) = (portFile.ca, portFile.key, portFile.keyID, portFile.teamID)
    } else if certs == nil {
      ca = environment.given(Variables.ca) ?? folder + "/ca.pem"
      key = environment.given(Variables.key) ?? folderKey
      keyID = environment.given(Variables.keyID) ?? CertificateFolder.keyID
      teamID = environment.given(Variables.teamID) ?? CertificateFolder.teamID
    } else {
      (ca, key, keyID, teamID) = (folder + "/ca.pem", folderKey, CertificateFolder.keyID, CertificateFolder.teamID)
    }
  }
}
