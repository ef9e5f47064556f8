import ArgumentParser
import APNSMockFaultModel
import APNSMockFaults
import HTTPTypes
import APNSMockNotation

/// `apns-mock profile`
struct ProfileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile",
    abstract: "Select, show and validate fault profiles.",
    discussion: """
      show needs no server for files and built-in profiles.
      """,
    groupedSubcommands: [
      CommandGroup(
        name: "Running server",
        subcommands: [
          ProfileList.self, ProfileShow.self, ProfileUse.self, ProfileOff.self, ProfileSet.self, ProfileReload.self,
        ]),
      CommandGroup(
        name: "Profile file",
        subcommands: [ProfileNew.self, ProfileLint.self, ProfileSimulate.self, ProfileSchemaShow.self]),
    ])
}

/// `apns-mock profile ls`
struct ProfileList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the server's fault profiles with their parameters.",
    discussion: """
      Prints a table on a terminal; otherwise one line per profile: columns separated by tabs, or with --json an object.
      """)

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.request(.get, "/profiles")
    let profiles = try response.decoded(ProfilesPage.self)
    flags.output.print(ListedProfile.table(profiles.items), objects: response.items)
    for problem in profiles.problems ?? [] { StandardStream.error.line(problem.text()) }
  }
}

/// `apns-mock profile show`
struct ProfileShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a fault profile: its purpose, parameters and source.",
    discussion: """
      Reads a file locally. Looks a name up in the running server, or in the built-in profiles if no server is running.
      """)

  @Argument(
    help: .value("profile", "A profile's name, or a file. (default: the active one, with the counters of its rules)"),
    completion: .profile)
  var profile: String?

  @Flag(name: .long, help: "Print only the source, to save it as a file.")
  var source = false

  @OptionGroup var library: LibraryFlags
  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard profile != nil || !source else { throw ValidationError("--source requires the name of a profile") }
  }

  func run() async throws {
    guard let profile else { return try await showActive() }
    let reference = try ProfileReference(argument: profile)
    guard reference.parameters.isEmpty else {
      throw CommandFailure(.usage, "PROFILE: show accepts a name or a file without parameters")
    }
    let response = try await serverResponse(reference) ?? localResponse(reference)
    let shown = try response.decoded(ListedProfile.self)
    if source {
      StandardStream.output.write(Array((shown.source ?? "").utf8))
      return
    }
    flags.print(response, text: shown.text)
    for problem in shown.problems ?? [] { StandardStream.error.line(problem.text()) }
  }

  /// Returns the server's description of a profile; nil for a file, and if no server is running.
  private func serverResponse(_ reference: ProfileReference) async throws -> AdminClient.Response? {
    guard case .name(let name) = reference.place, library.profiles == nil else { return nil }
    return try await OptionalServer(flags.server, environment: Environment.variables)
      .request(.get, "/api/v1/profiles/\(name.percentEncoded)")
  }

  private func showActive() async throws {
    let response = try await flags.request(.get, "/profile")
    let profile = try response.decoded(ActiveProfile.self)
    guard !flags.output.json else { return flags.output.print(json: response.body) }
    StandardStream.output.line(profile.text)
    if !profile.rules.isEmpty { ActiveRule.table(profile.rules).print() }
  }

  /// Returns the response of a server that has only the local profiles.
  private func localResponse(_ reference: ProfileReference) throws -> AdminClient.Response {
    let (text, loaded) = try library.loaded(reference)
    let body = JSONWriter.object { writer in
      writer.member("name", loaded.profile.name)
      writer.member("summary", loaded.profile.summary)
      writer.member("origin", text.origin.text)
      writer.member("active", false)
      writer.arrayMember("params") { loaded.profile.parameters.write(to: &$0) }
      writer.member("source", text.text)
      writer.name("profile")
      loaded.profile.write(to: &writer)
      writer.arrayMember("problems") { loaded.warnings.write(to: &$0) }
    }
    return AdminClient.Response(status: 200, body: body)
  }
}

