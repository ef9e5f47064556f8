import ArgumentParser
import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockCommand
@testable import APNSMockClientCommands

/// The help of all commands, as the parser describes it.
@Suite struct HelpTests {
  struct Root: Decodable {
    var command: Command
  }

  struct Command: Decodable {
    var commandName: String
    var abstract: String?
    var discussion: String?
    var subcommands: [Command]?
    var arguments: [Argument]?

    /// The command and all commands below it, except the parser's own `help`.
    var all: [Command] {
      [self] + (subcommands ?? []).filter { $0.commandName != "help" }.flatMap(\.all)
    }
  }

  struct Argument: Decodable {
    var kind: String
    var names: [Name]?
    var valueName: String?
    var abstract: String?
    var shouldDisplay: Bool
    var sectionTitle: String?

    struct Name: Decodable {
      var name: String
    }
  }

  /// What placeholders may say. A new option has one of these, or adds to them.
  private static let placeholders: Set<String> = [
    "host:port", "host", "url", "file", "folder", "profile", "duration", "time", "seconds", "size", "number", "seq",
    "id",
    "uuid", "token", "topic", "push-type", "bundle-id", "environment", "query", "parameter=value", "text",
    "format", "event", "part", "library", "mode", "level", "selection", "code", "ca", "rule", "name", "channel",
    "shell",
    "program", "topic,topic", "finding,finding", "0|1", "any|known", "soon|answer", "refuse|drop", "memory|url",
    "text|json", "name=value", "outcome", "sandbox|production|url", "pattern", "fault", "rate",
  ]

  private static func commands() throws -> [Command] {
    try JSONDecoder().decode(Root.self, from: Data(APNSMock._dumpHelp().utf8)).command.all
  }

  @Test func everyCommandAndFlagIsDescribed() throws {
    let commands = try Self.commands()
    #expect(commands.count > 60)
    for command in commands {
      let name = command.commandName
      #expect(command.abstract?.hasSuffix(".") == true, "\(name)")
      for argument in (command.arguments ?? []) where argument.shouldDisplay {
        let flag = argument.names?.first?.name ?? argument.valueName ?? ""
        let text = argument.abstract ?? ""
        #expect(!text.isEmpty, "\(name) \(flag)")
        #expect(!text.contains("  ") && !text.contains("\n"), "\(name) \(flag): \(text)")
      }
      for line in (command.discussion ?? "").split(separator: "\n") where !line.hasPrefix("  ") {
        #expect(!line.contains("  "), "\(name): \(line)")
      }
    }
  }

  /// The commands without `--json`: those that run a server or write a format of their own.
  @Test func otherCommandsCanPrintJSON() throws {
    let leaves = try Self.commands().filter { $0.subcommands?.allSatisfy { $0.commandName == "help" } ?? true }
    let others = leaves.filter { command in
      !(command.arguments ?? []).contains { $0.names?.contains { $0.name == "json" } ?? false }
    }
    let expected = [
      "completion", "config", "env", "exec", "export", "merge", "new", "report", "sample", "serve", "view",
    ]
    #expect(others.map(\.commandName).sorted() == expected)
  }

  @Test func placeholdersSayWhatTheValueIs() throws {
    for command in try Self.commands() {
      for argument in (command.arguments ?? []) where argument.shouldDisplay && argument.kind != "flag" {
        let flag = argument.names?.first?.name ?? argument.valueName ?? ""
        #expect(Self.placeholders.contains(argument.valueName ?? ""), "\(command.commandName) \(flag)")
      }
    }
  }

  @Test func flagsOfAServerAreInSections() throws {
    let serve = try #require(try Self.commands().first { $0.commandName == "serve" })
    let shown = (serve.arguments ?? []).filter { $0.shouldDisplay && $0.names?.contains { $0.name == "help" } != true }
    let sections = Dictionary(grouping: shown, by: \.sectionTitle)
    #expect(sections[nil]?.compactMap { $0.names?.first?.name } == ["exit-on-stdin-close"])
    #expect(sections.count == 10 && sections.values.allSatisfy { $0.count <= 8 })
  }

  @Test func placeholdersOfSettingsAreKnown() {
    for setting in Setting.allCases {
      #expect(Self.placeholders.union(["on|off"]).contains(setting.placeholder), "\(setting)")
    }
  }
}

/// The completion of fault profiles.
@Suite struct ProfileCandidatesTests {
  @Test(arguments: [["apns-mock", "serve", "--profiles", "FOLDER"], ["apns-mock", "serve", "--profiles=FOLDER"]])
  func profilesOfAFolder(words: [String]) throws {
    let folder = try TemporaryFolder()
    try folder.file("mine.yaml", "name: mine\nsummary: A profile.\n")
    let words = words.map { $0.replacing("FOLDER", with: folder.path) }
    let candidates = ProfileCandidates(words: words, prefix: folder.path("m"), environment: [:]).all
    #expect(candidates.contains("mine") && candidates.contains("flaky-503"))
    #expect(candidates.contains(folder.path("mine.yaml")))
  }
}
