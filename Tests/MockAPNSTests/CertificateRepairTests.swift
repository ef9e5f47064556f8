import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// Errors in the folder: one line with the place, the problem and the remedy.
@Suite struct CertificateRepairTests {
  /// A change to a complete folder, and the expected error.
  struct Damage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let location: String
    let problem: String
    let repair: String
    let act: @Sendable (CertificateFixture) async throws -> Void

    init(
      _ description: String, at location: String, _ problem: String, repair: String,
      _ act: @escaping @Sendable (CertificateFixture) async throws -> Void
    ) {
      testDescription = description
      self.location = location
      self.problem = problem
      self.repair = repair
      self.act = act
    }
  }

  private static let authority = "apns-mock certs --new-ca"

  private static func overwrite(_ name: String, _ text: String) -> @Sendable (CertificateFixture) async throws -> Void {
    { try $0.write(name, text) }
  }

  private static func exchange(_ name: String, by other: String) -> @Sendable (CertificateFixture) async throws -> Void
  {
    { try $0.write(name, $0.text(other)) }
  }

  static let damages = [
    Damage("CA lost", at: "ca.pem", "is missing", repair: authority) { try $0.delete("ca.pem") },
    Damage("CA is garbage", at: "ca.pem", "not a PEM text", repair: authority, overwrite("ca.pem", "x")),
    Damage("CA is empty", at: "ca.pem", "empty", repair: authority, overwrite("ca.pem", "")),
    Damage("CA is a leaf", at: "ca.pem", "is not a certificate authority's", repair: authority) {
      try $0.write("ca.pem", try $0.certificate("client.pem").pem)
    },
    Damage(
      "CA key of another", at: "ca-key.pem", "does not belong to ca.pem", repair: authority,
      exchange("ca-key.pem", by: "server-key.pem")),
    Damage("CA key is garbage", at: "ca-key.pem", "not a PEM text", repair: authority, overwrite("ca-key.pem", "x")),
    Damage(
      "server key of another", at: "server-key.pem", "does not belong to server.pem", repair: "remove",
      exchange("server-key.pem", by: "client-key.pem")),
    Damage(
      "server key is a certificate", at: "server-key.pem", "a certificate", repair: "remove",
      exchange("server-key.pem", by: "server.pem")),
    Damage(
      "server certificate is a key", at: "server.pem", "a private key", repair: "remove",
      exchange("server.pem", by: "server-key.pem")),
    Damage("server certificate from elsewhere", at: "server.pem", "was not issued by ca.pem but by", repair: "remove") {
      try await $0.openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=corporate",
        "-keyout", "server-key.pem", "-out", "server.pem")
    },
    Damage("client key is RSA", at: "client-key.pem", "RSA", repair: "remove") {
      try await $0.openssl(
        "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "client-key.pem")
    },
    Damage(
      "client certificate is damaged", at: "client.pem", "damaged", repair: "remove",
      overwrite("client.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
    Damage(
      "provider key is garbage", at: "AuthKey_MOCKKEY001.p8", "not a PEM text", repair: "remove it",
      overwrite("AuthKey_MOCKKEY001.p8", "x")),
    Damage("a folder stands there", at: "server-key.pem", "cannot be read", repair: "--certs") {
      try $0.delete("server-key.pem")
      try FileManager.default.createDirectory(at: $0.file("server-key.pem"), withIntermediateDirectories: false)
    },
  ]

  @Test(arguments: damages)
  func errorsAreOneLine(damage: Damage) async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try await damage.act(fixture)
    let error = try #require(throws: CertificateFolderError.self) { try fixture.open() }
    #expect(error.location == "\(fixture.path)/\(damage.location)")
    #expect(error.problem.contains(damage.problem), "\(error)")
    #expect(error.repair.contains(damage.repair), "\(error)")
    #expect(!error.description.contains("\n"))
  }

  @Test func expiredAuthorityIsNotRenewedAutomatically() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let soon = try fixture.open(inDays: 3640)
    #expect(soon.notices.contains { $0.contains("ends within 30 days") && $0.contains(Self.authority) })
    let error = try #require(throws: CertificateFolderError.self) { try fixture.open(inDays: 3653) }
    #expect(error.location.hasSuffix("/ca.pem"))
    #expect(error.repair.contains("\(Self.authority) --certs '\(fixture.path)'"))
  }

  @Test(arguments: ["push.example.com", "test.example.com"])
  func nameOutsideTheConstraintsNamesTheCommand(name: String) throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let before = try fixture.contents()
    let error = try #require(throws: CertificateFolderError.self) {
      try fixture.open(extraNames: ["apns.test", name])
    }
    #expect(error.location == "--san")
    #expect(error.problem.contains(name))
    #expect(error.repair.hasSuffix("apns-mock certs --new-ca --certs '\(fixture.path)' --san apns.test --san \(name)"))
    #expect(try fixture.contents() == before)
    #expect(try fixture.open(extraNames: ["apns.test", name], newAuthority: true).notices.count == 4)
    #expect(try fixture.open(extraNames: ["apns.test", name]).notices.isEmpty)
  }

  @Test(arguments: ["https://localhost", "localhost:2197", "a b", "", "1.2.3.4.5"])
  func invalidNameIsRejected(name: String) throws {
    let fixture = try CertificateFixture()
    let error = try #require(throws: CertificateFolderError.self) { try fixture.open(extraNames: [name]) }
    #expect(error.location == "--san")
    #expect(error.problem.contains("'\(name)'"))
  }

  @Test func readablePrivateKeyIsReported() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: fixture.file("ca-key.pem").path)
    let folder = try fixture.open()
    #expect(folder.notices.count == 1)
    #expect(folder.notices[0].contains("chmod 600 '\(fixture.path)/ca-key.pem'"))
  }

  @Test func folderThatCannotBeCreatedIsReported() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let location = fixture.path + "/ca.pem/below"
    let error = try #require(throws: CertificateFolderError.self) { try CertificateFolder.open(path: location) }
    #expect(error.location == location)
    #expect(error.repair.contains("--certs"))
  }
}
