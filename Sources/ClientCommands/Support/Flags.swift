import ArgumentParser
import APNSMockFaults
import MockAPNS
import HTTPTypes
package import APNSMockNotation

/// The options of commands that call the admin API of a running server.
struct AdminFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var output: OutputFlags

  /// Returns the client of the server's admin API.
  ///
  /// - Throws: `CommandFailure` if the flags or the port file do not specify a server.
  func client() throws -> AdminClient { try server.client() }

  /// Sends a request to the admin API.
  ///
  /// - Parameter path: The path below `/api/v1`.
  /// - Throws: `CommandFailure` if the server is unreachable.
  func request(
    _ method: HTTPRequest.Method, _ path: String, body: [UInt8]? = nil, type: String = "application/json"
  ) async throws -> AdminClient.Response {
    try await client().request(method, "/api/v1\(path)", body: body, type: type)
  }

  /// Prints a response: `text`, or with `--json` its unchanged body.
  func print(_ response: AdminClient.Response, text: String) {
    output.json ? output.print(json: response.body) : StandardStream.output.line(text)
  }
}

/// Selects the output format of a command.
package struct OutputFlags: ParsableArguments {
  @Flag(name: .long, help: "Print JSON: one object, or one per line.")
  package var json = false

  package init() {}

  /// Prints a result to standard output: `text`, or with `--json` an object with these members.
  package func print(text: String, _ members: (inout JSONWriter) -> Void) {
    json ? print(json: JSONWriter.object(members)) : StandardStream.output.line(text)
  }

  /// Prints a list: `table`, or with `--json` one object per row on its own line.
  func print<Row>(_ table: Table<Row>, objects: @autoclosure () -> some Sequence<some Collection<UInt8>>) {
    guard json else { return table.print() }
    for object in objects() { print(json: object) }
  }

  /// Prints JSON and a line break.
  package func print(json: some Collection<UInt8>) { StandardStream.output.write(json + [UInt8(ascii: "\n")]) }
}

extension JSONWriter {
  /// Returns the text of an object.
  static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.object(members)
    return writer.bytes
  }
}

/// The options of commands that push to a server or change its certificate folder.
struct ProviderFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags
}

/// The options for signing a provider token.
struct SigningFlags: ParsableArguments {
  @Option(
    name: .long, help: .value("file", "The private key in PEM, such as Apple's AuthKey_….p8. (default: the server's)"),
    completion: .file())
  var key: String?

  @Option(name: .long, help: .value("id", "The key id. (default: from the file name, or the server's)"))
  var keyID: String?

  @Option(name: .long, help: .value("id", "The team id. (default: the server's)"))
  var teamID: String?

  /// Returns the key id: the flag's, else that of the key file's name, else the server's.
  ///
  /// - Throws: `CommandFailure` for a key file whose name has none.
  func chosenKeyID(_ files: ServerFiles) throws -> String {
    if let keyID { return keyID }
    guard let key else { return files.keyID }
    guard let keyID = AppleKeyFile.keyID(in: key) else {
      throw CommandFailure(.usage, "--key: the file name \(key) does not contain the key id: specify it with --key-id")
    }
    return keyID
  }
}

/// The options of commands that load profiles without a server: from the built-in library and a folder.
struct LibraryFlags: ParsableArguments {
  @Option(
    name: .long,
    help: .value("folder", "A folder with fault profiles, in addition to the built-in ones. [APNS_MOCK_PROFILES]"),
    completion: .directory)
  var profiles: String?

  /// Returns the built-in profiles and those of the folder, and reports problems on standard error.
  func library(_ environment: [String: String] = Environment.variables) -> ProfileLibrary {
    guard let folder = profiles ?? environment.given(Setting.profiles.variable) else { return ProfileLibrary() }
    let reading = ProfileLibrary().reloading(folder: folder)
    for problem in reading.problems { StandardStream.error.line(problem.text()) }
    return reading.library
  }

  /// Loads the profile a reference names, with its source.
  ///
  /// - Throws: `CommandFailure` with all problems.
  func loaded(_ reference: ProfileReference) throws -> (source: ProfileSource, loaded: LoadedProfile) {
    try ProfileFailure.reporting { () throws(ProfileFailure) in try library().loaded(reference) }
  }
}

extension ProfileFailure {
  /// Runs `work` with profiles or rules and converts their problems to a failure of status `usage`.
  ///
  /// - Throws: `CommandFailure` with one line per problem.
  static func reporting<Result>(_ work: () throws(ProfileFailure) -> Result) throws -> Result {
    do throws(ProfileFailure) {
      return try work()
    } catch {
      throw CommandFailure(.usage, lines: error.problems.map { $0.text() })
    }
  }
}

