import ArgumentParser
import NIOHTTP1

/// The options of commands that call the admin API of a running server.
struct AdminFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  /// Sends a request to the admin API.
  ///
  /// - Parameter path: The path below `/api/v1`.
  /// - Throws: `CommandFailure` if the server is unreachable.
  func ask(
    _ method: HTTPMethod, _ path: String, body: [UInt8]? = nil, type: String = "application/json"
  ) async throws -> AdminClient.Answer {
    let client = try RunningServer(server, environment: Environment.variables).client
    return try await client.request(method, "/api/v1\(path)", body: body, type: type)
  }

  /// Prints a response: `text`, or with `--json` its unchanged body.
  func print(_ answer: AdminClient.Answer, text: String) {
    output.json ? output.print(json: answer.body) : StandardStream.output.line(text)
  }

  /// Prints the elements of a response's array `items`: `table`, or with `--json` each element unchanged on its own line.
  func print(itemsOf answer: AdminClient.Answer, _ table: Table) {
    guard output.json else { return table.print() }
    for item in JSONLayout.elements(of: "items", in: answer.body) { output.print(json: Array(item)) }
  }
}

extension OutputFlags {
  /// Prints JSON and a line break.
  func print(json: [UInt8]) { StandardStream.output.write(json + [UInt8(ascii: "\n")]) }
}
