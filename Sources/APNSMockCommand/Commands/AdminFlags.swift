import ArgumentParser
import NIOHTTP1

/// What commands that ask a running server have in common.
struct AdminFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  /// Asks the server something.
  ///
  /// - Parameter path: below `/api/v1`.
  /// - Throws: `CommandFailure` if nobody is there.
  func ask(
    _ method: HTTPMethod, _ path: String, body: [UInt8]? = nil, type: String = "application/json"
  ) async throws -> AdminClient.Answer {
    let client = try RunningServer(server, environment: Environment.variables).client
    return try await client.request(method, "/api/v1\(path)", body: body, type: type)
  }

  /// Prints an answer: `text`, or with `--json` its body as it came.
  func print(_ answer: AdminClient.Answer, text: String) {
    output.json ? output.print(json: answer.body) : StandardStream.output.line(text)
  }

  /// Prints the elements of the array `items` of an answer: `table`, or with `--json` each as it came, one a line.
  func print(itemsOf answer: AdminClient.Answer, _ table: Table) {
    guard output.json else { return table.print() }
    for item in JSONLayout.elements(of: "items", in: answer.body) { output.print(json: Array(item)) }
  }
}

extension OutputFlags {
  /// Prints JSON on a line of its own.
  func print(json: [UInt8]) { StandardStream.output.write(json + [UInt8(ascii: "\n")]) }
}
