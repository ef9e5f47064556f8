import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// The certificate folder: the files that the first start creates and later starts keep.
@Suite struct CertificateFolderTests {
  @Test func firstStartCreatesAllFiles() throws {
    let fixture = try CertificateFixture()
    let folder = try fixture.open()
    #expect(folder.notices.count == 6)
    #expect(folder.path == fixture.path)
    #expect(folder.caPEM == (try fixture.text("ca.pem")))
    #expect(folder.caFingerprint == (try fixture.certificate("ca.pem").fingerprint))
    #expect(folder.providerKeys.map(\.keyID) == ["MOCKKEY001"])
    #expect(folder.providerKeys.map(\.teamID) == ["MOCKTEAM01"])
    #expect(folder.providerKeys[0].topics == nil)
    #expect(folder.providerKeys[0].environment == nil)
    let key = try ES256PrivateKey(pem: fixture.text("AuthKey_MOCKKEY001.p8"))
    #expect(folder.providerKeys[0].publicKey.isSame(as: key.publicKey))
    for path in [
      folder.caPath, folder.serverPath, folder.serverKeyPath, folder.providerKeyPath, folder.clientPath,
      folder.clientKeyPath, folder.clientP12Path, folder.providerKeysPath, folder.nextCAPath,
    ] {
      #expect(FileManager.default.fileExists(atPath: path), "\(path)")
    }
    // With .gitignore. No temporary files remain.
    #expect(try fixture.contents().count == 12)
  }

  @Test(arguments: [
    ("ca.pem", 0o644), ("ca-key.pem", 0o600), ("server.pem", 0o644), ("server-key.pem", 0o600),
    ("AuthKey_MOCKKEY001.p8", 0o600), ("client.pem", 0o644), ("client-key.pem", 0o600), ("client.p12", 0o600),
    ("provider.yaml", 0o644), ("ca-next.pem", 0o644), ("ca-next-key.pem", 0o600),
  ])
  func privateFilesAreReadableByTheirOwnerOnly(name: String, mode: Int) throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    #expect(try fixture.mode(name) == mode)
  }

  @Test(arguments: [("server.pem", "sslserver"), ("client.pem", "sslclient")])
  func strictVerificationSucceeds(name: String, purpose: String) async throws {
    let fixture = try CertificateFixture()
    try fixture.open(extraNames: ["push.example.com", "203.0.113.9"])
    let outcome = try await fixture.openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", name)
    #expect(outcome.status == 0, "\(outcome.output)")
  }

  @Test func serverCertificateHasAllNames() throws {
    let fixture = try CertificateFixture()
    try fixture.open(extraNames: ["push.example.com", "203.0.113.9", "localhost"])
    let names = try fixture.certificate("server.pem").names.map(\.description)
    #expect(
      names == [
        "localhost", "127.0.0.1", "::1", "apns-mock", "host.docker.internal", "api.push.apple.com",
        "api.sandbox.push.apple.com", "api.development.push.apple.com", "api-broadcast.push.apple.com",
        "api-broadcast.sandbox.push.apple.com", "api-manage-broadcast.push.apple.com",
        "api-manage-broadcast.sandbox.push.apple.com", "push.example.com", "203.0.113.9", "build-7.internal",
      ])
  }

  @Test(arguments: [("ca.pem", 3652), ("server.pem", 397), ("client.pem", 397)] as [(String, Int64)])
  func validity(name: String, days: Int64) throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let certificate = try fixture.certificate(name)
    #expect(certificate.notAfter - certificate.notBefore == days * CertificateFixture.day)
    #expect(certificate.notBefore < fixture.now)
  }

  @Test func providerCertificateIsForOneApp() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let certificate = PeerCertificate(try fixture.certificate("client.pem"))
    #expect(certificate.subjectUID == "com.example.app")
    #expect(certificate.topics == ["com.example.app", "com.example.app.voip", "com.example.app.complication"])
    #expect(certificate.development)
    #expect(certificate.production)
    let shown = try await fixture.openssl("pkcs12", "-in", "client.p12", "-passin", "pass:mock", "-nodes")
    #expect(shown.status == 0)
    #expect(shown.output.contains(try fixture.text("client-key.pem")))
    #expect(shown.output.contains(try fixture.certificate("client.pem").pem))
    // Libraries such as sideshow/apns2 and pigeon accept only a file with a single certificate.
    #expect(shown.output.components(separatedBy: "BEGIN CERTIFICATE").count == 2)
    #expect(try X509Certificate.chain(pem: fixture.text("client.pem")).count == 1)
  }

  @Test func secondStartChangesNothing() throws {
    let fixture = try CertificateFixture()
    let first = try fixture.open(extraNames: ["push.example.com"])
    let before = try fixture.contents()
    let second = try fixture.open(extraNames: ["push.example.com"], inDays: 300)
    #expect(second.notices.isEmpty)
    #expect(second.caFingerprint == first.caFingerprint)
    #expect(try fixture.contents() == before)
    // Omitting a name that is already in the certificate changes nothing either.
    #expect(try fixture.open().notices.isEmpty)
    #expect(try fixture.contents() == before)
  }

  @Test func concurrentStartsShareOneFolder() async throws {
    let fixture = try CertificateFixture()
    let fingerprints = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<6 { group.addTask { try fixture.open().caFingerprint } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(fingerprints.count == 1)
    #expect(try fixture.open().notices.isEmpty)
  }

  @Test func intermediateFoldersAreCreated() throws {
    let fixture = try CertificateFixture()
    let folder = try CertificateFolder.open(path: fixture.path + "/a/./b/")
    #expect(folder.path == fixture.path + "/a/b")
    #expect(FileManager.default.fileExists(atPath: folder.serverPath))
  }

  /// A folder that the server creates is ignored by git before it contains a key, also if nothing else can be created.
  @Test(arguments: ["/new", "/new/inner/.", "/./new//"])
  func newFolderIsIgnoredByGit(path: String) throws {
    let fixture = try CertificateFixture()
    #expect(throws: CertificateFolderError.self) {
      try CertificateFolder.open(path: fixture.path + path, extraNames: ["not a name"])
    }
    let file = fixture.path + path + "/.gitignore"
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "*\n")
    try "kept".write(toFile: file, atomically: true, encoding: .utf8)
    _ = try CertificateFolder.open(path: fixture.path + path)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "kept")
  }

  @Test func presentFolderIsNotIgnoredByGit() throws {
    let fixture = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: false)
    _ = try fixture.open()
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/.gitignore"))
  }
}
