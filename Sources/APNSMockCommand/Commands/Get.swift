import ArgumentParser
import NIOHTTP1

/// `apns-mock get`
struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show one push: what came, how it was judged, what was answered.")

  @Argument(help: "The push's seq, or its apns-id for the newest attempt with it.")
  var id: String

  @Flag(name: .long, help: "Print the body alone, byte for byte.")
  var payload = false

  @Flag(name: .long, help: "Print a curl command that sends it again, with $TOKEN for the provider token.")
  var curl = false

  @Flag(name: .long, help: "Print a file for xcrun simctl push.")
  var apns = false

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard forms.count <= 1 else { throw ValidationError("--payload, --curl and --apns: choose one") }
  }

  /// The other forms of the push that were asked for, as the admin API calls them.
  private var forms: [String] {
    [(payload, "payload"), (curl, "curl"), (apns, "apns")].filter(\.0).map(\.1)
  }

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let path = (["/api/v1/pushes", id.percentEncoded] + forms).joined(separator: "/")
    let body = try await client.request(.GET, path).succeeded()
    guard forms.isEmpty else {
      StandardStream.output.write(body)
      return
    }
    StandardStream.output.write((output.json ? body : JSONLayout.indented(body)) + [UInt8(ascii: "\n")])
  }
}
