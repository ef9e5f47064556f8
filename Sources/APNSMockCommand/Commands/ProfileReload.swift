import ArgumentParser
import Faults
import NIOHTTP1

/// `apns-mock profile reload`
struct ProfileReload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Reload the server's folder of fault profiles.",
    discussion: "If a file is invalid, its previous version stays, its problems are reported and the exit code is 2.")

  @OptionGroup var flags: AdminFlags

  private struct Answer: Decodable {
    var problems: [ProfileProblem]
  }

  func run() async throws {
    let answer = try await flags.ask(.POST, "/profiles/reload")
    let problems = try answer.decoded(Answer.self).problems
    let isBad = problems.contains { $0.severity == .error }
    flags.print(answer, text: isBad ? "reloaded, except invalid files" : "reloaded")
    for problem in problems { StandardStream.error.line(problem.description.onOneLine) }
    if isBad { throw ExitCode(ExitStatus.usage.rawValue) }
  }
}
