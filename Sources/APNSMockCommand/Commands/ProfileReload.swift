import ArgumentParser
import Faults
import NIOHTTP1

/// `apns-mock profile reload`
struct ProfileReload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Have the server read its folder of fault profiles again.",
    discussion: "Where a file is bad, what was read before stays; its problems are said, and the exit code is 2.")

  @OptionGroup var flags: AdminFlags

  private struct Answer: Decodable {
    var problems: [ProfileProblem]
  }

  func run() async throws {
    let answer = try await flags.ask(.POST, "/profiles/reload")
    let problems = try answer.decoded(Answer.self).problems
    let isBad = problems.contains { $0.severity == .error }
    flags.print(answer, text: isBad ? "read again, but for what is bad" : "read again")
    for problem in problems { StandardStream.error.line(problem.description.onOneLine) }
    if isBad { throw ExitCode(ExitStatus.usage.rawValue) }
  }
}