extension ProfileReference {
  /// Parses a command-line argument.
  ///
  /// - Throws: `CommandFailure`.
  init(argument: String) throws {
    do throws(InvalidSettingValue) {
      try self.init(argument)
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: "PROFILE").description)
    }
  }
}

/// `apns-mock profile reload`
struct ProfileReload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Reload the server's folder of fault profiles.",
    discussion: "If a file is invalid, its previous version stays, its problems are reported and the exit code is 2.")

  @OptionGroup var flags: AdminFlags

  private struct Response: Decodable {
    var problems: [ProfileProblem]
  }

  func run() async throws {
    let response = try await flags.request(.post, "/profiles/reload")
    let problems = try response.decoded(Response.self).problems
    let isBad = problems.contains { $0.severity == .error }
    flags.print(response, text: isBad ? "reloaded, except invalid files" : "reloaded")
    for problem in problems { StandardStream.error.line(problem.text()) }
    if isBad { throw ExitCode(ExitStatus.usage.rawValue) }
  }
}

/// The admin API's description of a fault profile.
struct ListedProfile: Decodable {
  var name: String
  var summary: String
  var origin: String
  var active: Bool
  var params: [Parameter]
  /// The profile's source, if requested.
  var source: String?
  /// The profile's problems, if requested.
  var problems: [ProfileProblem]?

  /// A parameter.
  struct Parameter: Decodable {
    var name: String
    var type: String
    var value: Scalar
    var min: Scalar?
    var max: Scalar?
    var help: String?
  }

  /// A parameter's value of any type, as text.
  struct Scalar: Decodable {
    var text: String

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let flag = try? value.decode(Bool.self) {
        text = String(flag)
      } else if let whole = try? value.decode(Int64.self) {
        text = String(whole)
      } else if let number = try? value.decode(Double.self) {
        text = String(number)
      } else {
        text = try value.decode(String.self)
      }
    }
  }

  /// Returns a table of profiles.
  static func table(_ profiles: [ListedProfile]) -> Table<ListedProfile> {
    Table(
      rows: profiles,
      columns: [
        .init("NAME", \.name), .init("STATE") { $0.active ? "active" : nil },
        .init("PARAMETERS") { profile in
          profile.params.isEmpty
            ? nil : profile.params.map { "\($0.name)=\($0.value.text)" }.joined(separator: " ")
        },
        .init("ORIGIN", \.origin), .init("SUMMARY", \.summary),
      ])
  }

  /// The description for people.
  var text: String {
    var lines = ["\(name)  \(origin)\(active ? ", active" : "")".onOneLine]
    if !summary.isEmpty { lines.append(summary.onOneLine) }
    if !params.isEmpty {
      let table = Table<Parameter>(
        rows: params,
        columns: [
          .init("PARAMETER", \.name), .init("TYPE", \.type), .init("VALUE", \.value.text), .init("RANGE", \.range),
          .init("") { $0.help ?? "" },
        ])
      lines += ["", table.aligned(colored: false).trimmed]
    }
    if let source { lines += ["", source.trimmed] }
    return lines.joined(separator: "\n")
  }
}

extension ListedProfile.Parameter {
  fileprivate var range: String? {
    min == nil && max == nil ? nil : "\(min?.text ?? "")..\(max?.text ?? "")"
  }
}

/// The admin API's description of the active fault profile, with the members that commands show.
struct ActiveProfile: Decodable {
  var reference: String
  var seed: UInt64
  var halted: Bool
  private var endsInMs: Int64?
  var rules: [ActiveRule]

  /// The time until the profile ends, such as `4m59s`; nil if it does not end.
  var endsIn: String? { endsInMs.map(ActiveRule.text) }

  /// `flaky-503?rate=0.4, seed 7, ends in 4m59s`.
  var text: String {
    var parts = [reference, "seed \(seed)"]
    if let endsIn { parts.append("ends in \(endsIn)") }
    if halted { parts.append("paused; to resume: apns-mock faults resume") }
    return parts.joined(separator: ", ").onOneLine
  }
}

/// The response of `GET /profiles`.
struct ProfilesPage: Decodable {
  var items: [ListedProfile]
  var problems: [ProfileProblem]?
}
