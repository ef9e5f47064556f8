import ArgumentParser
import MockAPNS

/// The credential that `doctor` uses: a provider token, a key to sign one with, or a provider certificate.
struct DoctorCredentialFlags: ParsableArguments {
  @Option(name: .long, help: "The provider token (a JWT) to push with.")
  var token: String?

  @Option(name: .long, help: "The key to sign a provider token with, a .p8 file. (default: the server's)")
  var key: String?

  @Option(name: .long, help: "The key id. (default: from the file name, or the server's)")
  var keyID: String?

  @Option(name: .long, help: "The team id. (default: the server's)")
  var teamID: String?

  @OptionGroup var certificate: ProviderCertificateFlags

  func validate() throws {
    let given = [("--token", token), ("--key", key), ("--cert", certificate.cert)].filter { $0.1 != nil }.map(\.0)
    guard given.count < 2 else { throw ValidationError("Specify only one of \(given.joined(separator: ", "))") }
  }

  /// Returns the specified credential, or one from the server's files; nil if there is none.
  func chosen(_ files: ServerFiles) throws -> Credential? {
    if let token { return try Credential(jwt: token) }
    if let files = try certificate.files() { return try Credential(files) }
    let keyID = keyID ?? key.flatMap(AppleKeyFile.keyID) ?? files.keyID
    let path = key ?? files.key
    if key == nil, !WholeFile(path: path).exists { return nil }
    return try Credential(keyAt: path, keyID: keyID, teamID: teamID ?? files.teamID, now: ServerClock().now)
  }
}