extension ProfileProblem {
  /// Returns a line for standard error. An error begins with `error: ` like all errors of this program. The location
  /// follows, as in compilers' messages, or if it has no line number the source.
  ///
  /// - Parameter source: The flag, variable or config file line that specified the profile.
  package func text(from source: String? = nil) -> String {
    let origin = line == nil ? source.map { "\($0): " } ?? "" : ""
    return ((severity == .error ? "error: " : "") + origin + description).onOneLine
  }
}

/// Selects the pushes a command applies to, by the terms of a query or the admin API's fields and values.
struct FilterArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "A query: status:410 topic:com.example.* '!type:background' is:retry 'text:\"order shipped\"' …",
      discussion: """
        Conditions on the same field are alternatives; conditions on different fields must all match. ! before a field \
        negates it; * is a wildcard. Numbers can be '>3', '<=3' and 3..9. Fields include payload./aps/badge and \
        header.apns-id. In an argument such as topic=com.example.app, the value needs no \
        quotation marks.
        """,
      valueName: "query"), completion: .query)
  var terms: [String] = []

  /// Whether no condition is specified.
  var isEmpty: Bool { terms.allSatisfy { $0.allSatisfy(\.isWhitespace) } }

  /// Returns the URL query for these terms and other parameters. The server parses the terms.
  func query(and others: [(String, String)] = []) -> String {
    var pairs: [(String, String)] = []
    var query: [String] = []
    for term in terms {
      if let sign = term.firstIndex(where: { "=:<>\"".contains($0) }), term[sign] == "=", sign > term.startIndex,
        !term.contains(where: \.isWhitespace)
      {
        pairs.append((String(term[..<sign]), String(term[term.index(after: sign)...])))
      } else {
        query.append(term)
      }
    }
    if !query.isEmpty { pairs.append(("q", query.joined(separator: " "))) }
    return (pairs + others).map { "\($0.percentEncoded)=\($1.percentEncoded)" }.joined(separator: "&")
  }
}

/// Restricts a command to the pushes of one of several test suites that share the server.
struct ScopeFlag: ParsableArguments {
  @Option(
    name: .long,
    help: .value("query", "Only the pushes that match this query, as if there were no others: topic:com.example.w3."))
  var scope: String?

  /// The URL parameter of the admin API; empty if no scope is specified.
  var parameters: [(String, String)] { scope.map { [("scope", $0)] } ?? [] }
}

/// Validates durations for commands.
enum DurationArgument {
  /// Checks the value of a flag.
  ///
  /// - Throws: `ValidationError` if it is not a duration, is negative or exceeds `limit`.
  static func check(_ text: String?, flag: String, allowsZero: Bool = false, limit: Duration? = nil) throws {
    guard let text else { return }
    guard let duration = DurationFormat.duration(text), duration > .zero || (allowsZero && duration == .zero),
      duration <= limit ?? duration
    else {
      let upTo = limit.map { " up to \(DurationFormat.text($0))" } ?? ""
      throw ValidationError("\(flag): \"\(text)\" is not a duration\(upTo) such as 500ms, 30s or 2m")
    }
  }
}

/// Parses and formats times for commands.
enum TimeArgument {
  /// The description of what `milliseconds(_:now:)` accepts.
  static let allowed =
    "expected RFC 3339 (2026-01-31T12:00:00Z), seconds since 1970, or a duration from now (-10m, 5m)"

  /// Returns milliseconds since 1970; nil if `text` is not a time.
  static func milliseconds(_ text: String, now: Int64) -> Int64? {
    if let time = TimestampFormat.milliseconds(text) { return time }
    if let seconds = Int64(text) {
      // RFC 3339 ends with the year 9999; larger numbers have the wrong unit.
      return seconds.magnitude < 253_402_300_800 ? seconds * 1000 : nil
    }
    let sign = text.hasPrefix("+") ? 1 : 0
    guard let change = DurationFormat.duration(text.dropFirst(sign)) else { return nil }
    let (seconds, attoseconds) = change.components
    return now + seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// Returns a time in RFC 3339, or as a number if it is out of range.
  ///
  /// - Parameter time: Milliseconds since 1970.
  static func text(_ time: Int64) -> String { TimestampFormat.text(time) ?? "\(time) ms since 1970" }
}
