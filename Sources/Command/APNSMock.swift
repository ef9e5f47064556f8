import ArgumentParser
import APNSMockClientCommands
import APNSMockNotation

/// The root command.
///
/// Every command sets `commandName`: deriving the names from the types, which the parser does for all commands at once,
/// takes a tenth of the program's start time.
struct APNSMock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apns-mock",
    abstract:
      "A mock of the Apple Push Notification service: accepts pushes, validates them as APNs does and stores them.",
    discussion: """
      The default command is serve. Every serve flag has an environment variable (APNS_MOCK_ and its name) and a key in \
      the --config file; flags override variables, variables override the file.

      Exit codes: 0 success; 1 a push was rejected, an expectation of verify was not met, or an unexpected error; \
      2 an error in flags, settings or a fault profile; 3 a wait timed out; 4 the server is unreachable or not ready; \
      5 inconclusive, because pushes were evicted or deleted before they were checked; 6 port in use; 130 stopped by a second \
      signal. exec returns the exit code of its program.
      """,
    groupedSubcommands: [
      CommandGroup(
        name: "Serving",
        subcommands: [ServeCommand.self, ExecCommand.self, ViewCommand.self, ReportCommand.self, StoreCommand.self]
          + CommandGroups.serving),
      CommandGroup(name: "Pushes", subcommands: CommandGroups.pushes),
      CommandGroup(name: "Faults", subcommands: CommandGroups.faults),
      CommandGroup(name: "Devices", subcommands: CommandGroups.devices),
      CommandGroup(
        name: "Tools",
        subcommands: CommandGroups.tools + [
          ConfigCommand.self, OpenAPICommand.self, CompletionCommand.self, VersionCommand.self,
        ]),
    ],
    defaultSubcommand: ServeCommand.self)

  // The parser's own flag has no short name.
  @Flag(name: [.customShort("V"), .customLong("version")], help: "Show the version.")
  var showsVersion = false

  func validate() throws {
    if showsVersion { throw CleanExit.message(Version.text) }
  }
}

/// Validates command names before the arguments are parsed, because the parser reports an unknown name as an unexpected
/// argument of the default command.
enum CommandNames {
  /// Checks the leading arguments, up to the first option or positional argument of a command; all of them for `help`.
  ///
  /// - Throws: `CommandFailure` with status `usage` that lists the available commands and suggests the nearest one.
  static func check(_ arguments: some Collection<String>) throws {
    var rest = arguments[...]
    let isHelp = rest.first == "help"
    if isHelp { rest = rest.dropFirst() }
    var command: any ParsableCommand.Type = APNSMock.self
    var path: [String] = []
    while let name = rest.popFirst(), !name.hasPrefix("-") {
      let commands = command.configuration.subcommands
      // What follows a command without subcommands are its arguments.
      if commands.isEmpty, !isHelp, former[path + [name]] == nil { return }
      guard let next = commands.first(where: { $0.configuration.names.contains(name) }) else {
        if let current = former[path + [name]] {
          let old = (path + [name]).joined(separator: " ")
          throw CommandFailure(.usage, "unknown command \"\(old)\": use `apns-mock \(current)`")
        }
        // Only the root command has a `help` subcommand.
        if path.isEmpty, name == "help" { return }
        let shown = commands.map { $0.configuration }.filter(\.shouldDisplay)
        throw unknown(name, after: path, among: shown.flatMap(\.names))
      }
      command = next
      path.append(name)
    }
  }

  /// The commands that were renamed or merged, and what others call some, with those to use instead.
  private static let former: [[String]: String] = [
    ["list"]: "ls", ["show"]: "get", ["push"]: "send", ["start"]: "serve", ["status"]: "healthcheck", ["logs"]: "tail",
    ["halt"]: "faults pause", ["resume"]: "faults resume", ["profile", "explain"]: "rule explain",
    ["config", "sample"]: "config",
  ]

  private static func unknown(_ name: String, after path: [String], among names: [String]) -> CommandFailure {
    let prefix = path.isEmpty ? "" : "\(path.joined(separator: " ")) "
    let guess = Spelling.nearest(to: name, among: names).map { "; did you mean \($0)?" } ?? ""
    let list =
      names.isEmpty
      ? "`\(prefix.trimmed)` has no subcommands" : "Commands: \(Spelling.choices(for: name, among: names))"
    let help = (["apns-mock"] + path + ["--help"]).joined(separator: " ")
    return CommandFailure(
      .usage, lines: ["error: unknown command \"\(prefix)\(name)\"\(guess)", list, "See `\(help)`"])
  }
}

extension CommandConfiguration {
  /// The name of the command and its aliases.
  fileprivate var names: [String] { [commandName].compactMap(\.self) + aliases }
}
