import APNSMockRules
import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// Parsing of `provider.yaml`, and the positions of errors in it.
@Suite struct ProviderKeysFileTests {
  private static let key = Result { try ES256PrivateKey() }

  /// Returns a public key as an indented block under `public_key: |`.
  private static func block(_ indent: Int = 6) throws -> String {
    try key.get().publicKey.pem.split(separator: "\n").map { String(repeating: " ", count: indent) + $0 }
      .joined(separator: "\n")
  }

  private func entries(_ text: String, _ files: [String: String] = [:]) throws -> [ProviderKeyEntry] {
    let fixture = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: true)
    for (name, text) in files { try fixture.write(name, text) }
    try fixture.write("provider.yaml", text)
    return try ProviderKeysFile(folder: fixture.path).entries()
  }

  @Test func allMembersOfAKey() throws {
    let text = """
      keys:
        - key_id: ABC123DEFG
          team_id: DEF123GHIJ
          environment: production
          topics: [com.acme.app, com.acme.app.voip]
          related_key_id: ABC123DEFH
          public_key: |
      \(try Self.block())
        # A key that has only what it must have.
        - {key_id: 0123456789, team_id: "0987654321", file: public.pem, environment: , topics: null}
      """
    let entries = try entries(text, ["public.pem": try Self.key.get().publicKey.pem])
    #expect(entries.map(\.keyID) == ["ABC123DEFG", "0123456789"])
    #expect(entries.map(\.teamID) == ["DEF123GHIJ", "0987654321"])
    #expect(entries.map(\.environment) == [.production, nil])
    #expect(entries.map(\.topics) == [["com.acme.app", "com.acme.app.voip"], nil])
    #expect(entries.map(\.relatedKeyID) == ["ABC123DEFH", nil])
    for entry in entries { #expect(entry.publicKey.isSame(as: try Self.key.get().publicKey)) }
  }

  @Test(arguments: ["", "# nothing\n", "keys:", "keys: []", "keys: ~", "---\n"])
  func noKeys(text: String) throws {
    #expect(try entries(text).isEmpty)
  }

  @Test func developmentMeansSandbox() throws {
    for word in ["sandbox", "development"] {
      let text = "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, environment: \(word)}"
      let entries = try entries(text, ["k.p8": try Self.key.get().pem])
      #expect(entries.map(\.environment) == [.sandbox])
    }
  }

  private static let good = "{key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8}"

  /// The file, the line of the error, and a part of the message.
  @Test(arguments: [
    ("keys: x", 1, "keys: expected a list, not a string"),
    ("\n- a", 2, "expected a map, not a list"),
    ("kes:\n  - \(good)", 1, "unknown key 'kes'"),
    ("keys:\n  - \(good)\nmore: 1", 3, "unknown key 'more'"),
    ("keys:\n  - text", 2, "expected a map, not a string"),
    ("keys:\n  - team_id: DEF123GHIJ\n    file: k.p8", 2, "a key has no key_id"),
    ("keys:\n  - key_id: ABC123DEFG\n    file: k.p8", 2, "ABC123DEFG has no team_id"),
    ("keys:\n  - key_id: ABC123DEFG\n    team_id: DEF123GHIJ", 2, "neither public_key nor file"),
    ("keys:\n  - key_id: ABC123DEF\n    team_id: DEF123GHIJ\n    file: k.p8", 2, "'ABC123DEF' is not ten"),
    ("keys:\n  - key_id: ABC123DEFG\n    team_id: DEF-123-GH\n    file: k.p8", 3, "'DEF-123-GH' is not ten"),
    ("keys:\n  - key_id: [a]\n    team_id: DEF123GHIJ\n    file: k.p8", 2, "key_id: expected a string, not a list"),
    ("keys:\n  - key_id: ABC123DEFG\n    team_id: DEF123GHIJ\n    file: k.p8\n    tema: x", 5, "unknown key 'tema'"),
    ("keys:\n  - \(good)\n  - \(good)", 3, "ABC123DEFG is already in line 2"),
    ("keys:\n  - key_id: ABC123DEFG\n    key_id: ABC123DEFG\n    file: k.p8", 2, "duplicate keys: key_id"),
    ("keys:\n  - key_id: ABC123DEFG\n\tteam_id: x", 3, "invalid YAML"),
    ("keys:\n  - [a", 3, "invalid YAML"),
    ("keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: none.p8}", 2, "there is no file"),
    ("keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: bad.p8}", 2, "not a public key"),
    ("keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, public_key: x}", 2, "not a PEM text"),
    ("keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, public_key: x}", 2, "both"),
    (
      "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, environment: live}", 2,
      "unknown environment 'live'"
    ),
    (
      "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, topics: a}", 2,
      "topics: expected a list of strings"
    ),
    (
      "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, topics: []}", 2,
      "topics: expected a list of strings"
    ),
    (
      "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, topics: [a, ~]}", 2,
      "topics: expected a string, not nothing"
    ),
    ("keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: k.p8, related_key_id: x}", 2, "'x' is not ten"),
  ])
  func errorsNameTheirLine(text: String, line: Int, words: String) throws {
    let files = ["k.p8": try Self.key.get().pem, "bad.p8": "x"]
    let error = try #require(throws: CertificateFolderError.self) { try entries(text, files) }
    #expect(error.location.contains("/provider.yaml:\(line):"), "\(error)")
    #expect(error.problem.contains(words), "\(error)")
    #expect(!error.repair.isEmpty)
    #expect(!error.description.contains("\n"))
  }

  @Test func privateKeyMustBeInThisFolder() throws {
    let outside = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: outside.path, withIntermediateDirectories: true)
    try outside.write("k.p8", try Self.key.get().pem)
    try outside.write("public.pem", try Self.key.get().publicKey.pem)
    func text(_ file: String) -> String { "keys:\n  - {key_id: ABC123DEFG, team_id: DEF123GHIJ, file: \"\(file)\"}" }
    let folder = outside.path.split(separator: "/").suffix(2).joined(separator: "/")
    for path in [outside.path + "/k.p8", "../../\(folder)/k.p8"] {
      let error = try #require(throws: CertificateFolderError.self) { try entries(text(path)) }
      #expect(error.problem.contains("is a private key outside this folder"), "\(error)")
    }
    #expect(try entries(text(outside.path + "/public.pem")).count == 1)
    // A link within the folder also leads outside.
    let fixture = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: fixture.path + "/link.p8", withDestinationPath: outside.path + "/k.p8")
    try fixture.write("provider.yaml", text("link.p8"))
    #expect(throws: CertificateFolderError.self) { try ProviderKeysFile(folder: fixture.path).entries() }
  }

  @Test func inlinePrivateKeyIsRejectedWithACommand() throws {
    let pem = try Self.key.get().pem.split(separator: "\n").map { "      " + $0 }.joined(separator: "\n")
    let text = "keys:\n  - key_id: ABC123DEFG\n    team_id: DEF123GHIJ\n    public_key: |\n\(pem)\n"
    let error = try #require(throws: CertificateFolderError.self) { try entries(text) }
    #expect(error.problem.contains("a private key"))
    #expect(error.repair.contains("openssl pkey -in AuthKey_ABC123DEFG.p8 -pubout"))
  }
}
