#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif
internal import TLSEngine

/// The folder of certificates and keys (`Certs/`), complete: everything in it exists and fits together.
///
/// What each file is stands in `Certs/README.md`.
public struct CertificateFolder: Sendable {
  /// The folder, absolute and without symbolic links.
  public let path: String
  /// The certificate authority in PEM, for whoever has to trust it.
  public let caPEM: String
  /// SHA-256 of the authority's certificate, as 64 lower-case hexadecimal digits.
  public let caFingerprint: String
  /// The provider keys that `provider.yaml` names, in its order.
  public let providerKeys: [ProviderKeyEntry]
  /// What was made or renewed just now, and what deserves a look; a line each, for the log.
  public let notices: [String]

  /// The id of the provider key that is made here.
  public static let keyID = "MOCKKEY001"
  /// The team of the provider key and the certificates that are made here.
  public static let teamID = "MOCKTEAM01"
  /// The first topic of the provider certificate that is made here, its `UID`.
  public static let topic = "com.example.app"
  /// All topics of the provider certificate that is made here: an app's, as Apple's certificates have them (APNS.md
  /// section 4.1).
  public static let topics = [topic, topic + ".voip", topic + ".complication"]
  /// The password of every `.p12` file made here.
  public static let password = "mock"

  /// The authority's certificate, which clients trust.
  public var caPath: String { path + "/ca.pem" }
  /// The server's certificate followed by the authority's.
  public var serverPath: String { path + "/server.pem" }
  /// The server's private key.
  public var serverKeyPath: String { path + "/server-key.pem" }
  /// The provider key, shaped as Apple's download.
  public var providerKeyPath: String { path + "/AuthKey_\(Self.keyID).p8" }
  /// The provider certificate alone.
  public var clientPath: String { path + "/client.pem" }
  /// The provider certificate's private key.
  public var clientKeyPath: String { path + "/client-key.pem" }
  /// Provider certificate and key in one file, under `password`.
  public var clientP12Path: String { path + "/client.p12" }
  /// The list of trusted provider keys, which people edit.
  public var providerKeysPath: String { path + "/provider.yaml" }

  /// Opens a folder, and makes whatever is missing in it.
  ///
  /// What exists is kept, with these exceptions: a certificate that ends within 30 days is made anew, and so is a server
  /// certificate without one of the names it should have; an authority with IP addresses among its name constraints is
  /// re-issued with the same key and subject; certificates other than the leaf are removed from `client.pem` and
  /// `client.p12`.
  ///
  /// - Parameters:
  ///   - path: the folder; made if there is none.
  ///   - extraNames: host names and addresses the server certificate bears besides the usual ones (`--san`).
  ///   - newAuthority: makes a new certificate authority and new certificates in place of the existing ones. Whoever
  ///     trusted the old one must be given the new one. The provider key stays.
  /// - Throws: `CertificateFolderError`, also for a name outside what the existing authority may vouch for.
  public static func open(
    path: String, extraNames: [String] = [], newAuthority: Bool = false
  ) throws -> CertificateFolder {
    try open(
      path: path, extraNames: extraNames, newAuthority: newAuthority, hostName: currentHostName, now: currentTime)
  }

  /// The same with the machine's name and time given (milliseconds since 1970).
  static func open(
    path: String, extraNames: [String], newAuthority: Bool, hostName: String?, now: Int64
  ) throws -> CertificateFolder {
    let path = try makeFolder(path)
    var setup = CertificateFolderSetup(path: path, now: now, names: try ServerNames(extra: extraNames, host: hostName))
    return try FolderLock.holding(path) {
      try CertificateFolderError.wrapping {
        let authority = try setup.authority(new: newAuthority)
        try setup.server(authority, renew: newAuthority)
        try setup.providerKey()
        try setup.client(authority, renew: newAuthority)
        let keys = try setup.providerKeys()
        return CertificateFolder(
          path: path, caPEM: try setup.pem(of: authority.certificate), caFingerprint: authority.certificate.fingerprint,
          providerKeys: keys, notices: setup.notices)
      }
    }
  }

  /// Makes the folder and those above it, and finds its absolute path.
  private static func makeFolder(_ path: String) throws -> String {
    var partial = path.hasPrefix("/") ? "" : "."
    var failure: Int32 = 0
    for part in path.split(separator: "/") {
      partial += "/" + part
      // The first failure is the reason: below what is not there nothing can be made.
      if mkdir(partial, 0o755) != 0, errno != EEXIST, failure == 0 { failure = errno }
    }
    guard let resolved = realpath(path.isEmpty ? "." : path, nil) else {
      let reason = String(cString: strerror(failure == 0 ? errno : failure))
      throw CertificateFolderError(
        place: path, problem: "the folder cannot be made: \(reason)", repair: "name another one with --certs")
    }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The machine's name, if the system tells one.
  static var currentHostName: String? {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return nil }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The machine's time, not the server's settable one: clients compare certificates with their own clocks.
  static var currentTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
