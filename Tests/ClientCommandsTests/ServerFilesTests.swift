import APNSMockRules
import ArgumentParser
import MockAPNS
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// The CA and the key that a client uses, and the provider token made with them.
@Suite struct ServerFilesTests {
  private static let portFile = PortFile(
    pid: 1, apns: [], admin: nil, ca: "/p/ca.pem", keyID: "PKEY", teamID: "PTEAM", key: "/p/key.p8",
    environment: .sandbox,
    seed: 1, adminToken: nil)
  private static let environment = [
    "APNS_MOCK_CA": "/e/ca.pem", "APNS_MOCK_KEY": "/e/key.p8", "APNS_MOCK_KEY_ID": "EKEY", "APNS_MOCK_TEAM_ID": "ETEAM",
  ]

  @Test func namedFolderHasPrecedence() {
    let files = ServerFiles(certs: "/f", portFile: Self.portFile, environment: Self.environment)
    #expect([files.ca, files.key] == ["/f/ca.pem", "/f/AuthKey_MOCKKEY001.p8"])
    #expect([files.keyID, files.teamID] == ["MOCKKEY001", "MOCKTEAM01"])
  }

  @Test func portFileIsSecond() {
    let files = ServerFiles(certs: nil, portFile: Self.portFile, environment: Self.environment)
    #expect([files.ca, files.key, files.keyID, files.teamID] == ["/p/ca.pem", "/p/key.p8", "PKEY", "PTEAM"])
  }

  @Test func environmentIsThird() {
    let files = ServerFiles(certs: nil, portFile: nil, environment: Self.environment)
    #expect([files.ca, files.key, files.keyID, files.teamID] == ["/e/ca.pem", "/e/key.p8", "EKEY", "ETEAM"])
  }

  @Test func defaultFolderIsLast() {
    #expect(ServerFiles(certs: nil, portFile: nil, environment: [:]).ca == "Certs/ca.pem")
    #expect(ServerFiles(certs: nil, portFile: nil, environment: ["APNS_MOCK_CERTS": "c"]).ca == "c/ca.pem")
  }

  @Test func newTokenIsVerifiedByTheKey() throws {
    let key = try ES256PrivateKey()
    let jwt = try ProviderTokenRequest(keyID: "KEY\"1", teamID: "TEAM", issuedAt: 1_700_000_000).signed(with: key)
    let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
    #expect(parts.count == 3)
    // {"alg":"ES256","kid":"KEY\"1"} and {"iss":"TEAM","iat":1700000000}
    #expect(parts[0] == "eyJhbGciOiJFUzI1NiIsImtpZCI6IktFWVwiMSJ9")
    #expect(parts[1] == "eyJpc3MiOiJURUFNIiwiaWF0IjoxNzAwMDAwMDAwfQ")
    #expect(parts[2].utf8.count == 86, "64 bytes without padding")
  }

  @Test func keyOfAnotherCertificateIsReported() throws {
    let folder = try TemporaryFolder()
    let certs = try CertificateFolder.open(path: folder.path)
    let key = try folder.file("other-key.pem", try ES256PrivateKey().pem)
    let right = try ProviderCertificateFlags.parse(["--cert", certs.clientPath])
    #expect(try right.files() != nil)
    let wrong = try ProviderCertificateFlags.parse(["--cert", certs.clientPath, "--cert-key", key])
    let error = try #require(throws: CommandFailure.self) { try wrong.files() }
    #expect(error.status == .usage)
    #expect(
      error.description.hasPrefix("the private key in \(key) does not belong to the certificate in \(certs.clientPath)")
    )
    #expect(error.description.contains("specify the certificate's own key with --cert-key FILE"))
  }

  @Test func missingKeyFileIsReported() throws {
    let token = ProviderTokenRequest(keyID: "K", teamID: "T", issuedAt: 0)
    let error = try #require(throws: CommandFailure.self) { try token.signed(withKeyAt: "/nowhere/key.p8") }
    #expect(error.status == .usage)
    #expect(
      error.description.hasPrefix(
        "/nowhere/key.p8: cannot be read: No such file or directory; create a key with apns-mock certs"))
  }

  @Test func invalidKeyFileIsReported() throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("key.p8", "hello")
    let token = ProviderTokenRequest(keyID: "K", teamID: "T", issuedAt: 0)
    let error = try #require(throws: CommandFailure.self) { try token.signed(withKeyAt: path) }
    #expect(error.status == .usage)
    #expect(error.description.hasPrefix("\(path): "))
  }

  private static let now: Int64 = 1_800_000_000_123

  @Test(arguments: [
    ("2027-01-15T08:00:00Z", 1_800_000_000_000), ("1700000000", 1_700_000_000_000), ("-10m", now - 600_000),
    ("5m", now + 300_000), ("+1h", now + 3_600_000), ("0s", now), ("-5", -5000),
  ])
  func timeHasThreeForms(_ text: String, _ time: Int64) {
    #expect(TimeArgument.milliseconds(text, now: Self.now) == time)
  }

  @Test(arguments: [
    "", "yesterday", "1700000000000000", "\(Int64.min)", "\(Int64.max)", "2027-13-01T00:00:00Z", "+", "++1h",
  ])
  func invalidTimeIsNil(_ text: String) {
    #expect(TimeArgument.milliseconds(text, now: Self.now) == nil)
  }
}
