import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// Which files are created again, and when.
@Suite struct CertificateRenewalTests {
  private static let server: Set = ["server.pem", "server-key.pem"]
  private static let client: Set = ["client.pem", "client-key.pem", "client.p12"]

  /// Returns the names of the files that `change` altered.
  private func altered(_ fixture: CertificateFixture, _ change: () throws -> Void) throws -> Set<String> {
    let before = try fixture.contents()
    try change()
    let after = try fixture.contents()
    return Set(after.keys.filter { before[$0] != after[$0] })
  }

  @Test(arguments: [365, 366, 367, 368, 396, 398, 1000] as [Int64])
  func expiringLeafCertificatesAreRenewed(days: Int64) throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let renewed = try altered(fixture) { try fixture.open(inDays: days) }
    // Renewed with less than 30 of 397 days left; validity begins one hour before the certificate is made.
    #expect(renewed == (days >= 367 ? Self.server.union(Self.client) : []))
    #expect(try fixture.open(inDays: days).notices.isEmpty)
  }

  /// A team may keep the key of the CA elsewhere, and a folder may be read-only.
  @Test func validCertificatesThatCannotBeRenewedAreKept() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try fixture.delete("ca-key.pem")
    let renewed = try altered(fixture) {
      let notices = try fixture.open(inDays: 380).notices
      #expect(notices.count == 2 && notices.allSatisfy { $0.contains("near its end") && $0.contains("ca-key.pem") })
    }
    #expect(renewed.isEmpty)
    #expect(throws: CertificateFolderError.self) { try fixture.open(inDays: 398) }
    #expect(throws: CertificateFolderError.self) { try fixture.open(extraNames: ["apns.test"]) }
  }

  @Test func anAddedNameRenewsTheServerCertificateOnly() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let renewed = try altered(fixture) {
      let folder = try fixture.open(extraNames: ["apns.test", "192.168.7.7"])
      #expect(folder.notices.count == 1)
      #expect(folder.notices[0].contains("apns.test, 192.168.7.7"))
    }
    #expect(renewed == Self.server)
    let names = try fixture.certificate("server.pem").names.map(\.description)
    #expect(names.contains("apns.test") && names.contains("192.168.7.7"))
  }

  @Test func newHostNameWithinTheConstraintsIsAdded() throws {
    let fixture = try CertificateFixture()
    try fixture.open(host: "one.internal")
    let renewed = try altered(fixture) { try fixture.open(host: "two.internal") }
    #expect(renewed == Self.server)
    #expect(try fixture.certificate("server.pem").names.contains(.domain("two.internal")))
  }

  /// A container has another host name at each start: this must not prevent the start.
  @Test func newHostNameOutsideTheConstraintsIsOmitted() throws {
    let fixture = try CertificateFixture()
    try fixture.open(host: "5f2a8c7d1e0b")
    let renewed = try altered(fixture) {
      let folder = try fixture.open(host: "0123456789ab")
      #expect(folder.notices.count == 1)
      #expect(folder.notices[0].contains("0123456789ab"))
      #expect(folder.notices[0].contains("--new-ca"))
    }
    #expect(renewed.isEmpty)
  }

  @Test(arguments: ["under_score", "a b", "", "ends.", "été"])
  func invalidHostNameIsOmitted(host: String) throws {
    let fixture = try CertificateFixture()
    try fixture.open(host: host)
    #expect(try fixture.certificate("server.pem").names.count == ServerNames.usual.count)
  }

  @Test(
    arguments: [
      (["server-key.pem"], server), (["server.pem"], server), (["client-key.pem"], client), (["client.pem"], client),
      (["client.p12"], ["client.p12"]), (["AuthKey_MOCKKEY001.p8"], ["AuthKey_MOCKKEY001.p8"]),
      (["provider.yaml"], ["provider.yaml"]),
      (["ca-next.pem", "ca-next-key.pem"], ["ca-next.pem", "ca-next-key.pem"]),
      (["ca.pem", "ca-key.pem"], server.union(client).union(["ca.pem", "ca-key.pem"])),
    ] as [([String], Set<String>)])
  func removedFilesAreRecreated(names: [String], expected: Set<String>) async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let before = try fixture.contents()
    for name in names { try fixture.delete(name) }
    #expect(try !fixture.open().notices.isEmpty)
    let after = try fixture.contents()
    let altered = Set(after.keys.filter { before[$0] != after[$0] })
    // The restored list of keys has the same content as before.
    #expect(altered == (names == ["provider.yaml"] ? [] : expected))
    #expect(Set(after.keys) == Set(before.keys))
    for (file, purpose) in [("server.pem", "sslserver"), ("client.pem", "sslclient")] {
      let outcome = try await fixture.openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", file)
      #expect(outcome.status == 0, "\(outcome.output)")
    }
  }

  @Test(arguments: ["", "no bundle", "0\u{82}"])
  func damagedBundleIsRecreated(bytes: String) async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try fixture.write("client.p12", bytes)
    var notices: [String] = []
    #expect(try altered(fixture) { notices = try fixture.open().notices } == ["client.p12"])
    #expect(notices.count == 1)
    #expect(try await fixture.openssl("pkcs12", "-in", "client.p12", "-passin", "pass:mock", "-nodes").status == 0)
    #expect(try fixture.open().notices.isEmpty)
  }

  @Test func bundleWithAnotherPasswordIsKept() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let made = try await fixture.openssl(
      "pkcs12", "-export", "-in", "client.pem", "-inkey", "client-key.pem", "-out", "client.p12", "-passout", "pass:own"
    )
    #expect(made.status == 0, "\(made.output)")
    #expect(try altered(fixture) { try fixture.open() } == [])
  }

  @Test func newAuthorityIsCreatedOnlyOnRequest() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try fixture.write("ca.pem", "damaged")
    let renewed = try altered(fixture) {
      let folder = try fixture.open(extraNames: ["push.example.com"], newAuthority: true)
      #expect(folder.notices.count == 4)
    }
    let authorities: Set = ["ca.pem", "ca-key.pem", "ca-next.pem", "ca-next-key.pem"]
    #expect(renewed == Self.server.union(Self.client).union(authorities))
    let outcome = try await fixture.openssl(
      "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "push.example.com", "-CAfile", "ca.pem",
      "server.pem")
    #expect(outcome.status == 0, "\(outcome.output)")
  }

  /// BoringSSL rejects an authority with IP addresses among its name constraints.
  @Test func anAuthorityWithAddressConstraintsIsReissued() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try await fixture.writeOldAuthority()
    let old = try fixture.certificate("ca.pem")
    try fixture.write("old-ca.pem", old.pem)
    let leaf = try fixture.certificate("server.pem")
    #expect(old.constrainsAddresses)
    var notices: [String] = []
    #expect(try altered(fixture) { notices = try fixture.open().notices } == ["ca.pem", "server.pem"])
    #expect(notices.count == 2)
    #expect(notices.first?.contains("re-issued the certificate authority with the same key and subject") == true)
    let renewed = try fixture.certificate("ca.pem")
    #expect(!renewed.constrainsAddresses && renewed.subject == old.subject)
    #expect(try renewed.permits(.domain("made.example")), "a --san of its making")
    let chain = try X509Certificate.chain(pem: fixture.text("server.pem"))
    #expect(chain.map(\.fingerprint) == [leaf.fingerprint, renewed.fingerprint])
    #expect(try fixture.open().notices.isEmpty)
    // A leaf that is issued later is valid for clients that trust the old certificate.
    try fixture.open(extraNames: ["new.made.example", "127.0.0.9"])
    for authority in ["ca.pem", "old-ca.pem"] {
      for (file, purpose) in [("server.pem", "sslserver"), ("client.pem", "sslclient")] {
        let outcome = try await fixture.openssl(
          "verify", "-x509_strict", "-purpose", purpose, "-CAfile", authority, "-untrusted", "server.pem", file)
        #expect(outcome.status == 0, "\(outcome.output)")
      }
    }
  }

  @Test func anAuthorityThatCannotBeReissuedIsReported() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try await fixture.writeOldAuthority()
    try fixture.delete("ca-key.pem")
    var notices: [String] = []
    #expect(try altered(fixture) { notices = try fixture.open().notices }.isEmpty)
    #expect(notices.count == 1)
    #expect(notices.first?.contains("BoringSSL") == true)
    #expect(notices.first?.contains("apns-mock certs --new-ca --certs '\(fixture.path)'") == true)
  }

  /// Adding an IP address never requires a new authority.
  @Test(arguments: ["8.8.8.8", "2001:db8::1"])
  func anyAddressIsAdded(address: String) async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    #expect(try altered(fixture) { try fixture.open(extraNames: [address]) } == Self.server)
    let outcome = try await fixture.openssl(
      "verify", "-x509_strict", "-purpose", "sslserver", "-verify_ip", address, "-CAfile", "ca.pem", "server.pem")
    #expect(outcome.status == 0, "\(outcome.output)")
  }

  /// Earlier versions wrote the authority's certificate into the provider's files.
  @Test func otherCertificatesAreRemovedFromTheProvidersFiles() async throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    let leaf = try fixture.text("client.pem")
    try fixture.write("client.pem", leaf + fixture.text("ca.pem"))
    let made = try await fixture.openssl(
      "pkcs12", "-export", "-in", "client.pem", "-inkey", "client-key.pem", "-out", "client.p12", "-passout",
      "pass:mock")
    #expect(made.status == 0, "\(made.output)")
    var notices: [String] = []
    #expect(try altered(fixture) { notices = try fixture.open().notices } == ["client.pem", "client.p12"])
    #expect(notices.count == 2)
    #expect(try fixture.text("client.pem") == leaf)
    let shown = try await fixture.openssl("pkcs12", "-in", "client.p12", "-passin", "pass:mock", "-nodes")
    #expect(shown.output.components(separatedBy: "BEGIN CERTIFICATE").count == 2)
    #expect(shown.output.contains(try fixture.text("client-key.pem")))
    #expect(try fixture.open().notices.isEmpty)
  }

  /// A team may distribute the authority's certificate without its key.
  @Test func authorityKeyIsNeededOnlyForIssuing() throws {
    let fixture = try CertificateFixture()
    try fixture.open()
    try fixture.delete("ca-key.pem")
    #expect(try fixture.open().notices.isEmpty)
    let error = #expect(throws: CertificateFolderError.self) { try fixture.open(extraNames: ["apns.test"]) }
    #expect(error?.location == fixture.path + "/server.pem")
    #expect(error?.problem.contains("ca-key.pem") == true)
  }
}
