import ArgumentParser
import Inbox
import MockAPNS

/// `apns-mock export`
struct Export: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Export the inbox: all pushes, or those that match a query.")

  @OptionGroup var filter: FilterArguments

  @Option(name: .long, help: "The format: ndjson for one record per line, json for an array.")
  var format = InboxExport.Format.lines.rawValue

  @Option(name: .long, help: "The output file. (default: standard output)")
  var output: String?

  @OptionGroup var server: ServerFlags

  func validate() throws {
    guard InboxExport.Format(rawValue: format) != nil else {
      throw ValidationError("--format must be ndjson or json, not \"\(format)\"")
    }
  }

  func run() async throws {
    let client = try RunningServer(server, environment: Environment.variables).client
    let path = "/api/v1/export?\(filter.query(and: [("format", format)]))"
    guard let output else {
      try await client.stream(path) { StandardStream.output.write($0) }
      return
    }
    let file = try Files.replacement(of: output)
    try await client.stream(path) { bytes in
      try Files.writing { () throws(FileError) in try file.append(bytes) }
      return true
    }
    try Files.writing { () throws(FileError) in try file.commit() }
  }
}
