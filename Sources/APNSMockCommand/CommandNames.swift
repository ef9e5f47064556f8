import ArgumentParser
import Notation

/// Validates command names before the arguments are parsed, because the parser reports an unknown name as an unexpected
/// argument of the default command.
enum CommandNames {
  /// Checks the leading arguments, up to the first option or positional argument of a command; all of them for `help`.
  ///
  /// - Throws: `CommandFailure` with status `usage` that lists the available commands and suggests the nearest one.
  static func check(_ arguments: some Collection<String>) throws {
    var words = arguments[...]
    let isHelp = words.first == "help"
    if isHelp { words = words.dropFirst() }
    var command: any ParsableCommand.Type = APNSMock.self
    var path: [String] = []
    while let word = words.popFirst(), !word.hasPrefix("-") {
      let commands = command.configuration.subcommands
      // The words after a command without subcommands are its arguments.
      if commands.isEmpty && !isHelp { return }
      guard let next = commands.first(where: { $0.configuration.names.contains(word) }) else {
        // Only the root command has a `help` subcommand.
        if path.isEmpty, word == "help" { return }
        let shown = commands.map { $0.configuration }.filter(\.shouldDisplay)
        throw unknown(word, after: path, among: shown.flatMap(\.names))
      }
      command = next
      path.append(word)
    }
  }

  private static func unknown(_ word: String, after path: [String], among names: [String]) -> CommandFailure {
    let place = path.isEmpty ? "" : "\(path.joined(separator: " ")) "
    let guess = Spelling.nearest(to: word, among: names).map { "; did you mean \($0)?" } ?? ""
    let list =
      names.isEmpty ? "`\(place.trimmed)` has no subcommands" : "Commands: \(names.joined(separator: ", "))"
    let help = (["apns-mock"] + path + ["--help"]).joined(separator: " ")
    return CommandFailure(
      .usage, lines: ["error: unknown command \"\(place)\(word)\"\(guess)", list, "See `\(help)`"])
  }
}

extension CommandConfiguration {
  /// The name of the command and its aliases.
  fileprivate var names: [String] { [commandName].compactMap(\.self) + aliases }
}
