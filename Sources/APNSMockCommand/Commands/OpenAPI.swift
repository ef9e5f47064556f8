import AdminAPI
import ArgumentParser

/// `apns-mock openapi`
struct OpenAPI: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openapi", abstract: "Print the description of the admin API (OpenAPI 3.1, JSON).",
    discussion: "A running server has the same description at /openapi.json. This command needs no server.")

  @OptionGroup var output: OutputFlags

  func run() {
    let description = APIDescription(version: Version.text).json
    output.print(json: output.json ? description : JSONLayout.indented(description))
  }
}
