import APNSMockRules
import Foundation
import APNSMockTLSEngine
import APNSMockTestSupport
import Testing

@testable import MockAPNS

/// The commands `apns-mock key add` and `key rm` edit `provider.yaml` and keep all other bytes of the file.
@Suite struct ProviderKeysEditingTests {
  private static let key = Result { try ES256PrivateKey().publicKey }
  private static let other = Result { try ES256PrivateKey().publicKey }

  private static func entry(
    _ keyID: String = "NEW1234567", team: String = "DEF123GHIJ", _ environment: PushEnvironment? = nil,
    topics: [String]? = nil
  ) throws -> ProviderKeyEntry {
    ProviderKeyEntry(
      keyID: keyID, teamID: team, publicKey: try key.get(), environment: environment, topics: topics)
  }

  /// An entry as a person writes it, after its hyphen.
  private static let old = "{key_id: ABC123DEFG, team_id: DEF123GHIJ, file: old.pem}"

  /// Calls `body` with a list of this text, in a folder with a file `old.pem` for its entries.
  private static func withList(_ text: String, _ body: (ProviderKeysFile) throws -> Void) throws {
    let fixture = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: true)
    try fixture.write("old.pem", try other.get().pem)
    try fixture.write("provider.yaml", text)
    try body(ProviderKeysFile(folder: fixture.path))
  }

  private static func text(_ list: ProviderKeysFile) throws -> String { try list.file.text() }

  /// Adds `entry` and returns the new contents of the file.
  private static func adding(_ entry: ProviderKeyEntry, to list: ProviderKeysFile) throws -> String {
    #expect(try list.add(entry))
    return try text(list)
  }

  /// Returns the block of `entry()` with indented lines.
  private static func block(_ indentation: Int, lineEnd: String = "\n") throws -> String {
    let pem = try key.get().pem.split(separator: "\n").map { "    " + $0 }
    let lines = ["- key_id: NEW1234567", "  team_id: DEF123GHIJ", "  public_key: |"] + pem
    return lines.map { String(repeating: " ", count: indentation) + $0 + lineEnd }.joined()
  }

  /// The contents of the file, the indentation of a new entry, and the text between the two.
  @Test(arguments: [
    ("", 2, "keys:\n"), ("# only words\n", 2, "keys:\n"), ("keys:\n", 2, ""), ("keys:", 2, "\n"),
    ("keys:\n  - \(old)\n", 2, "\n"), ("keys:\n  - \(old)", 2, "\n\n"), ("keys:\n- \(old)\n", 0, "\n"),
    ("keys:\n      - \(old)\n", 6, "\n"), ("keys:\n  - \(old)\n\n", 2, ""), ("---\nkeys:\n  - \(old)\n", 2, "\n"),
    ("# a\nkeys: # b\n  # c\n  - key_id: ABC123DEFG # d\n    team_id: DEF123GHIJ\n    file: old.pem\n  # e\n", 2, "\n"),
    ("keys:\n  -\n    key_id: ABC123DEFG\n    team_id: DEF123GHIJ\n    file: old.pem\n", 2, "\n"),
    ("\"keys\":\n  - \(old) # ümlaut\n", 2, "\n"),
  ])
  func entryIsAppended(text: String, indentation: Int, between: String) throws {
    try Self.withList(text) { list in
      let before = try list.entries()
      let block = try Self.block(indentation)
      #expect(try Self.adding(try Self.entry(), to: list) == text + between + block)
      let after = try list.entries()
      #expect(after.map(\.keyID) == before.map(\.keyID) + ["NEW1234567"])
      // After its removal, nothing of the entry remains.
      #expect(try list.remove("NEW1234567"))
      let left = try Self.text(list)
      let newlines = CharacterSet.newlines
      #expect(left.trimmingCharacters(in: newlines).hasPrefix(text.trimmingCharacters(in: newlines)))
      #expect(try list.entries().count == before.count)
      let isRemoved = try list.remove("NEW1234567")
      #expect(!isRemoved)
    }
  }

  @Test(arguments: ["keys: []\n", "keys: ~\n", "keys: null\n", "keys:   []   # none yet\n"])
  func emptyListMarkerIsReplaced(text: String) throws {
    try Self.withList(text) { list in
      let rest = text.contains("#") ? "keys:      # none yet\n" : "keys:\n"
      let block = try Self.block(2)
      #expect(try Self.adding(try Self.entry(), to: list) == rest + block)
    }
  }

  @Test func defaultFileIsExtended() throws {
    let fixture = try CertificateFixture()
    let list = ProviderKeysFile(folder: try fixture.open().path)
    let text = try fixture.text("provider.yaml")
    let block = try Self.block(2)
    #expect(try Self.adding(try Self.entry(), to: list) == text + "\n" + block)
    #expect(try fixture.open().providerKeys.map(\.keyID) == ["MOCKKEY001", "NEW1234567"])
    #expect(try list.remove("NEW1234567"))
    #expect(try fixture.text("provider.yaml") == text)
    // The key of the first start can be removed as well; its comment and its key file remain.
    #expect(try list.remove("MOCKKEY001"))
    let own = "  - key_id: MOCKKEY001\n    team_id: MOCKTEAM01\n    file: AuthKey_MOCKKEY001.p8\n"
    #expect(try fixture.text("provider.yaml") == text.replacing(own, with: ""))
    #expect(try fixture.open().providerKeys.isEmpty)
    #expect(try fixture.contents()["AuthKey_MOCKKEY001.p8"] != nil)
  }

  @Test func entryRoundTrips() throws {
    let entry = ProviderKeyEntry(
      keyID: "0123456789", teamID: "1E23456789", publicKey: try Self.key.get(), environment: .production,
      topics: ["com.acme.app", "1", "null", #"a"b\c"#, "[x]", "a:#b", "ümlaut"], relatedKeyID: "ABC123DEFG")
    try Self.withList("keys:\n") { list in
      let text = try Self.adding(entry, to: list)
      let found = try list.entries()
      #expect(found.count == 1)
      #expect(found.first?.isSame(as: entry) == true)
      #expect(text.contains("key_id: \"0123456789\""), "a number to other readers of YAML")
    }
  }

  @Test func windowsLineEndingsAreKept() throws {
    let text = "# mine\r\nkeys:\r\n  - \(Self.old)\r\n"
    try Self.withList(text) { list in
      let block = try Self.block(2, lineEnd: "\r\n")
      #expect(try Self.adding(try Self.entry(), to: list) == text + "\r\n" + block)
      #expect(try list.remove("ABC123DEFG"))
      #expect(try Self.text(list) == "# mine\r\nkeys:\r\n\r\n" + block)
    }
  }

  @Test func removalDeletesOnlyTheEntrysLines() throws {
    let text = """
      keys:
        # first
        - \(Self.old)

        # second, which stays
        -   key_id: SECOND1234
            # inside
            team_id: DEF123GHIJ

            file: old.pem
          # still about the second
        # third
        - {key_id: THIRD12345, team_id: DEF123GHIJ,
           file: old.pem}
      # end

      """
    try Self.withList(text) { list in
      let isSecondGone = try list.remove("SECOND1234")
      #expect(isSecondGone)
      let inside = "  -   key_id: SECOND1234\n      # inside\n      team_id: DEF123GHIJ\n\n      file: old.pem\n"
      #expect(try Self.text(list) == text.replacing(inside, with: ""))
      #expect(try list.remove("THIRD12345"))
      #expect(try list.entries().map(\.keyID) == ["ABC123DEFG"])
      #expect(try Self.text(list).hasSuffix("  # third\n# end\n"))
    }
  }

  @Test func identicalEntryIsNotAddedTwice() throws {
    try Self.withList("keys:\n") { list in
      let entry = try Self.entry("NEW1234567", .sandbox, topics: ["com.acme.app"])
      let text = try Self.adding(entry, to: list)
      let added = try list.add(entry)
      #expect(!added)
      #expect(try Self.text(list) == text)
    }
  }

  @Test(arguments: [("another key", "for another key"), ("team", "of the team DEF123GHIJ"), ("topics", "other topics")])
  func differentEntryWithTheSameIDIsRejected(change: String, words: String) throws {
    try Self.withList("keys:\n  # mine\n  - \(Self.old)\n") { list in
      let text = try Self.text(list)
      let publicKey = try (change == "another key" ? Self.key : Self.other).get()
      let entry = ProviderKeyEntry(
        keyID: "ABC123DEFG", teamID: change == "team" ? "OTHER12345" : "DEF123GHIJ", publicKey: publicKey,
        topics: change == "topics" ? ["a"] : nil)
      let error = try #require(throws: CertificateFolderError.self) { try list.add(entry) }
      #expect(error.location.hasSuffix("/provider.yaml:3"))
      #expect(error.problem.contains(words), "\(error)")
      #expect(error.repair.contains("apns-mock key rm ABC123DEFG"))
      #expect(try Self.text(list) == text)
    }
  }

  /// Valid lists in forms that a program cannot edit safely.
  @Test(arguments: ["keys: [\(old)]\n", "{keys: [\(old)]}\n", "{keys: }\n", "keys:\n  - \(old)\n...\n", "null\n"])
  func unsupportedFormsAreNotEdited(text: String) throws {
    try Self.withList(text) { list in
      let error = try #require(throws: CertificateFolderError.self) { try list.add(try Self.entry()) }
      #expect(error.problem.contains("must be edited by hand"), "\(error)")
      #expect(error.repair.contains("key_id: …"))
      #expect(try Self.text(list) == text)
    }
  }

  @Test func invalidListIsNotEdited() throws {
    try Self.withList("keys:\n  - {key_id: SHORT}\n") { list in
      let error = try #require(throws: CertificateFolderError.self) { try list.add(try Self.entry()) }
      #expect(error.location.hasSuffix(":2:14"))
    }
  }

  @Test func linksAndPermissionsAreKept() throws {
    let fixture = try CertificateFixture()
    try FileManager.default.createDirectory(atPath: fixture.path + "/real", withIntermediateDirectories: true)
    try fixture.write("real/list.yaml", "keys:\n")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: fixture.file("real/list.yaml").path)
    try FileManager.default.createSymbolicLink(
      atPath: fixture.path + "/provider.yaml", withDestinationPath: "real/list.yaml")
    let block = try Self.block(2)
    #expect(try Self.adding(try Self.entry(), to: ProviderKeysFile(folder: fixture.path)).hasSuffix(block))
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: fixture.path + "/provider.yaml") != "")
    #expect(try fixture.mode("real/list.yaml") == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/real")
    #expect(names == ["list.yaml"], "no temporary file is left")
  }
}
