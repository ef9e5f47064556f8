import APNSMockRules
import ArgumentParser
import APNSMockEmbeddedFiles
import MockAPNS
import HTTPTypes
import APNSMockNotation

/// `apns-mock env`
struct EnvCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "env", abstract: "Print a running server's addresses and credentials, as variables or for a library.",
    discussion: """
      The variables are those that exec sets for its program. To set them in a shell:

        eval "$(apns-mock env)"               bash, zsh, sh
        apns-mock env --shell fish | source   fish

      With --library, print the code or settings of its documentation page, with the server's addresses and files.
      """)

  @Option(help: .value("format", "The format: bash (also for zsh and sh), fish, dotenv or json."))
  var shell: VariableFormat?

  @Option(
    help: .value("library", "A provider library, such as aioapns or node-apn; list prints all."),
    completion: .list(["list"] + ClientPage.all.map { $0.file.lowercased() }))
  var library: String?

  @Flag(help: "With --library: print only its code, such as for a file: env --library aioapns --code > push.py.")
  var code = false

  @OptionGroup var server: ServerFlags

  func validate() throws {
    guard !code || library != nil else { throw ValidationError("--code needs --library") }
    guard shell == nil || library == nil else {
      throw ValidationError("--shell and --library exclude each other: specify one of them")
    }
  }

  func run() async throws {
    guard library != "list" else {
      return StandardStream.output.line(ClientPage.all.map(\.library).joined(separator: "\n"))
    }
    let page = try library.map(Self.page)
    let known = try await settings()
    if let page {
      let text = LibrarySettings(page).text(for: known)
      StandardStream.output.line(code ? LibrarySettings.code(in: text) : text)
    } else {
      let set = known.variables.compactMap { name, value in value.map { (name, $0) } }
      StandardStream.output.write(Array((shell ?? .bash).text(set).utf8))
    }
  }

  /// Returns the page of a library, by its name or the name of the page, without regard to case and punctuation.
  ///
  /// - Throws: `CommandFailure` that lists all libraries for an unknown name.
  static func page(of name: String) throws -> ClientPage {
    func plain(_ name: String) -> String { name.lowercased().filter { $0.isLetter || $0.isNumber } }
    let pages = ClientPage.all
    if let page = pages.first(where: { [plain($0.library), plain($0.file)].contains(plain(name)) }) { return page }
    // A part of only one name, such as http2 of "Node http2".
    let parts = pages.filter { name.count > 2 && plain($0.library).contains(plain(name)) }
    if parts.count == 1, let page = parts.first { return page }
    let names = pages.map(\.library)
    let guess = Spelling.nearest(to: name, among: names).map { "did you mean \($0)?" }
    throw CommandFailure(
      .usage,
      "--library: no page describes \"\(name)\": "
        + (guess
          ?? "the libraries are \(Spelling.choices(for: name, among: names)); to see all: apns-mock env --library list")
    )
  }

  /// Returns the addresses and credentials of the running server.
  ///
  /// - Throws: `CommandFailure` if no server responds, or it accepts no pushes.
  private func settings() async throws -> PortFile {
    let environment = Environment.variables
    let location = try ServerLocation(server, environment: environment)
    let status = try await location.client.request(.get, "/api/v1/status").decoded(ServerStatus.self)
    guard let authority = status.ca else {
      throw CommandFailure(
        .failed,
        "the server on \(location.client.endpoint) is a view of an export and accepts no pushes; start one with "
          + "apns-mock serve")
    }
    if let portFile = location.portFile { return portFile }
    let folder = String(authority.path[..<(authority.path.lastIndex(of: "/") ?? authority.path.startIndex)])
    let files = ServerFiles(certs: folder, portFile: nil, environment: environment)
    let standard = PushEnvironment(rawValue: status.environment) ?? .sandbox
    let addresses = status.addresses
    return PortFile(
      pid: 0, apns: addresses.apns.map { $0.listener(standard) },
      apnsPlain: addresses.apnsPlain?.map { $0.listener(standard) } ?? [], proxy: addresses.proxy?.listener(standard),
      manage: addresses.manage?.map { $0.listener(standard) } ?? [], admin: location.client.endpoint,
      ca: authority.path, keyID: files.keyID, teamID: files.teamID, key: files.key, environment: standard, seed: 0,
      adminToken: location.client.token)
  }
}

/// The formats in which environment variables are printed.
enum VariableFormat: String, CaseIterable, ExpressibleByArgument {
  case bash, fish, dotenv, json

  /// Returns the text that sets the variables, one per line.
  func text(_ variables: [(name: String, value: String)]) -> String {
    func lines(_ line: (String, String) -> String) -> String {
      variables.map { line($0.name, $0.value) + "\n" }.joined()
    }
    switch self {
    case .bash: return lines { "export \($0)=\($1.shellQuoted)" }
    // Inside single quotes fish interprets a backslash only before a quote or another backslash.
    case .fish: return lines { "set -gx \($0) \($1.replacing("\\", with: "\\\\").shellQuoted)" }
    case .dotenv:
      return lines { name, value in
        "\(name)=\"\(value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("$", with: "\\$"))\""
      }
    case .json:
      let object = JSONWriter.object { writer in
        for (name, value) in variables { writer.member(name, value) }
      }
      return String(decoding: object, as: UTF8.self) + "\n"
    }
  }
}

/// The settings of a library from its documentation page, which describes a server with the default address and folder.
struct LibrarySettings {
  private let page: ClientPage

  init(_ page: ClientPage) { self.page = page }

  /// Returns the first block of code in a text.
  static func code(in text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).drop { !$0.hasPrefix("```") }.dropFirst()
      .prefix { $0 != "```" }.joined(separator: "\n")
  }

  /// Returns the page's section with the addresses and files of a server.
  func text(for server: PortFile) -> String {
    let standard = MockServer.Configuration()
    var text = page.section.replacing("\(standard.certificates)/", with: server.folder + "/")
    guard let endpoint = server.apns.first?.endpoint.reachable, let documented = standard.apns.first else {
      return text
    }
    text = text.replacing(String(documented.port), with: String(endpoint.port))
    guard !endpoint.isLoopback else { return text }
    let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
    return text.replacing("localhost", with: host).replacing(documented.host, with: host)
  }
}

/// The documentation page of a provider library, as it is in the documentation.
struct ClientPage: Sendable {
  /// The name of the page's file without its extension, such as `NodeAPN`.
  let file: String
  /// The page in Markdown.
  let text: String

  /// All pages.
  static let all = EmbeddedFile.clientPages.map { ClientPage(file: $0.name, text: $0.text) }

  /// The library's name: the title of the page.
  var library: String { String(text.prefix { $0 != "\n" }.drop { $0 == "#" || $0 == " " }) }

  /// The section with the code or settings to paste, without its title; empty if the page has none.
  var section: String {
    guard let title = text.firstRange(of: "## What to paste\n") else { return "" }
    let rest = text[title.upperBound...]
    let end = rest.firstRange(of: "\n## ")?.lowerBound ?? rest.endIndex
    return String(rest[..<end].drop { $0 == "\n" })
  }
}
