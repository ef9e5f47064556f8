import APNSMockAdminAPI
import APNSMockRules
import ArgumentParser
import MockAPNS
import HTTPTypes
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import APNSMockClientCommands

/// The command `apns-mock key`: a running server trusts an added key at once, and its folder keeps the key for later
/// starts.
@Suite struct KeyCommandTests {
  private static let ids = ["--key-id", "ABC123DEFG", "--team-id", "DEF123GHIJ"]

  private static func add(_ file: String, _ arguments: [String]) async throws {
    try await KeyAdd.parse([file, "--json"] + arguments).run()
  }

  /// Returns the flags that select a server and its folder.
  private static func flags(_ mock: TestServer) -> [String] {
    ["--admin", mock.admin.address.description, "--certs", mock.certificates.path]
  }

  @Test func addedKeyIsTrustedAtOnceAndAfterRestart() async throws {
    let folder = try TemporaryFolder()
    let key = try ES256PrivateKey()
    let file = try folder.file("AuthKey_ABC123DEFG.p8", key.pem)
    try await TestServer.run { mock in
      let list = ProviderKeysFile(folder: mock.certificates.path)
      try await Self.add(
        file,
        ["--team-id", "DEF123GHIJ", "--environment", "development", "--topic", "a.b", "--related-key-id", "GHI123JKLM"]
          + Self.flags(mock))
      let trusted = try #require(mock.state.keys.load().keys["ABC123DEFG"])
      #expect(trusted.teamID == "DEF123GHIJ")
      #expect(trusted.environment == .sandbox)
      #expect(trusted.topics == ["a.b"])
      #expect(trusted.relatedKeyID == "GHI123JKLM")
      #expect(try list.entries().last?.relatedKeyID == "GHI123JKLM")
      #expect(try list.entries().map(\.keyID) == ["MOCKKEY001", "ABC123DEFG"])
      #expect(try !list.file.text().contains("PRIVATE KEY-----\n"), "the private half stays where it is")
      // The server accepts pushes with the new key, without a restart.
      let credential = try mock.credential(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", key: file)
      let diagnosis = try await mock.examine(credential) { $0.topic = "a.b" }
      #expect(diagnosis.failed.isEmpty, "\(diagnosis)")
      // A server that starts now accepts it too.
      let again = try CertificateFolder.open(path: mock.certificates.path)
      #expect(again.providerKeys.last?.publicKey.isSame(as: key.publicKey) == true)

      try await KeyRemove.parse(["ABC123DEFG", "--json"] + Self.flags(mock)).run()
      #expect(mock.state.keys.load().keys["ABC123DEFG"] == nil)
      #expect(try list.entries().map(\.keyID) == ["MOCKKEY001"])
      let error = try await #require(throws: CommandFailure.self) {
        try await KeyRemove.parse(["ABC123DEFG"] + Self.flags(mock)).run()
      }
      #expect(error.status == .failed)
      #expect(error.description.contains("nor trusted by the server on \(mock.admin.address)"))
    }
  }

