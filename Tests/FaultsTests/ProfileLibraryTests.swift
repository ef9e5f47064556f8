import Foundation
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

@Suite struct ProfileLibraryTests {
  private static let slow = "rules: [{name: slow, do: {delay: {fixed: 1s}}}]"

  @Test func unknownNames() {
    let failure = #expect(throws: ProfileFailure.self) { try ProfileLibrary().profile(named: "flaky503") }
    #expect(failure?.kind == .unknownName)
    #expect(failure?.description == #"unknown profile "flaky503", did you mean "flaky-503"?"#)
    #expect(ProfileLibrary().summary(of: "x") == nil)
  }

  @Test func uploadedProfiles() throws {
    let (library, loaded) = try ProfileLibrary().adding(name: "slow", text: Self.slow)
    #expect(loaded.profile.rules.map(\.name) == ["slow"])
    #expect(library.names == ProfileLibrary().names + ["slow"])
    #expect(library.source(named: "slow") == ProfileSource(name: "slow", text: Self.slow, origin: .uploaded))
    #expect(try library.removing(name: "slow").names == ProfileLibrary().names)
  }

  @Test func uploadedProfileOverridesABuiltIn() throws {
    let library = try ProfileLibrary().adding(name: "healthy", text: Self.slow).library
    #expect(library.names == ProfileLibrary().names)
    #expect(try library.profile(named: "healthy").profile.rules.count == 1)
    #expect(try library.removing(name: "healthy").profile(named: "healthy").profile.rules.isEmpty)
  }

  @Test(arguments: [
    ("No", "", ProfileFailure.Kind.notAllowed), ("x", "rules: 5", .faulty), ("x", "name: y", .faulty),
    ("x", "extends: x", .faulty),
  ])
  func invalidUploads(name: String, text: String, kind: ProfileFailure.Kind) {
    let failure = #expect(throws: ProfileFailure.self) { try ProfileLibrary().adding(name: name, text: text) }
    #expect(failure?.kind == kind)
  }

  @Test func profilesThatCannotBeRemoved() throws {
    #expect(throws: ProfileFailure.self) { try ProfileLibrary().removing(name: "x") }
    let failure = #expect(throws: ProfileFailure.self) { try ProfileLibrary().removing(name: "healthy") }
    #expect(failure?.kind == .notAllowed)
  }

  // MARK: - Folders

  @Test func folderOfProfiles() throws {
    try Self.withFolder([
      "slow.yaml": Self.slow, "named.yml": "name: other\nextends: slow", "healthy.yaml": "summary: Not so healthy",
      "notes.txt": "x", ".hidden.yaml": "x",
    ]) { folder in
      let reading = ProfileLibrary().reloading(folder: folder)
      #expect(reading.problems == [])
      #expect(reading.notices == ["\(folder)/healthy.yaml replaces the built-in profile healthy"])
      #expect(reading.library.names == ProfileLibrary().names + ["other", "slow"])
      let other = try reading.library.profile(named: "other").profile
      #expect(other.rules.map(\.name) == ["slow"])
      #expect(reading.library.summary(of: "healthy") == "Not so healthy")
      #expect(reading.library.source(named: "slow")?.origin == .file("\(folder)/slow.yaml"))
      #expect(throws: ProfileFailure.self) { try reading.library.removing(name: "slow") }
    }
  }

