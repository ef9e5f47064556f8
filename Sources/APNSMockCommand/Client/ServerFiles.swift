import ArgumentParser
import MockAPNS

/// The flag for the folder of certificates and keys.
struct FolderFlags: ParsableArguments {
  @Option(name: .long, help: "The folder of certificates and keys. [APNS_MOCK_CERTS] (default: Certs)")
  var certs: String?
}

/// What a client needs to be trusted by a server, and to trust it: from the port file where there is one, else from what
/// `exec` put into the environment, else from the folder of certificates.
struct ServerFiles: Sendable {
  /// The CA in PEM.
  let ca: String
  /// The provider key in PEM (PKCS#8), and its two ids.
  let key: String
  let keyID: String
  let teamID: String

  /// - Parameter certs: the folder named by a flag, which wins over everything.
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
