import ArgumentParser
import MockAPNS

/// By what `doctor` pushes: a provider token, a key to sign one with, or a provider certificate.
struct DoctorCredentialFlags: ParsableArguments {
  @Option(name: .long, help: "Push with this provider token (a JWT).")
  var token: String?

  @Option(name: .long, help: "Sign a provider token with this key, a .p8 file. (default: the server's)")
  var key: String?

  @Option(name: .long, help: "The key's id. (default: from the file's name, or the server's)")
  var keyID: String?

  @Option(name: .long, help: "The team's id. (default: the server's)")
  var teamID: String?

  @OptionGroup var certificate: ProviderCertificateFlags

  func validate() throws {
    let given = [("--token", token), ("--key", key), ("--cert", certificate.cert)].filter { $0.1 != nil }.map(\.0)
    guard given.count < 2 else { throw ValidationError("Push by one of them: \(given.joined(separator: ", "))") }
  }

  /// What was given, or what the server's files hold; nil if they hold nothing.
  func chosen(_ files: ServerFiles) throws -> Credential? {
    if let token { return try Credential(jwt: token) }
    if let files = try certificate.files() { return try Credential(files) }
    let keyID = keyID ?? key.flatMap(AppleKeyFile.keyID) ?? files.keyID
    let path = key ?? files.key
    if key == nil, !WholeFile(path: path).exists { return nil }
    return try Credential(keyAt: path, keyID: keyID, teamID: teamID ?? files.teamID, now: ServerClock().now)
  }
}