  @Test func invalidFileKeepsTheOldVersion() throws {
    try Self.withFolder(["slow.yaml": Self.slow, "gone.yaml": Self.slow]) { folder in
      let first = ProfileLibrary().reloading(folder: folder).library
      try FileManager.default.removeItem(atPath: folder + "/gone.yaml")
      try "rules: 5".write(toFile: folder + "/slow.yaml", atomically: true, encoding: .utf8)
      try Self.slow.write(toFile: folder + "/new.yaml", atomically: true, encoding: .utf8)
      let second = first.reloading(folder: folder)
      #expect(second.hasErrors)
      #expect(
        second.problems.map(\.description) == ["\(folder)/slow.yaml:1:8: rules: expected a list, not a number"])
      #expect(try second.library.profile(named: "slow").profile.rules.count == 1)
      #expect(second.library.source(named: "gone") == nil)
      #expect(second.library.source(named: "new") != nil)
    }
  }

  @Test func newInvalidFileIsNotListed() throws {
    try Self.withFolder([
      "bad.yaml": "rules: 5", "worse.yaml": "\u{0}", "long.yaml": String(repeating: "#", count: 300_000),
    ]) {
      folder in
      let reading = ProfileLibrary().reloading(folder: folder)
      #expect(reading.library.names == ProfileLibrary().names)
      #expect(
        reading.problems.map(\.description) == [
          "\(folder)/long.yaml: longer than 256 KiB, check that it is the right file",
          "\(folder)/bad.yaml:1:8: rules: expected a list, not a number",
          "\(folder)/worse.yaml:1:1: invalid YAML: control characters are not allowed",
        ])
    }
  }

  @Test func duplicateFileNames() throws {
    try Self.withFolder(["a.yaml": "name: x", "b.yaml": "name: x"]) { folder in
      let reading = ProfileLibrary().reloading(folder: folder)
      #expect(
        reading.problems.map(\.description) == [
          "\(folder)/b.yaml: there is a profile \"x\" in \(folder)/a.yaml already, rename it"
        ])
      #expect(reading.library.source(named: "x")?.origin == .file("\(folder)/a.yaml"))
    }
  }

  @Test func missingFolder() {
    let reading = ProfileLibrary().reloading(folder: "/no/such/folder")
    #expect(reading.hasErrors)
    #expect(reading.problems.first?.message.hasPrefix("cannot be read: ") == true)
    #expect(reading.library.names == ProfileLibrary().names)
  }

  @Test func filesByTheirPath() throws {
    try Self.withFolder([
      "Slow One.yaml": "params: {x: {type: duration, default: 1s}}\nrules: [{do: {delay: {fixed: '${x}'}}}]"
    ]) {
      folder in
      let reference = try ProfileReference(folder + "/Slow One.yaml?x=3s")
      let profile = try ProfileLibrary().profile(reference).profile
      #expect(profile.name == "Slow One")
      #expect(profile.rules.map(\.action) == [.delay(.fixed(.seconds(3)))])
      #expect(throws: ProfileFailure.self) { try ProfileLibrary.file(folder) }
      #expect(throws: ProfileFailure.self) { try ProfileLibrary.file(folder + "/none.yaml") }
      // Reading these would never end, or would exhaust the memory.
      #expect(throws: ProfileFailure.self) { try ProfileLibrary.file("/dev/zero") }
      #expect(mkfifo(folder + "/pipe", 0o600) == 0)
      #expect(throws: ProfileFailure.self) { try ProfileLibrary.file(folder + "/pipe") }
    }
  }

  @Test func filesThatAreNotUTF8() throws {
    try Self.withFolder([:]) { folder in
      let path = folder + "/latin.yaml"
      try Data([UInt8]("a: ä\nsummary: Stra".utf8) + [0xDF, 0x65]).write(to: URL(fileURLWithPath: path))
      let failure = #expect(throws: ProfileFailure.self) { try ProfileLibrary.file(path) }
      #expect(failure?.description == "\(path):2:14: invalid UTF-8, save the file in UTF-8")
    }
  }

  private static func withFolder(_ files: [String: String], _ work: (String) throws -> Void) throws {
    let folder = try TemporaryFolder()
    for (name, text) in files { try folder.file(name, text) }
    try work(folder.path)
  }
}

@Suite struct ProfileReferenceTests {
  @Test(
    arguments: [
      ("healthy", .init(.name("healthy"))),
      ("black-friday?limit=2&x=y", .init(.name("black-friday"), parameters: ["limit": "2", "x": "y"])),
      ("a?", .init(.name("a"))),
      ("a?x=", .init(.name("a"), parameters: ["x": ""])),
      ("a?x=b%3Dc%26d=e+f", .init(.name("a"), parameters: ["x": "b=c&d=e+f"])),
      ("./a", .init(.file("./a"))), ("a.yaml", .init(.file("a.yaml"))),
      ("/etc/a.yml?x=1", .init(.file("/etc/a.yml"), parameters: ["x": "1"])),
    ] as [(String, ProfileReference)])
  func referenceRoundTrips(text: String, reference: ProfileReference) throws {
    #expect(try ProfileReference(text) == reference)
    #expect(try ProfileReference(reference.description) == reference)
  }

  @Test(arguments: ["", "A", "a b", "a?x", "a?=1", "a?x=1&x=2", "a?x=%4", "a?x=%zz", "a?x=%ff", "-a", "?x=1"])
  func invalidReference(text: String) {
    #expect(throws: (any Error).self) { try ProfileReference(text) }
  }

  @Test func parametersAreWrittenInOrder() {
    let reference = ProfileReference(.name("a"), parameters: ["b": "1 2", "a": "50%"])
    #expect(reference.description == "a?a=50%25&b=1%202")
  }
}
