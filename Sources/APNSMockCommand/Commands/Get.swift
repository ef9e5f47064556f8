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

  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let path = "/api/v1/pushes/\(id.percentEncoded)\(payload ? "/payload" : "")"
    let body = try await client.request(.GET, path).succeeded()
    if payload { return StandardStream.output.write(body) }
    StandardStream.output.write((output.json ? body : JSONLayout.indented(body)) + [UInt8(ascii: "\n")])
  }
}
