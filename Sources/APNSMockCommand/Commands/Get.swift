import ArgumentParser
import NIOHTTP1

/// `apns-mock get`
struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Show one push: the request, its validation and the response.",
    discussion: "Findings are described on standard error; --explain prints all details.")

  @Argument(help: "The push's seq, or an apns-id for its newest attempt.")
  var id: String

  @Flag(name: .long, help: "Print only the body, byte for byte.")
  var payload = false

  @Flag(name: .long, help: "Print a curl command that repeats the push, with $TOKEN for the provider token.")
  var curl = false

  @Flag(name: .long, help: "Print the push as a file for xcrun simctl push.")
  var apns = false

  @Flag(
    name: .long,
    help: "Print how the result was determined: checks, rules with random draws, findings, evidence, advice.")
  var explain = false

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard forms.count <= 1 else {
      throw ValidationError("Specify only one of --payload, --curl, --apns and --explain")
    }
  }

  /// The requested representations, by their names in the admin API.
  private var forms: [String] {
    [(payload, "payload"), (curl, "curl"), (apns, "apns"), (explain, "explain")].filter(\.0).map(\.1)
  }

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let path = (["/api/v1/pushes", id.percentEncoded] + forms).joined(separator: "/")
    let body = try await client.request(.GET, path).succeeded()
    guard forms.isEmpty || explain else {
      StandardStream.output.write(body)
      return
    }
    StandardStream.output.write((output.json ? body : JSONLayout.indented(body)) + [UInt8(ascii: "\n")])
    guard !output.json, !explain else { return }
    let explanation = try await client.request(.GET, path + "/explain").decoded(Explanation.self)
    for finding in explanation.findings {
      StandardStream.error.line("\(finding.finding): \(finding.explanation.onOneLine). \(finding.advice.onOneLine)")
    }
  }

  private struct Explanation: Decodable {
    var findings: [Finding]

    struct Finding: Decodable {
      var finding: String
      var explanation: String
      var advice: String
    }
  }
}
