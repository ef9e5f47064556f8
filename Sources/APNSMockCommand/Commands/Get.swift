import ArgumentParser
import NIOHTTP1

/// `apns-mock get`
struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Show one push: what came, how it was judged, what was answered.",
    discussion: "What its provider does wrong is told in words on standard error; --explain has the whole story.")

  @Argument(help: "The push's seq, or its apns-id for the newest attempt with it.")
  var id: String

  @Flag(name: .long, help: "Print the body alone, byte for byte.")
  var payload = false

  @Flag(name: .long, help: "Print a curl command that sends it again, with $TOKEN for the provider token.")
  var curl = false

  @Flag(name: .long, help: "Print a file for xcrun simctl push.")
  var apns = false

  @Flag(
    name: .long, help: "Print how it came to its end: checks, rules with their draws, findings with evidence, advice.")
  var explain = false

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard forms.count <= 1 else {
      throw ValidationError("--payload, --curl, --apns and --explain: choose one")
    }
  }

  /// The other forms of the push that were asked for, as the admin API calls them.
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