  @Test func removingAKeyTheServerLacksSucceeds() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("key.pem", try ES256PrivateKey().publicKey.pem)
    try await TestServer.run { mock in
      try await Self.add(file, Self.ids + Self.flags(mock))
      mock.state.keys.update { $0 = $0.removing("ABC123DEFG") }
      try await KeyRemove.parse(["ABC123DEFG", "--json"] + Self.flags(mock)).run()
      #expect(try ProviderKeysFile(folder: mock.certificates.path).entries().count == 1)
    }
  }

  @Test func unreachableNamedServerFailsAfterWritingTheFile() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("key.pem", try ES256PrivateKey().publicKey.pem)
    let error = try await #require(throws: CommandFailure.self) {
      try await Self.add(file, Self.ids + ["--certs", folder.path + "/certs", "--admin", "127.0.0.1:1"])
    }
    #expect(error.status == .unreachable)
    #expect(error.description.contains("ABC123DEFG is added to \(folder.path)/certs/provider.yaml"))
    #expect(error.description.contains("the server did not apply it: no apns-mock responds on 127.0.0.1:1"))
    #expect(try ProviderKeysFile(folder: folder.path + "/certs").entries().count == 2)
  }

  @Test func differentKeyWithTheSameIDIsRejected() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("key.pem", try ES256PrivateKey().publicKey.pem)
    try await TestServer.run { mock in
      let error = try await #require(throws: CommandFailure.self) {
        try await Self.add(file, ["--key-id", "MOCKKEY001", "--team-id", "MOCKTEAM01"] + Self.flags(mock))
      }
      #expect(error.status == .usage)
      #expect(error.description.contains("MOCKKEY001 already exists, for another key"))
      let own = try AppleKeyFile.publicKey(at: mock.certificates.providerKeyPath)
      #expect(try ProviderKeysFile(folder: mock.certificates.path).entries()[0].publicKey.isSame(as: own))
    }
  }

  // MARK: - Key files

  /// The contents of a key file, and a part of the error message.
  @Test(arguments: [
    ("", "empty"), ("hello", "not a PEM text"), ("-----BEGIN CERTIFICATE-----\n", "a certificate"),
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "decrypt it: openssl pkey -in"),
    ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "the private key is damaged"),
    ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "the public key is damaged"),
  ])
  func invalidKeyFilesAreReported(content: String, words: String) throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("key.p8", content)
    let error = try #require(throws: CommandFailure.self) { try AppleKeyFile.publicKey(at: file) }
    #expect(error.status == .usage)
    #expect(error.description.hasPrefix("\(file): "))
    #expect(error.description.contains(words), "\(error)")
  }

  @Test(arguments: [["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"]])
  func keyOfAnotherAlgorithm(algorithm: [String]) async throws {
    let folder = try TemporaryFolder()
    let file = folder.path + "/key.p8"
    try await OpenSSLTool.run(["genpkey", "-out", file, "-algorithm"] + algorithm)
    let error = try #require(throws: CommandFailure.self) { try AppleKeyFile.publicKey(at: file) }
    #expect(error.description.contains("not an elliptic curve key on P-256"), "\(error)")
  }

  @Test func everyFormOfAValidKey() async throws {
    let folder = try TemporaryFolder()
    let key = try ES256PrivateKey()
    let pkcs8 = try folder.file("key.p8", key.pem)
    try await OpenSSLTool.run(["ec", "-in", pkcs8, "-out", folder.path + "/sec1.pem"])
    _ = try folder.file("public.pem", key.publicKey.pem)
    for name in ["key.p8", "sec1.pem", "public.pem"] {
      #expect(try AppleKeyFile.publicKey(at: "\(folder.path)/\(name)").isSame(as: key.publicKey), "\(name)")
    }
  }

  @Test(arguments: [
    ("AuthKey_ABC123DEFG.p8", "ABC123DEFG" as String?), ("/a/b/AuthKey_1.p8", "1"), ("AuthKey_ABC123DEFG.pem", nil),
    ("key.p8", nil), ("-", nil), ("", nil),
  ])
  func keyIDIsReadFromTheFileName(path: String, keyID: String?) {
    #expect(AppleKeyFile.keyID(in: path) == keyID)
  }

  /// Invalid arguments, and the flag that the message names.
  @Test(arguments: [
    (["--key-id", "SHORT", "--team-id", "DEF123GHIJ"], "--key-id: \"SHORT\""),
    (["--key-id", "ABC123DEFG", "--team-id", "DEF-123-GH"], "--team-id: \"DEF-123-GH\""),
    (["--team-id", "DEF123GHIJ"], "specify it with --key-id"),
    (ids + ["--related-key-id", "short"], "--related-key-id: \"short\""),
    (ids + ["--topic", "a b"], "--topic must have 1 to 255 characters"),
    (ids + ["--topic", ""], "--topic must have 1 to 255 characters"),
  ])
  func invalidArguments(arguments: [String], words: String) async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("key.pem", try ES256PrivateKey().publicKey.pem)
    let error = try await #require(throws: CommandFailure.self) {
      try await Self.add(file, arguments + ["--certs", folder.path + "/certs", "--admin", "127.0.0.1:1"])
    }
    #expect(error.status == .usage)
    #expect(error.description.contains(words), "\(error)")
    #expect(!WholeFile(path: folder.path + "/certs").exists, "nothing was made")
  }

  // MARK: - Running server

  @Test func unreachableServerIsAnErrorOnlyIfNamed() async throws {
    let flags = try ServerFlags.parse([])
    for variables in [["APNS_MOCK_ADMIN": "127.0.0.1:1"], ["APNS_MOCK_PORT_FILE": "/nowhere/ports.json"]] {
      let server = try OptionalServer(flags, environment: variables)
      #expect(try await server.request(.get, "/readyz") == nil)
      #expect(try await server.authorityFingerprint() == nil)
    }
    let named = try OptionalServer(ServerFlags.parse(["--admin", "127.0.0.1:1"]), environment: [:])
    await #expect(throws: CommandFailure.self) { try await named.request(.get, "/readyz") }
  }

  @Test func keysOfFileAndServerAreListedTogether() throws {
    let publicKey = try ES256PrivateKey().publicKey
    let entries = [
      ProviderKeyEntry(keyID: "A", teamID: "T", publicKey: publicKey, environment: .production, topics: ["a", "b"]),
      ProviderKeyEntry(keyID: "B", teamID: "T", publicKey: publicKey),
    ]
    let present = [
      TrustedKeysPage.Key(keyId: "C", teamId: "U"), .init(keyId: "B", teamId: "T"),
    ]
    #expect(
      KeyList.Row.table(KeyList.merged(entries, present)).lines
        == "A\tT\tproduction\ta b\t-\tat the next start\nB\tT\tboth\tall\t-\tnow and at start\n"
        + "C\tU\tboth\tall\t-\tuntil the server stops\n")
    #expect(KeyList.merged(entries, nil).map(\.isTrustedNow) == [nil, nil])
  }
}
