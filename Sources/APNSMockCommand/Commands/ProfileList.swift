import ArgumentParser
import Faults
import NIOHTTP1

/// `apns-mock profile ls`
struct ProfileList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the server's fault profiles with their parameters.",
    discussion: """
      Prints a table on a terminal; otherwise one line per profile: columns separated by tabs, or with --json an object.
      """)

  @OptionGroup var flags: AdminFlags

  private struct Profiles: Decodable {
    var items: [ListedProfile]
    var problems: [ProfileProblem]?
  }

  func run() async throws {
    let answer = try await flags.ask(.GET, "/profiles")
    let profiles = try answer.decoded(Profiles.self)
    flags.print(itemsOf: answer, ListedProfile.table(profiles.items))
    for problem in profiles.problems ?? [] { StandardStream.error.line(problem.description.onOneLine) }
  }
}
