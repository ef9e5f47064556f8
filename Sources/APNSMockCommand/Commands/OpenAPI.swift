import AdminAPI
import ArgumentParser

/// `apns-mock openapi`
struct OpenAPI: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openapi", abstract: "Print the description of the admin API (OpenAPI 3.1, JSON).",
    discussion: "The same as a running server has at /openapi.json; no server is needed.")

  func run() {
    StandardStream.output.write(APIDescription(version: Version.text).json + [UInt8(ascii: "\n")])
  }
}
