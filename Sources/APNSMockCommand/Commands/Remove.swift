import Notation
import ArgumentParser
import Inbox
import NIOHTTP1

/// `apns-mock rm`
struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove pushes from the inbox.")

  @OptionGroup var filter: FilterArguments

  @Flag(name: .long, help: "Remove all pushes; required if there is no filter.")
  var all = false

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  private struct Answer: Decodable {
    var deleted: Int
  }

  func validate() throws {
    guard all == filter.isEmpty else {
      throw ValidationError(
        all ? "--all excludes a filter" : "Specify a filter, as in topic:com.example.app, or --all")
    }
  }

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let query = filter.query(and: all ? [("all", "true")] : [])
    let deleted = try await client.request(.DELETE, "/api/v1/pushes?\(query)").decoded(Answer.self).deleted
    output.print(text: "\(deleted) removed") { $0.member("deleted", deleted) }
  }
}
