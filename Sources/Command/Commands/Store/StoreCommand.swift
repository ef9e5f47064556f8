import ArgumentParser
import APNSMockClientCommands
import APNSMockNotation
import APNSMockPostgreSQLStore
import APNSMockSQLiteStore

/// `apns-mock store`
struct StoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store", abstract: "Check or repair the SQLite file of an inbox.",
    subcommands: [StoreCheckCommand.self, StoreRepairCommand.self])
}

/// `apns-mock store check`
struct StoreCheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Report what in a file cannot be read.",
    discussion: """
      Reads every page and every push, and changes nothing. A server may be using the file.

      Exit code 0 if the file is sound, 1 if something cannot be read, 2 if the file is no inbox of this version.
      """)

  @OptionGroup var file: StoreFileArgument
  @OptionGroup var output: OutputFlags

  func run() throws {
    let path = try file.path
    let check = try file.opening { try StoreCheck(path: path, progress: $0) }
    output.print(text: check.text(of: path)) { check.write(to: &$0, of: path) }
    guard check.problemCount > 0 else { return }
    if !output.json {
      StandardStream.error.line(
        "Stop the server and run apns-mock store repair \(path.shellQuoted), which keeps what can be read.")
    }
    throw ExitCode(ExitStatus.failed.rawValue)
  }
}

/// `apns-mock store repair`
struct StoreRepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair", abstract: "Copy what can be read to a new file, which takes the place of the damaged one.",
    discussion: """
      No server may use the file. It is kept as FILE.damaged. A sound file is not changed. Devices, rules and other state \
      of the server are kept too.

      Exit code 0 if the file is sound now, 2 if it cannot be repaired.
      """)

  @OptionGroup var file: StoreFileArgument
  @OptionGroup var output: OutputFlags

  func run() throws {
    let path = try file.path
    let repair = try file.opening { try StoreRepair(path: path, progress: $0) }
    var text = repair.check.text(of: path)
    if let former = repair.former { text += "\nRepaired. The damaged file is \(former)." }
    output.print(text: text) { object in
      repair.check.write(to: &object, of: path)
      object.member("former", repair.former)
    }
  }
}

/// The file that a command reads.
struct StoreFileArgument: ParsableArguments {
  @Argument(help: .value("file", "The SQLite file, as FILE or sqlite:FILE."), completion: .file())
  var file: String

  /// The path of the file.
  var path: String {
    get throws {
      guard !PostgreSQLAddress.isAddress(file) else {
        throw CommandFailure(
          .usage, "apns-mock store reads SQLite files; the tools of PostgreSQL check its databases, such as pg_amcheck")
      }
      return file.hasPrefix("sqlite:") ? String(file.dropFirst("sqlite:".count).prefix { $0 != "?" }) : file
    }
  }

  /// Calls `body` with a function that shows progress on a terminal.
  func opening<Value>(_ body: ((String) -> Void) throws -> Value) throws -> Value {
    do {
      return try body { if StandardStream.error.isTerminal { StandardStream.error.line($0) } }
    } catch let error as SQLiteStoreError {
      throw CommandFailure(.usage, "\(error)")
    }
  }
}

extension StoreCheck {
  /// The result for people.
  func text(of path: String) -> String {
    func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
    let pushes = count(readable, "push", "pushes")
    guard problemCount > 0 else { return "\(path): \(pushes), no problems" }
    let hidden = problemCount - problems.count
    let lost = unreadable > 0 ? ", \(unreadable) cannot" : ""
    let head = "\(path): \(count(problemCount, "problem", "problems")), \(pushes) can be read\(lost)"
    return ([head] + problems.map { "  \($0)" } + (hidden > 0 ? ["  and \(hidden) more"] : [])).joined(separator: "\n")
  }

  func write(to object: inout JSONWriter, of path: String) {
    object.member("file", path)
    object.member("readable", readable)
    object.member("unreadable", unreadable)
    object.member("problem_count", problemCount)
    object.member("problems", problems)
  }
}
