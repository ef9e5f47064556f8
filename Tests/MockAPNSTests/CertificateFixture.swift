import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport

@testable import MockAPNS

/// A folder of certificates for one test, and the openssl program as an independent check of its contents.
struct CertificateFixture {
  /// A fixed current time in milliseconds since 1970, close to the machine's time, which openssl uses.
  let now = Int64(Date().timeIntervalSince1970) * 1000
  private let folder: TemporaryFolder
  /// The path of the certificate folder; `open` creates it.
  let path: String

  static let day: Int64 = 86_400_000

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("certificates")
  }

  /// Opens the folder as a machine named `host` would, `days` days from now.
  @discardableResult
  func open(
    extraNames: [String] = [], host: String? = "build-7.internal", inDays days: Int64 = 0, newAuthority: Bool = false
  ) throws -> CertificateFolder {
    try CertificateFolder.open(
      path: path, extraNames: extraNames, newAuthority: newAuthority, hostName: host, now: now + days * Self.day)
  }

  func file(_ name: String) -> URL { URL(fileURLWithPath: path).appendingPathComponent(name) }

  func text(_ name: String) throws -> String { try String(contentsOf: file(name), encoding: .utf8) }

  func write(_ name: String, _ text: String) throws { try Data(text.utf8).write(to: file(name)) }

  func delete(_ name: String) throws { try FileManager.default.removeItem(at: file(name)) }

  /// Returns the bytes of every file by name. `Data(contentsOf:)` leaks its buffer for empty files.
  func contents() throws -> [String: [UInt8]] {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    return Dictionary(uniqueKeysWithValues: try names.map { ($0, try WholeFile(path: file($0).path).bytes()) })
  }

  /// Replaces `ca.pem` by a certificate with the same key and subject and, as in earlier versions, with IP addresses
  /// among its name constraints; appends it to the server's certificate too.
  func writeOldAuthority() async throws {
    try await openssl(
      "req", "-x509", "-new", "-key", "ca-key.pem", "-days", "365", "-out", "ca.pem",
      "-subj", "/O=apns-mock/CN=apns-mock CA of build-7.internal", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
      "-addext",
      "nameConstraints=critical,permitted;DNS:localhost,permitted;DNS:push.apple.com,permitted;DNS:apns-mock,"
        + "permitted;DNS:internal,permitted;DNS:made.example,permitted;IP:127.0.0.0/255.0.0.0,"
        + "permitted;IP:0:0:0:0:0:0:0:1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF")
    try write("server.pem", certificate("server.pem").pem + text("ca.pem"))
  }

  /// Returns the permission bits of a file.
  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: file(name).path)[.posixPermissions] as? Int
  }

  /// Returns the first certificate of a PEM file.
  func certificate(_ name: String) throws -> X509Certificate { try X509Certificate.chain(pem: text(name))[0] }

  /// Runs `openssl` in the folder and returns its exit status and its combined output.
  @discardableResult
  func openssl(_ arguments: String...) async throws -> ChildProgram.Outcome {
    try await OpenSSLTool.run(arguments, in: path)
  }
}
